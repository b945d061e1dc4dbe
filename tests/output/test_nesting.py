"""Structures nested as deeply as the parser lets them: the page is still labelled and written."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

import pytest

from scrapy_dripper import Extractor
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import plain_text

TEXT = "<p>The tides rise and fall twice a day, and sailors plan their passages by them, as they always have.</p>" * 6


def notes(n: int) -> str:
    """Return footnotes, each in the one before it."""
    marks = "".join(f'<a href="#fn{i}"><sup>{i}</sup></a>' for i in range(n))
    opened = "".join(f'<div id="fn{i}" class="footnote"><p>{i}. Text {i}.</p>' for i in range(n))
    return f"<p>Tides{marks}</p>{opened}{'</div>' * n}"


NESTED: dict[str, Callable[[int], str]] = {
    "footnotes": notes,
    "lists": lambda n: "<ul><li>x" * n,
    "quotes": lambda n: "<blockquote><p>x" * n,
    "tables": lambda n: "<table><tr><td>a<td>x" * n,
    "definitions": lambda n: "<dl><dt>a<dd>x" * n,
    "inline": lambda n: "<p>" + "<b><i><s><sub>x" * n,
    "details": lambda n: "<details><summary>a</summary>x" * n,
    "figures": lambda n: "<figure><figcaption>c</figcaption>x" * n,
    "captions": lambda n: "<figure><img src=i.png><figcaption>x" * n,
    "ruby": lambda n: "<p>" + "<ruby>x" * n,
    "math": lambda n: "<p><math>" + "<mrow><mi>x</mi>" * n,
}


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return Extractor()


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [300, 2_000])
def test_deep_nesting(extractor: Extractor, kind: str, depth: int) -> None:
    """300 nested footnotes once ended in a RecursionError, and the page went to the fallback."""
    (found,) = extractor.extract([TEXT + NESTED[kind](depth)])

    assert (found.source, found.error) == ("tagger", None)
    assert "sailors" in (found.markdown or "")


@pytest.mark.parametrize("kind", NESTED)
def test_the_content_list_is_not_as_deep(kind: str) -> None:
    """The text is kept at any nesting, and recursive code can walk over the result."""
    found = content_list(parse(NESTED[kind](500)))

    assert plain_text(found).count("x") == 500
    assert max(accumulate(1 if bracket == "(" else -1 for bracket in re.findall(r"[()]", repr(found)))) < 200
