"""Captions of figures: keeping and dropping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import document_fromstring

from scrapy_dripper.choose.captions import with_captions
from scrapy_dripper.choose.given import Given
from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.testing import FakeEngine

TEXT = "<p>MAIN The old mill by the river grinds again, after forty years of rest.</p>"
FIGURE = "<figure><img src='mill.jpg' width=600 height=400><figcaption>The mill in May</figcaption></figure>"
MENU = "<nav><p>Home</p></nav>"


def known(page: Page, captions: str) -> Given:
    return Given(page, np.full(len(page.blocks), 0.5, dtype=np.float32), captions=captions)


def labels(html: str, captions: str) -> dict[str, bool]:
    """Return the final label of each block by its text. Blocks with the word MAIN were main."""
    page = cut(document_fromstring(f"<body>{html}</body>"), "")
    main = np.array(["MAIN" in text for text in page.blocks.text])
    return dict(zip(page.blocks.text, with_captions(known(page, captions), main).tolist(), strict=True))


def extract(html: str, captions: str) -> Extraction:
    engine = FakeEngine(main=lambda text: "MAIN" in text)
    extractor = Extractor(Config(captions=captions, processes=0), engine=engine)
    return extractor.extract([Document(html, "http://example.com/")])[0]


@pytest.mark.parametrize(
    "figure",
    [
        FIGURE,
        "<figure><picture><img src=mill.jpg></picture><div><figcaption>The mill in May</figcaption></div></figure>",
        "<div class='wp-caption alignleft'><img src=mill.jpg><p class='wp-caption-text'>The mill in May</p></div>",
        f"<figure><img src=a.jpg><figcaption>At night</figcaption></figure>{FIGURE}",
        f"<div class=wide>{FIGURE}</div>",
        f"<p hidden>Enlarge</p>{FIGURE}",
        "<figure><table><tr><th>Year<tr><td>1920</table><figcaption>The mill in May</figcaption></figure>",
    ],
)
def test_a_caption_in_the_text_can_be_kept(figure: str) -> None:
    page = MENU + TEXT + figure.replace("1920", "MAIN 1920") + TEXT.replace("again", "once more")

    assert labels(page, "keep")["The mill in May"]
    assert not labels(page, "auto")["The mill in May"]


@pytest.mark.parametrize(
    "page",
    [
        TEXT + MENU + FIGURE,
        FIGURE + MENU + TEXT,
        TEXT + "<aside><p>More pictures</p>" + FIGURE + "</aside>" + TEXT,
        TEXT + FIGURE.replace("<figcaption", "<figcaption hidden") + TEXT,
    ],
)
def test_a_caption_elsewhere_is_not_kept(page: str) -> None:
    assert not labels(page, "keep")["The mill in May"]


def test_captions_of_pictures_can_be_dropped() -> None:
    page = TEXT + FIGURE.replace("in May", "in MAIN") + TEXT
    table = page.replace("<img src='mill.jpg' width=600 height=400>", "<table><tr><td>MAIN 1920</table>")

    assert not labels(page, "drop")["The mill in MAIN"]
    assert labels(page, "auto")["The mill in MAIN"]
    assert labels(table, "drop")["The mill in MAIN"]


def test_a_page_of_captions_is_not_emptied() -> None:
    gallery = FIGURE.replace("in May", "in MAIN") + MENU

    assert labels(gallery, "drop")["The mill in MAIN"]


def test_an_extraction_has_the_caption_with_its_image() -> None:
    page = f"<title>Mills</title>{MENU}{TEXT}{FIGURE}{TEXT.replace('again', 'once more')}"

    kept, left = extract(page, "keep").markdown or "", extract(page, "auto").markdown or ""

    assert "mill.jpg" in left
    assert "The mill in May" not in left
    assert kept.index("mill.jpg") < kept.index("The mill in May") < kept.index("once more")


@given(st.lists(st.sampled_from([TEXT, FIGURE, MENU, "<figure>", "</figure>", "<figcaption>", "x"]), max_size=12))
def test_other_blocks_keep_their_labels(parts: list[str]) -> None:
    page = cut(document_fromstring(f"<body>{''.join(parts)}<p>end</p></body>"), "")
    main = np.array(["MAIN" in text for text in page.blocks.text])

    kept, dropped = (with_captions(known(page, value), main) for value in ("keep", "drop"))

    assert (kept | main == kept).all()
    assert (dropped & main == dropped).all()
    assert dropped.any() == main.any()
    assert (with_captions(known(page, "auto"), main) == main).all()
