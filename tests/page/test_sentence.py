"""Custom elements and buttons are inline within a sentence and blocks elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from lxml.html import fragment_fromstring

from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.output import write
from scrapy_dripper.page.nodes import in_sentence
from scrapy_dripper.testing import page

FORMULA = (
    "<mjx-container><mjx-math>{}</mjx-math>"
    "<mjx-assistive-mml><math><mi>x</mi></math></mjx-assistive-mml></mjx-container>"
)


def markdown(html: str) -> str:
    cut = page(html)
    return write(cut, mask_of(cut, np.ones(len(cut.blocks), dtype=np.bool_)), Config()).markdown


@pytest.mark.parametrize(
    ("html", "blocks", "written"),
    [
        ("<p>Click <button>Save</button> to go on.</p>", ["Click Save to go on."], "Click Save to go on."),
        ("<p>To end, press <button>Stop</button></p>", ["To end, press Stop"], "To end, press Stop"),
        ("<p>The <glossary-term>hive</glossary-term> is warm.</p>", ["The hive is warm."], "The hive is warm."),
        ("<p><glossary-term>Hives</glossary-term> are warm.</p>", ["Hives are warm."], "Hives are warm."),
        (
            "<p>See <b><x-ref>this</x-ref></b> <x-ref>that</x-ref>, please.</p>",
            ["See this that, please."],
            "See **this** that, please.",
        ),
        ("<ul><li>Press <button>Stop</button><li>Go</ul>", ["Press Stop\nGo"], "- Press Stop\n- Go"),
        ("<blockquote>Press <button>Stop</button></blockquote>", ["Press Stop"], "> Press Stop"),
        ("<div>Press <x-button>Stop</x-button> now</div>", ["Press Stop now"], "Press Stop now"),
        (f"<p>Let {FORMULA.format('')} be even.</p>", ["Let x be even."], "Let $x$ be even."),
        (f"<p>Let {FORMULA.format('<mjx-mi></mjx-mi>' * 200)} be even.</p>", ["Let x be even."], "Let $x$ be even."),
        (
            "<p>Then <x-a><x-b><span><x-c>deep</x-c></span></x-b></x-a> down.</p>",
            ["Then deep down."],
            "Then deep down.",
        ),
    ],
)
def test_a_sentence_is_one_block(html: str, blocks: list[str], written: str) -> None:
    assert page(html).blocks.text == blocks
    assert markdown(html) == written


@pytest.mark.parametrize(
    ("html", "blocks"),
    [
        ("<div><button>Yes</button><button>No</button></div><p>Text.</p>", ["Yes", "No", "Text."]),
        ("<h2>Title <button>Copy link</button></h2><p>Text.</p>", ["Title", "Copy link", "Text."]),
        ("<div>Share <share-link>by mail</share-link></div><p>Text.</p>", ["Share", "by mail", "Text."]),
        ("<x-card><h2>Title</h2><p>Text.</p></x-card>", ["Title", "Text."]),
        ("<div>Loose text <x-card><p>Text.</p></x-card></div>", ["Loose text", "Text."]),
        ("<p>Before.</p><x-note>A note.</x-note><p>After.</p>", ["Before.", "A note.", "After."]),
        ("<x-tab>One</x-tab> | <x-tab>Two</x-tab>", ["One", "Two"]),
        ("<div>Text <x-a>a</x-a><x-button>b</x-button></div>", ["Text a", "b"]),
        ("<div>Loose text<br><x-card>Text.</x-card></div>", ["Loose text", "Text."]),
        ("<div>Loose text <x-card>One<br>two</x-card></div>", ["Loose text", "One\ntwo"]),
        ("<p>text <code><x-a>code</x-a></code> more</p>", ["text", "code", "more"]),
        (f"<div>Text{'<i></i>' * 40}<x-card>one</x-card></div>", ["Text", "one"]),
    ],
)
def test_elsewhere_they_are_blocks(html: str, blocks: list[str]) -> None:
    assert page(html).blocks.text == blocks


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("one", True),
        ("<i>one</i>", True),
        ("<div>one</div>", False),
        ("<i>one</i><br>", False),
        ("<i></i>" * 200 + "one", True),
        ("<i></i>" * (200 + 1) + "one", False),
    ],
    ids=range(6),
)
def test_what_a_part_of_a_sentence_may_hold(inside: str, expected: bool) -> None:
    """Neither a block nor a line break, nor very much."""
    (element,) = fragment_fromstring(f"<div>The <x-term>{inside}</x-term> is here.</div>")

    assert in_sentence(element) == expected


def test_many_of_them() -> None:
    """For each element, only its neighbours are checked."""
    terms = "<x-term>a</x-term>, " * 20_000

    assert len(page(f"<p>Terms: {terms}</p>").blocks) == 1
    assert len(page("<p>Terms: " + "<x-term>" * 200 + "a" + "</x-term>" * 200 + " end.</p>").blocks) == 1
