"""All blocks of a structure get the same label. Structures used for layout are labelled block by block."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose.headings import with_headings
from scrapy_dripper.choose.scored import Labels, ScoredPage, found_in
from scrapy_dripper.choose.siblings import with_alike
from scrapy_dripper.choose.structures import with_whole_structures
from scrapy_dripper.structures.callouts import ALERTS, CALLOUT_FAMILIES, callout_names, has_callout_class
from scrapy_dripper.testing import page

PARAGRAPHS = (
    "The ferry leaves the northern pier at nine and comes back after dark, and in winter it does not leave at all when "
    "the wind blows from the west for more than a day.",
    "Its captain has crossed the sound eleven thousand times by his own count, which he keeps in a notebook that hangs "
    "from a nail beside the wheel.",
    "Passengers bring their own bread and buy the tea on board, because the kitchen burnt in the year of the flood and "
    "nobody has built another one since.",
    "In the evening the boat is tied to the old crane, the lamps are put out one after the other, and the gulls take "
    "the deck until the morning.",
)


def labelled(body: str, chances: dict[str, float], main: set[str], rule: str = "whole") -> list[str]:
    """Return which of the other texts are main on a page with main paragraphs, given their probabilities."""
    cut = page(body)
    p = np.array([chances.get(text, 0.95) for text in cut.blocks.text], dtype=np.float32)
    before = np.array([text in main or text not in chances for text in cut.blocks.text], dtype=np.bool_)
    rules = {"whole": with_whole_structures, "alike": with_alike, "headings": with_headings}
    after = rules[rule](ScoredPage(cut, Labels(p)), before)
    return [text for text, stays in zip(cut.blocks.text, after, strict=True) if stays and text not in PARAGRAPHS]


def between(structure: str) -> str:
    return f"<div><p>{PARAGRAPHS[0]}</p>{structure}<p>{PARAGRAPHS[1]}</p></div>"


def last(structure: str, after: str = "") -> str:
    return f"<main><div><p>{PARAGRAPHS[0]}</p>{structure}</div>{after}</main>"


# ---------------------------------------------------------------------- structures
SPLIT = {
    "code of lines": "<pre><div>first one</div><div>second one</div></pre>",
    "code with numbers": '<table class="highlighttable"><tr><td><pre>first one</pre></td><td><pre>second one</pre></td>'
    "</tr></table>",
    "box of code": '<div data-lang="sh"><code>first one</code><br><br><code>second one</code></div>',
    "lines of an editor": '<div class="view-lines"><div class="view-line">first one</div>'
    '<div class="view-line">second one</div></div>',
    "nested list": "<ul><li>first one<ul><li>second one</li></ul></li></ul>",
    "paragraphs in items": "<ol><li><p>first one</p></li><li><p>second one</p></li></ol>",
    "code in an item": "<ol><li>first one<pre>second one</pre></li></ol>",
    "definitions": "<dl><dt>first one</dt><dd>second one</dd></dl>",
    "table": "<table><tr><th><p>first one</p><p>second one</p></th><th>third</th></tr>"
    "<tr><td>4</td><td>5</td></tr></table>",
    "call-out": '<div class="admonition note"><p class="admonition-title">first one</p><p>second one</p></div>',
    "figure": "<figure><p>first one</p><figcaption>second one</figcaption></figure>",
    "folded": "<details><summary>first one</summary><p>second one</p></details>",
    "quotation": "<blockquote><p>first one</p><p>second one</p></blockquote>",
}


@pytest.mark.parametrize("structure", SPLIT.values(), ids=SPLIT)
def test_a_structure_in_running_text_becomes_main_as_a_whole(structure: str) -> None:
    found = labelled(between(structure), {"first one": 0.45, "second one": 0.55}, {"second one"})
    assert {"first one", "second one"} <= set(found)


@pytest.mark.parametrize("structure", SPLIT.values(), ids=SPLIT)
def test_a_structure_elsewhere_gets_its_majority_label(structure: str) -> None:
    body = f"<div>{structure}</div><div><p>{PARAGRAPHS[0]}</p></div>"
    other = {"third": 0.1, "4": 0.1, "5": 0.1}

    assert labelled(body, {"first one": 0.1, "second one": 0.1, **other}, {"first one"}) == []
    assert {"first one", "second one"} <= set(
        labelled(body, {"first one": 0.9, "second one": 0.8, **other}, {"second one"})
    )


@pytest.mark.parametrize(
    "layout",
    [
        "<ul><li><div>Jo, 12 posts</div><p>A post of many words that the model is sure of.</p></li></ul>",
        "<ul><li><h3>Jo, 12 posts</h3><p>A post of many words that the model is sure of.</p></li></ul>",
        "<table><tr><td>Jo, 12 posts<td>A post of many words that the model is sure of.<tr><td><p>.<td><hr></table>",
        '<ul><li><a href="/a">Jo, 12 posts</a><p><a href="/b">A post of many words that the model is sure of.</a></ul>',
    ],
    ids=["thread", "cards", "table", "links"],
)
def test_layout_is_labelled_block_by_block(layout: str) -> None:
    post = "A post of many words that the model is sure of."
    assert labelled(between(layout), {"Jo, 12 posts": 0.25, post: 0.9}, {post}) == [post]


LINKS = "<ul><li><p><a href='/a'>first one</a></p><li><p><a href='/b'>second one</a></p></ul>"


@pytest.mark.parametrize(
    ("before", "least"),
    [("<p>Two tools help with this:</p>", 0.2), ("<p>两个工具：</p>", 0.2), ("<h2>Tools</h2>", 0.35)],
)
def test_a_list_of_links_that_the_text_leads_up_to_is_part_of_it(before: str, least: float) -> None:
    text = re.sub("<.*?>", "", before)
    body = between(before + LINKS)
    assert labelled(body, {text: 0.9, "first one": least + 0.05, "second one": least + 0.02}, {text})[1:3] == [
        "first one",
        "second one",
    ]
    assert labelled(body, {text: 0.9, "first one": least - 0.05, "second one": least - 0.02}, {text}) == [text]
    assert labelled(last(before + LINKS), {text: 0.9, "first one": 0.45, "second one": 0.4}, {text})[-1] == text


@pytest.mark.parametrize(
    "before",
    [
        "<p>A paragraph about the day before.</p>",
        "<p>Read more:</p>",
        "<h3>Related stories</h3>",
        "<p>Lesen Sie auch:</p>",
    ],
)
def test_links_to_other_pages_within_a_text_are_labelled_one_by_one(before: str) -> None:
    text = re.sub("<.*?>", "", before)
    chances = {text: 0.9, "first one": 0.6, "second one": 0.4}
    assert labelled(between(before + LINKS), chances, {text, "first one"}) == [text, "first one"]


@pytest.mark.parametrize(
    ("structure", "chances", "main", "expected"),
    [
        (SPLIT["nested list"], {"first one": 0.1, "second one": 0.2}, set(), []),
        ("<pre><div>shown</div><div hidden>twin</div></pre>", {"shown": 0.5, "twin": 0.5}, {"shown"}, ["shown"]),
        (
            '<div class="highlight"><button>Copy this code to the clipboard</button><pre>x = 1</pre></div>',
            {"Copy this code to the clipboard": 0.1, "x = 1": 0.4},
            set(),
            ["x = 1"],
        ),
    ],
    ids=["unlikely", "hidden", "label of a box of code"],
)
def test_what_does_not_become_main_in_running_text(
    structure: str, chances: dict[str, float], main: set[str], expected: list[str]
) -> None:
    assert labelled(between(structure), chances, main) == expected


@pytest.mark.parametrize(
    "closing",
    [
        "<pre>first one</pre>",
        '<div class="admonition tip"><p>first one</p></div>',
        "<blockquote>first one</blockquote>",
        "<ul><li>first one</ul>",
        "<h2>See also</h2><ul><li><a href='/a'>first one</a></ul>",
        "<h2>参考资料</h2><ul><li><a href='/a'>first one</a></ul>",
    ],
)
def test_structures_that_end_a_text_stay_with_it(closing: str) -> None:
    assert "first one" in labelled(last(closing), {"first one": 0.35}, set())


@pytest.mark.parametrize(
    "closing",
    [
        "<figure><figcaption>first one</figcaption></figure>",
        "<ul class='post-copyright'><li>first one</ul>",
        "<h2>Related articles</h2><ul><li><a href='/a'>first one</a></ul>",
        "<div class='author'>first one</div>",
    ],
)
def test_common_endings_of_pages_do_not_stay(closing: str) -> None:
    assert "first one" not in labelled(last(closing), {"first one": 0.35}, set())


# ---------------------------------------------------------------------- blocks of one shape
def _reviews(n: int) -> str:
    products = "".join(f"<div class='product'><p class='pros'>Pros {i}</p></div>" for i in range(n))
    return f"<div><p>{PARAGRAPHS[0]}</p>{products}<p>{PARAGRAPHS[1]}</p></div>"


@pytest.mark.parametrize(("probability", "follows"), [(0.45, True), (0.2, False)])
def test_a_likely_block_follows_those_of_its_shape(probability: float, follows: bool) -> None:
    found = labelled(_reviews(4), {"Pros 2": probability}, set(), "alike")

    assert found == [f"Pros {i}" for i in range(4) if follows or i != 2]


def test_the_last_card_of_a_listing_follows_the_others() -> None:
    """Each card has its own element, and nothing after the last one is main."""
    cards = "".join(f"<li><div class=card><h3>Title {i}</h3><p>Text {i}</p></div></li>" for i in range(4))
    texts = [f"{what} {i}" for i in range(4) for what in ("Title", "Text")]
    assert labelled(f"<ul>{cards}</ul>", {"Title 3": 0.35, "Text 3": 0.45}, set(), "alike") == texts


@pytest.mark.parametrize(
    ("heading", "probability", "kept"),
    [
        ("<h2>The pier</h2>", 0.6, True),
        ("<div><h2><span>The pier</span></h2></div>", 0.6, True),
        ("<h2>The pier</h2>", 0.2, False),
        ("<h2><a href=/pier>The pier</a></h2>", 0.6, False),
        ("<div><p>Read on</p><h2>The pier</h2></div>", 0.6, False),  # heads something else
        ("<p>The pier</p>", 0.6, False),
        (f"<aside><header><h4>The pier</h4></header><p>{PARAGRAPHS[0]}</p></aside>", 0.24, True),
        (f"<section><div><h4>The pier</h4></div><p>{PARAGRAPHS[0]}</p></section>", 0.24, True),
        (f"<aside><header><h4>The pier</h4></header><p>{PARAGRAPHS[0]}</p></aside>", 0.1, False),
        (f"<aside><header><h4>The pier</h4></header><p>{PARAGRAPHS[0]}</p><p>Read on</p></aside>", 0.24, False),
    ],
)
def test_a_heading_follows_the_text_that_it_heads(heading: str, probability: float, kept: bool) -> None:
    found = labelled(between(heading), {"The pier": probability, "Read on": 0.1}, set(), "headings")

    assert found == (["The pier"] if kept else [])


_TOKENS = st.sampled_from([*CALLOUT_FAMILIES, *map(str.upper, ALERTS), *ALERTS, "callout-tip", "fade", "card", ""])


@given(st.lists(_TOKENS, max_size=4), st.sampled_from([" ", "\n", "\u00a0", "-"]))
def test_call_outs_have_one_of_the_names_that_are_searched(tokens: list[str], between: str) -> None:
    name = between.join(tokens)
    assert found_in(name, callout_names) or not has_callout_class(name)
