"""The pipeline for items that carry their own HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import scrapy

from scrapy_dripper import PageItem
from tests.crawl.crawling import Crawls, EngineLog, Site, page, parse_with, spider, warnings
from tests.crawl.test_spider_middleware import MAIN, PIPELINE, with_html


def items(*them: Any) -> type[scrapy.Spider]:
    """Return a spider that yields items with the HTML of other pages, like a client of an API."""

    return spider(["data:application/json,[]"], parse_with(*them))


@dataclass
class Record:
    url: str
    html: str | bytes | None = None
    main_html: str | None = None
    markdown: str | None = None


@pytest.mark.parametrize("cls", [dict, Record])
def test_html_on_an_item_becomes_main_content(crawl: Crawls, cls: Any) -> None:
    """Text or bytes in ``html``, on items of any type."""
    text = page(1)
    htmls = [text, *(kind(text.encode()) for kind in (bytes, bytearray, memoryview)), text.encode("utf-16")]

    found = crawl(items(*(cls(url="https://example.com/", html=html) for html in htmls)), PIPELINE).items

    assert len(found) == len(htmls)
    for item in found:
        main = item if cls is dict else vars(item)
        assert main["markdown"].strip() == MAIN
        assert MAIN in main["main_html"]
        assert main["html"] in htmls


def test_a_class_gets_its_metadata(crawl: Crawls) -> None:
    """By its name, without a setting, as from a response."""

    class Stored(PageItem):
        html = scrapy.Field()

    (item,) = crawl(items(Stored(html=page(1))), PIPELINE).items

    assert (item["metadata"]["title"], item["title"], item["text"]) == ("Page 1", "Page 1", MAIN)


def test_links_resolve_against_the_items_url(crawl: Crawls) -> None:
    """The field ``url`` is the URL of the page."""
    html = page(1).replace("nothing in", '<a href="b">nothing</a> in')

    (item,) = crawl(items({"url": "https://example.com/a/", "html": html}), PIPELINE).items

    assert "https://example.com/a/b" in item["markdown"]


def test_items_without_anything_to_do_are_left_alone(crawl: Crawls, engine: EngineLog) -> None:
    """They are never dropped or changed. One without a page gets empty fields: feeds take their columns from it."""
    alone = [{"url": "https://a.b/"}, {"html": None}, {"html": page(1), "main_html": "mine", "markdown": "mine"}]
    empty = [{"html": ""}, {"html": b"%PDF-1.4"}]

    found = crawl(items(*(dict(item) for item in [*alone, *empty])), PIPELINE).items

    assert sorted(found, key=repr) == sorted(
        [*alone, *(item | {"main_html": None, "markdown": None} for item in empty)], key=repr
    )
    assert engine.batches == []


class Broken(dict[str, Any]):
    """An item that raises on any access."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("not now")


def test_an_item_that_cannot_be_read_goes_on_as_it_is(crawl: Crawls, engine: EngineLog) -> None:
    """It is counted, and no item is lost."""
    result = crawl(items(Broken(html=page(1), markdown=""), {"html": page(2)}), PIPELINE)

    assert len(result.items) == 2
    assert [item for item in result.items if type(item) is Broken] == [Broken(html=page(1), markdown="")]
    assert result.stat("bugs") == 1


def test_with_the_addon_pages_are_extracted_once(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The pipeline does not change items that the spider middleware has filled."""
    result = crawl(spider(site.pages(3), with_html), {"ITEM_PIPELINES": PIPELINE["ITEM_PIPELINES"]})

    assert sum(map(len, engine.batches)) == 3
    assert all("MAIN" in item["markdown"] for item in result.items)


def test_html_of_another_type_is_warned_about_once_and_counted(crawl: Crawls, caplog: pytest.LogCaptureFixture) -> None:
    """An ItemLoader without ``TakeFirst()`` creates lists."""
    odd: list[object] = [["<p>x</p>"], {"p": 1}, 5, object()]
    result = crawl(items(*({"html": html} for html in odd * 2)), PIPELINE)

    assert [set(item) for item in result.items] == [{"html"}] * 8
    assert result.stat("skipped/not_text") == 8
    (warning,) = warnings(caplog)
    assert "use TakeFirst()" in warning
    assert result.stat("bugs") == 0
