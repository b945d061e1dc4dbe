"""The index of a crawl in a real browser: sorting, filters, strips of labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from tests.inspection.browser import AXE, WHY_NOT, Tab, launched

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

Opened = Callable[..., Tab]
COMMON = {"source": "tagger", "fallback_reason": None, "blocks": 4, "main_blocks": 2, "strip": "0990"}
ITEMS = [
    {"url": "https://e.org/a", "title": "Anchors", "text": "x" * 500, "page_type": "article", "quality": 0.9},
    {"url": "https://e.org/b", "title": "Boats", "text": "x" * 90, "page_type": "listing", "quality": 0.3},
    {"url": "https://e.org/c", "title": "Caves", "text": "x" * 2_000, "page_type": "article", "quality": 0.7},
    {"url": "javascript:ran=1", "title": "<img src=x onerror=ran=2>", "text": "", "quality": None}
    | {"source": "fallback:empty", "fallback_reason": "timeout", "strip": None},
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    """Open the index of items."""
    contexts = []

    def open_file(items: Sequence[dict[str, Any]] = ITEMS, scheme: str = "light") -> Tab:
        path, index = tmp_path / "items.jsonl", tmp_path / "index.html"
        path.write_text("".join(json.dumps({**COMMON, **item}) + "\n" for item in items), encoding="utf-8")
        assert main(["inspect", str(path), "-o", str(index)]) == 0
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": 1300, "height": 800}))
        return Tab(contexts[-1].new_page(), index, "html[data-ready]")

    yield open_file
    for context in contexts:
        context.close()


def names(tab: Tab) -> list[str]:
    """Return the titles of the rows by their first letter."""
    return [text.strip()[0] for text in tab.page.locator("td.page").all_inner_texts()]


def test_columns_sort_both_ways_and_what_is_unknown_comes_last(opened: Opened) -> None:
    tab = opened()
    assert names(tab) == ["B", "C", "A", "<"]

    tab.page.click("#by-quality button")
    assert names(tab) == ["A", "C", "B", "<"]
    assert tab.page.get_attribute("#by-quality", "aria-sort") == "descending"
    tab.page.click("#by-length button")
    assert names(tab) == ["C", "A", "B", "<"]
    assert tab.page.get_attribute("#by-quality", "aria-sort") is None
    tab.page.focus("#by-page button")
    tab.page.keyboard.press("Enter")
    assert names(tab) == ["<", "A", "B", "C"]
    assert tab.wrong == []


def test_words_are_found_in_every_column(opened: Opened) -> None:
    tab = opened()

    for words, left in (("boat", ["B"]), ("ARTICLE", ["C", "A"]), ("timeout", ["<"]), ("e.org/c", ["C"])):
        tab.page.fill("#find", words)
        assert names(tab) == left
    assert tab.page.inner_text("#shown") == "1 of 4 pages"
    tab.page.fill("#find", "")
    assert len(names(tab)) == 4


def test_the_summary_is_above_the_table(opened: Opened) -> None:
    said = opened().page.locator("#story dd").all_inner_texts()
    assert said[:2] == ["4", "tagger 3 (75.0%), fallback:empty 1 (25.0%)"]


def test_labels_are_seen_as_a_strip_and_said(opened: Opened) -> None:
    tab = opened()

    strips = tab.page.locator(".strip")
    assert strips.count() == 3
    assert strips.first.get_attribute("aria-label") == "50 % of the blocks are main"
    assert strips.first.evaluate("node => getComputedStyle(node).backgroundImage").count("color") + 1 >= 4


def test_items_are_text_and_only_web_addresses_are_links(opened: Opened) -> None:
    tab = opened()

    links = [link.get_attribute("href") for link in tab.page.locator("#rows a").all()]
    assert sorted(links) == ["https://e.org/a", "https://e.org/b", "https://e.org/c"]
    assert tab.page.locator("#rows img").count() == 0
    assert tab.page.evaluate("window.ran") is None
    assert tab.wrong == []


def test_a_long_table_is_shown_in_parts(opened: Opened) -> None:
    tab = opened([{"url": f"https://e.org/{i}", "title": f"Page {i}", "quality": i / 450} for i in range(450)])

    assert len(names(tab)) == 200
    tab.page.click("#more")
    tab.page.click("#more")
    assert len(names(tab)) == 450
    assert not tab.page.is_visible("#more")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: cd tests/inspection/axe and say npm ci")
def test_axe_finds_nothing_serious(opened: Opened, scheme: str) -> None:
    tab = opened(scheme=scheme)

    assert tab.violations() == []
