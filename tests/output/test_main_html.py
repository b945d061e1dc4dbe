"""Labels to Main-HTML."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose import mask_of
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper.testing import page
from tests.html_strategies import documents
from tests.output.forms import forms_of


def kept(body: str, *numbers: int) -> str:
    """Return what is inside <body> of the Main-HTML if the blocks with these numbers are main."""
    found = page(body)
    main = np.isin(np.arange(len(found.blocks)), numbers)
    html = to_html(main_tree(found, mask_of(found, main)))
    assert html.startswith("<html><body>")
    return html.removeprefix("<html><body>").removesuffix("</body></html>")


def cases(name: str) -> Any:
    """Mark a test that takes each case of a file beside this one."""
    found = json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
    return pytest.mark.parametrize("case", found, ids=[case["rule"] for case in found])


@cases("main_html_cases")
def test_subtree(case: dict[str, Any]) -> None:
    """Main blocks stay with their ancestors, other blocks are removed, and tails stay in place."""
    assert kept(case["body"], *case["main"]) == case["main_html"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<ul><li>Warp<a id=w></a>, weft<li>hem</ul>", "- Warp, weft\n- hem"),
        ("<ul><li>Warp<span hidden><p>no</p></span>weft<li>hem</ul>", "- Warp weft\n- hem"),
        (
            "<table><tr><th>Name<th>Type<tr><td><code>get<wbr>Item</code><td>(<a id=t></a>text<i></i>)</table>",
            "| Name | Type |\n| --- | --- |\n| `getItem` | (text) |",
        ),
        (
            "<dl><dt>Satur<wbr>day<dd>The loom rests<dt>Warp<dt>Weft<dd>Yarn</dl>",
            "Saturday\n: The loom rests\n\nWarp\nWeft\n: Yarn",
        ),
        (
            r"<p>It is <picture><source srcset=a.webp><img class=latex alt='\pi r^2' src=/latex.png></picture> now",
            r"It is $\pi r^2$ now",
        ),
        (
            "<div><span>js</span></div><pre class='brush: js'>a = 1;</pre><p>HTML</p><pre class='brush: js'>b</pre>",
            "```javascript\na = 1;\n```\n\nHTML\n\n```javascript\nb\n```",
        ),
        ("<p>HTML<p>CSS<pre class='brush: css'>a {}</pre>", "HTML\n\nCSS\n\n```css\na {}\n```"),
        (
            "<p><a href=/f>CSS</a><pre class='brush: css'>a {}</pre>",
            "[CSS](https://example.org/f)\n\n```css\na {}\n```",
        ),
        ("<table><tr><th>A<th>B<tr><td scope=''>c<td>d</table>", "| A | B |\n| --- | --- |\n| c | d |"),
    ],
)
def test_what_shows_nothing_changes_no_text(html: str, expected: str) -> None:
    """Anchors, ``<wbr>``, ``<picture>``, omitted end tags, empty attributes, and the language above code."""
    assert forms_of(html).markdown == expected


def test_the_text_between_dropped_elements_is_joined_once() -> None:
    """In quadratic time, this would take many times as long."""
    assert kept("<p>x" + "<i></i>word " * 30_000, 0) == "<p>x" + "word " * 30_000 + "</p>"


@cases("image_cases")
def test_images_go_with_the_blocks_around(case: dict[str, Any]) -> None:
    """An image in a block is kept with it. One between blocks is kept with both, or by its place."""
    assert ("<img" in kept(case["body"], *case["main"])) == case["image"]


def test_players_at_the_edge() -> None:
    video = '<iframe src="https://www.youtube.com/embed/x"></iframe>'

    assert "iframe" in kept(f"<p>b</p><article>{video}<p>a</p></article>", 1)
    assert "iframe" in kept(f"<p>a</p><figure>{video}<figcaption>c</figcaption></figure>", 0)
    assert "iframe" not in kept(f"<p>b</p><article>{video.replace('youtube', 'adtube')}<p>a</p></article>", 1)


def test_many_images_at_an_edge_take_linear_time() -> None:
    """Deep wrappers are searched once, and not once for each image."""
    body = "<article>" + "<div>" * 200 + "<img src=i>" * 20_000 + "</div>" * 200 + "<p>a</p></article><p>b</p>"

    assert kept(body, 0).count("<img") == 20_000


@pytest.mark.parametrize(
    "markup",
    [
        '<a href="/relative?a=1&amp;b=2">x</a>',
        '<img src="data:image/png;base64,AAAA"> x',
        '<p>x <img src="/i.png" data-src="/big.png" alt="words" width="3"></p>',
        '<p lang="ar" dir="rtl">سلام</p>',
        '<p data-bbox="8,70,784,60">x <b data-bbox="20,70,9,20">y</b></p>',
        # Highlighters even wrap the white space of code in elements.
        '<pre><span class="w">  </span>if<span> </span>x:\n<span>    </span>y</pre>',
        "<p><code><b>a</b><i> </i><b>b</b></code></p>",
    ],
)
def test_what_carries_meaning_is_left(markup: str) -> None:
    """URLs, images, spans, list numbers, languages, directions and a browser's boxes are kept unchanged."""
    assert kept(markup, 0) == markup


