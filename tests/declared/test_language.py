"""The language of pages that declare none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper import Config, Extractor
from scrapy_dripper.declared.metadata import detected_language

TEXTS = {
    "de": "Zweimal am Tag steigt das Wasser bis an die alte Mauer, bleibt dort so lange, wie man für eine Tasse Tee "
    "braucht, und zieht sich dann wieder über den Sand zurück. Die Tafel im Hafenamt sagt, wann das geschieht, und in "
    "hundert Jahren hat sie sich nur ein einziges Mal geirrt, im Winter des großen Sturms, von dem man erzählt.",
    "en": "Twice a day the sea comes up to the old wall, stays there for the time that it takes to drink a cup of tea, "
    "and goes out again over the sand. The table in the harbour office says when, and in a hundred years it has been "
    "wrong only once, in the winter of the great storm, of which the people of the village still talk to this day.",
}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", None),
        (TEXTS["en"][:290], None),
        (TEXTS["en"][:310], "en"),
        ("x = 1; y[i] += z(3) " * 30, None),
        ((TEXTS["en"] + "海水每天两次涨到旧墙边，停留一杯茶的时间。") * 3, None),
    ],
)
def test_a_text_tells_its_language(text: str, language: str | None) -> None:
    """But for one that is short, code, or Chinese among as much English."""
    assert detected_language(text) == language


@given(st.text(st.characters(), max_size=700))
def test_no_text_is_too_odd(text: str) -> None:
    found = detected_language(text + "\ud800" * 300)

    assert found is None or len(found) == 2


def test_a_page_that_declares_no_language_has_that_of_its_main_content() -> None:
    html = "<title>Die Flut</title><nav><a href=/>Home</a></nav><h1>Die Flut</h1><p>{}</p><p>{}</p>"
    page = html.format(TEXTS["de"], "Ende. ".join([TEXTS["de"]] * 3))
    extractor = Extractor(Config(metadata_field="metadata"))

    found, declared = extractor.extract([page, "<html lang=nl>" + page])

    assert found.metadata is not None
    assert found.metadata.language == "de"
    assert declared.metadata is not None
    assert declared.metadata.language == "nl"
