"""Detection of documents that are processed in a worker by default."""

from __future__ import annotations

import pytest

from scrapy_dripper.workers.danger import is_dangerous

TAG = "<p " + " ".join(f"a{i}" for i in range(3_000)) + ">x"
DANGEROUS = {
    "length": "x" * 3_000_001,
    "tags": "<p>x" * 40_001,
    "end tags": "<div>" * 2_000 + "</b>" * 40_000,
    "attributes": TAG * 40,
    "attributes over lines": TAG.replace(" ", "\n") * 40,
    "attributes without spaces": TAG.replace(" ", "/") * 40,
}
HARMLESS = {
    "nothing": "",
    "an article": "<p class=a id=b>" + "word " * 200_000,
    "a script": "<script>" + "if (a && b) { c = 'd e'; }\n" * 50_000 + "</script>",
    "data": "<script type=json>" + '{"a b": "c d", "e": [1, 2, 3]}, ' * 20_000 + "</script>",
    "an image": '<img src="data:image/png;base64,' + ("abcdefghijklmnop" * 4 + "/") * 12_000 + '">',
    "tags": "<p class='a b c' id=d>x" * 39_999,
    "attributes": TAG * 5,
}


@pytest.mark.parametrize("name", DANGEROUS)
@pytest.mark.parametrize("form", [str, str.encode], ids=["text", "bytes"])
def test_dangerous(name: str, form: type) -> None:
    assert is_dangerous(form(DANGEROUS[name]))
    assert is_dangerous(form(DANGEROUS[name]), searched=True)


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.parametrize("form", [str, str.encode], ids=["text", "bytes"])
def test_harmless(name: str, form: type) -> None:
    """A false alarm only costs time, but pages like these are common."""
    assert not is_dangerous(form(HARMLESS[name]))


def test_what_searches_trees_is_slow_earlier() -> None:
    """Trafilatura takes 10 s for nesting that the parser handles in a hundredth of a second."""
    page = "<div>" * 1_000 + "<p>x y</p>" * 5_000
    assert not is_dangerous(page)
    assert is_dangerous(page, searched=True)
    assert not is_dangerous("<p>x</p>" * 900, searched=True)