@pytest.mark.parametrize(
    ("attributes", "inside", "tag"),
    [
        ("role=heading aria-level=3", "a <b>b</b>", "h3"),
        ("role=heading", "a", "h2"),
        ("role=heading aria-level=' 4 '", "<button>a</button>", "h4"),
        ("role=heading aria-level=0", "a", "h2"),
        ("role=heading", "<span><p>a</p></span>", "div"),
        ("role=note", "a", "div"),
    ],
)
def test_a_heading_of_aria_is_one(attributes: str, inside: str, tag: str) -> None:
    assert kept(f"<div {attributes}>{inside}</div>", 0).startswith(f"<{tag} ")


def test_pictures_of_a_dialog_go_unless_its_text_is_main() -> None:
    html = "<p>a</p><dialog id=figures><button><img src=1.png></button><img src=2.png>{}</dialog><p>b</p>".format
    assert kept(html(""), 0, 1) == "<p>a</p><p>b</p>"
    assert kept(html("<p>c</p>"), 0, 1, 2).count("<img") == 2


@pytest.mark.parametrize(
    "markup",
    [
        '<p>so <script type="math/tex">a<b</script> is</p>',
        '<p>x</p><script type="math/tex; mode=display">y</script><p>z</p>',
        '<p>x</p><div><iframe src="https://www.youtube.com/embed/x" title="t">no frames</iframe></div><p>y</p>',
        '<p>x</p><lite-youtube videoid="v" playlabel="t"></lite-youtube><p>y</p>',
    ],
)
def test_formulas_and_players_go_with_the_blocks_around(markup: str) -> None:
    """They are in scripts that browsers do not run, and in frames that do not load anything."""
    n = len(page(markup).blocks)
    assert kept(markup, *range(n)) == markup.replace("no frames", "").replace(" src=", " data-src=")
    assert n == 1 or "script" not in kept(markup, 0) + kept(markup, 1)
    assert n == 1 or "frame" not in kept(markup, 0) + kept(markup, 1)


def test_a_formula_does_not_end_its_script() -> None:
    """This holds even if the parser allows an end tag inside a script."""
    found = page("<p>x<script type='math/tex'>y</script></p>")
    next(node for node in found.tree.nodes if node.tag == "script").text = "a</script><b>"
    html = to_html(main_tree(found, mask_of(found, np.ones(1, dtype=np.bool_))))
    assert "a< /script><b></script>" in html


@given(documents(), st.randoms(use_true_random=False))
def test_formulas_and_players_change_no_block(html: str, chance: random.Random) -> None:
    """The blocks are the same with and without them, at any place."""
    silent = ["<script type=math/tex>x</script>", "<iframe src=https://www.youtube.com/embed/x></iframe>"]
    pieces = re.split(r"(?=</(?:p|div|li|td|a|b|i)>)", html)
    with_them = "".join(part + (chance.choice(silent) if chance.random() < 0.3 else "") for part in pieces[:-1])
    without, found = cut(parse(html)), cut(parse(with_them + pieces[-1]))

    assert found.blocks.text == without.blocks.text
    assert found.blocks.links.tolist() == without.blocks.links.tolist()
    assert found.blocks.images.tolist() == without.blocks.images.tolist()


@pytest.mark.parametrize("tag", ["o:p", 'foo"bar', "x@y", "portal", "fencedframe"])
def test_unknown_tags_become_spans(tag: str) -> None:
    """Some cannot be serialised, and some load resources."""
    assert kept(f"<p><{tag}>x</{tag}> y</p>", 0) == "<p><span>x</span> y</p>"


@pytest.mark.parametrize("tag", ["my-card", "math", "ruby"])
def test_known_tags_and_custom_elements_stay(tag: str) -> None:
    assert f"<{tag}>x" in kept(f"<{tag}>x</{tag}>", 0)


@given(documents())
def test_writing_leaves_the_page_as_it_was(html: str) -> None:
    """A page can be written again with other labels."""
    found = cut(parse(html))
    n = len(found.blocks)
    first = to_html(main_tree(found, mask_of(found, np.ones(n, dtype=np.bool_))))
    to_html(main_tree(found, mask_of(found, np.zeros(n, dtype=np.bool_))))

    assert to_html(main_tree(found, mask_of(found, np.ones(n, dtype=np.bool_)))) == first
