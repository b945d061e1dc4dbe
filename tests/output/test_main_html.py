"""Labels to Main-HTML."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose import mask_of
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from tests.html_strategies import documents


def page(body: str) -> Page:
    return cut(parse(f"<html><body>{body}</body></html>"))


def kept(body: str, *numbers: int) -> str:
    """Return what is inside <body> of the Main-HTML if the blocks with these numbers are main."""
    found = page(body)
    main = np.isin(np.arange(len(found.blocks)), numbers)
    html = to_html(main_tree(found, mask_of(found, main)))
    assert html.startswith("<html><body>")
    return html.removeprefix("<html><body>").removesuffix("</body></html>")


TERMS = "<dl><dt>a</dt><dd>b</dd><dt>c</dt><dd>d</dd><dd>e</dd><dt>f</dt></dl>"


@pytest.mark.parametrize(
    ("body", "main", "expected"),
    [
        ("<div class=x><section id=s><p>a</p><p>b</p></section></div>", [0], '<div class="x"><section id="s"><p>a</p>'
         "</section></div>"),
        ("<div>lead<p>in</p>trail</div>", [0, 2], "<div>lead<p></p>trail</div>"),
        ("<div>lead<span><p>in</p></span>trail</div>", [0, 2], "<div>lead trail</div>"),
        ("<p><a>x</a><span class=i></span><a>y</a></p>", [0], "<p><a>x</a> <a>y</a></p>"),
        ("<code><a>x</a><i></i><a>y</a></code>", [0], "<code><a>x</a><a>y</a></code>"),
        ("<div>lead<p>in</p>trail</div>", [2], "<div>trail</div>"),
        ("<p>a</p>tail<p>b</p>", [1], "tail"),
        ("<p>a <b>b</b> <i>c</i> d</p>", [0], "<p>a <b>b</b> <i>c</i> d</p>"),
        ("<p>a<span></span> <i>c</i></p>", [0], "<p>a <i>c</i></p>"),
        # Columns do not shift, neither in a layout table nor where a dropped row spans.
        ("<table><tr><td><p>a</p><td><p>b</p><td><p>c</p><tr><td><h2>d</h2><td>e<td>f</table>", [1],
         "<table><tr><td></td><td><p>b</p></td><td></td></tr></table>"),
        ("<table><tr><td rowspan=2><p>nav</p><td><p>head</p><tr><td><p>content</p></table>", [2],
         '<table><tr><td rowspan="2"></td><td></td></tr><tr><td><p>content</p></td></tr></table>'),
        # A term that is not main is kept empty. Otherwise, the text would define the previous term.
        (TERMS, [0, 1, 3], "<dl><dt>a</dt><dd>b</dd><dt></dt><dd>d</dd></dl>"),
        (TERMS, [0, 1, 4], "<dl><dt>a</dt><dd>b</dd><dt></dt><dd>e</dd></dl>"),
        # A browser that runs scripts would hide content in <noscript>.
        ("<noscript><p>posts</p></noscript>", [0], "<div><p>posts</p></div>"),
        # The text between dropped elements is joined once. In quadratic time, this would take many times as long.
        ("<p>x" + "<i></i>word " * 30_000, [0], "<p>x" + "word " * 30_000 + "</p>"),
        ("<p title='a\x0bb'>x\x0b\x01y</p>", [0], '<p title="ab">xy</p>'),
    ],
)  # fmt: skip
def test_subtree(body: str, main: list[int], expected: str) -> None:
    """Main blocks stay with their ancestors, other blocks are removed, and tails stay in place."""
    assert kept(body, *main) == expected


@pytest.mark.parametrize(
    ("body", "main", "image"),
    [
        ("<p>a</p><img src=i><p>b</p>", [0, 1], True),
        ("<p>a</p><img src=i><p>b</p>", [0], False),
        ("<p>a <img src=i></p><p>b</p>", [0], True),
        ("<p>a</p><figure><img src=i><figcaption>b</figcaption></figure>", [0, 1], True),
        ("<img src=i><p>a</p><p>b</p>", [0], False),
        ("<img src=i><p>a</p>", [0], True),  # all is main
        # at the edge: what stands in one element with the text that is kept, and without that which is not
        ("<div><p>a</p><p><img src=i></p></div><p>share</p>", [0], True),
        ("<div><p>a</p></div><p><img src=i></p><p>share</p>", [0], False),
        ("<p>menu</p><article><img src=i><p>a</p></article><p>b</p>", [1], True),
        ("<p>menu</p><article><img src=i><p>teaser</p><p>a</p></article>", [2], False),
        ("<p>a</p><figure><img src=i><figcaption>c</figcaption></figure><p>b</p>", [1], True),
        ("<article><picture><source srcset=i><img src=i></picture><p>a</p></article><p>b</p>", [0], True),
        ("<article><p>a</p><img src=i></article>", [0], True),
        # a caption is not main, but the text around is
        ("<p>a</p><figure><img src=i><figcaption>c</figcaption></figure><p>b</p>", [0, 2], True),
        ("<p>a</p><div><img src=i><p>c</p><p>credit</p></div><p>b</p>", [0, 3], True),
        ("<p>a</p><div><img src=i><p>c</p><p>d</p><p>e</p></div><p>b</p>", [0, 4], False),
        ("<p>a</p><div><img src=i><p><a href=/x>Read this</a></p></div><p>b</p>", [0, 2], False),
        ("<p>a</p><div class=promo><img src=i><p>c</p></div><p>b</p>", [0, 2], False),
        # a figure that ends a text
        (
            "<article><p>a</p><figure><img src=i><figcaption>c</figcaption></figure></article><p>b</p>",
            [0],
            True,
        ),
        ("<div><p>a</p></div><div><figure><img src=i><figcaption>c</figcaption></figure></div>", [0], False),
        ("<p>a</p><div><img src=i><p>c</p></div>", [0], False),
        # the lead picture, with a byline above it
        (
            "<h1>a</h1><p>By <a href=/s>Sam</a></p><figure><img src=i><figcaption>c</figcaption></figure><p>b</p>",
            [0, 3],
            True,
        ),
        ("<h1>a</h1><p>By Sam</p><p>May 3</p><img src=i.jpg alt=Sea><p>b</p>", [0, 3], True),
        ("<h1>a</h1><p>By Sam</p><img src=/avatar/i.jpg><p>b</p>", [0, 2], False),
        ("<h1>a</h1><p>By Sam</p><img src=i.jpg width=40 height=40><p>b</p>", [0, 2], False),
        ("<h1>a</h1><p>By Sam</p><p>x</p><p>y</p><p>z</p><img src=i.jpg><p>b</p>", [0, 5], False),
        # links and buttons are no lines
        (
            "<h1>a</h1><p>Sam</p><p>May 3</p><p><a href=#r>Jump</a></p><button>Print</button><img src=i.jpg><p>b</p>",
            [0, 5],
            True,
        ),
        ("<h1>a</h1><p>By Sam</p>" + "<button>Print</button>" * 8 + "<img src=i.jpg><p>b</p>", [0, 10], False),
        (
            "<h1>a</h1><p>x</p><button>y</button><button>z</button><p>Go</p><a href=/x><img src=i.jpg></a><p>b</p>",
            [0, 5],
            False,
        ),
        ("<p>b</p><article><div class='share icons'><img src=i></div><p>a</p></article>", [1], False),
        ("<p>b</p><article><img class='ad-image' src=i><p>a</p></article>", [1], False),
    ],
)
def test_images_go_with_the_blocks_around(body: str, main: list[int], image: bool) -> None:
    """An image in a block is kept with it. One between blocks is kept with both, or by its place."""
    assert ("<img" in kept(body, *main)) == image


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
    ("markup", "expected"),
    [
        ('<p>so <script type="math/tex">a<b</script> is</p>', '<p>so <script type="math/tex">a<b</script> is</p>'),
        (
            '<p>x</p><script type="math/tex; mode=display">y</script><p>z</p>',
            '<p>x</p><script type="math/tex; mode=display">y</script><p>z</p>',
        ),
        (
            '<p>x</p><div><iframe src="https://www.youtube.com/embed/x" title="t">no frames</iframe></div><p>y</p>',
            '<p>x</p><div><iframe data-src="https://www.youtube.com/embed/x" title="t"></iframe></div><p>y</p>',
        ),
        (
            '<p>x</p><lite-youtube videoid="v" playlabel="t"></lite-youtube><p>y</p>',
            '<p>x</p><lite-youtube videoid="v" playlabel="t"></lite-youtube><p>y</p>',
        ),
    ],
)
def test_formulas_and_players_go_with_the_blocks_around(markup: str, expected: str) -> None:
    """They are in scripts that browsers do not run, and in frames that do not load anything."""
    n = len(page(markup).blocks)
    assert kept(markup, *range(n)) == expected
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
