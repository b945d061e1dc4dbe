"""The log of a crawl has no pages, and warns once if nothing works."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import scrapy

from scrapy_dripper.addon import DripperLogFormatter
from scrapy_dripper.crawl.stats import ADVICE
from scrapy_dripper.data import FallbackReason
from tests.crawl.crawling import Crawls, Site, page, spider


def said(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    """Return the messages that contain these words."""
    return [message for record in caplog.records if words in (message := record.getMessage())]


class Broken:
    """A pipeline that drops some items and fails on others."""

    def process_item(self, item: Any) -> Any:
        if item["url"].endswith("drop"):
            raise scrapy.exceptions.DropItem("not wanted")
        if item["url"].endswith("fail"):
            raise ZeroDivisionError
        return item


def test_items_are_logged_without_their_pages(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Long values are shortened to their beginning and end, also of items that a pipeline loses. Short ones are
    complete.
    """
    body = page(1, "<p>MAIN text goes on.</p>" * 500).encode()
    site.routes |= dict.fromkeys(("/keep", "/drop", "/fail"), ("text/html", body))
    urls = [site.url(path) for path in site.routes]
    caplog.set_level(logging.DEBUG, "scrapy.core.scraper")

    settings = {"DRIPPER_CONTENT_FIELD": "content", "ITEM_PIPELINES": {Broken: 300}}
    (item,) = crawl(spider(urls), settings).items

    assert len(item["main_html"]) > 10_000
    for words, url in zip(("Scraped from", "Dropped:", "Error processing"), urls, strict=True):
        (message,) = said(caplog, words)
        assert "MAIN text of page 1" in message
        assert repr(url) in message
        assert len(message) < 3_000


def test_an_item_that_cannot_be_shown_is_named(site: Site) -> None:
    """The item is not lost."""

    class Odd(dict[str, Any]):
        def __iter__(self) -> Any:
            raise ZeroDivisionError

    args = DripperLogFormatter().scraped(Odd(a=1), None, scrapy.Spider("odd"))["args"]

    assert isinstance(args, dict)
    assert "Odd object at" in str(args["item"])


@pytest.mark.parametrize(("pages", "none"), [(3, "3 of the 3 pages"), (30, "20 of the 20 pages so far")])
def test_a_crawl_without_main_content_says_so_once(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture, pages: int, none: str
) -> None:
    """The warning has the most frequent reason, an example page and advice. In a long crawl, it comes early."""
    settings = {"DRIPPER_LIMITS": {"blocks": 1}, "DRIPPER_FALLBACK": "empty"}
    result = crawl(spider(site.pages(pages)), settings)

    (warning,) = said(caplog, "gave no main content")
    assert none in warning
    assert "because of oversize" in warning
    assert 'over DRIPPER_LIMITS["blocks"] = 1' in warning
    assert site.url("/page/") in warning
    assert ADVICE[FallbackReason.OVERSIZE] in warning
    assert result.stat("fallback/oversize") == pages


@pytest.mark.parametrize("odd", [0, 1])
def test_a_crawl_with_main_content_says_nothing(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture, odd: int
) -> None:
    """Some pages always fall back."""
    for number in range(odd):
        site.routes[f"/page/{number}"] = ("text/html", page(number, "<p>x</p>" * 50).encode())

    crawl(spider(site.pages(2)), {"DRIPPER_LIMITS": {"blocks": 20}, "DRIPPER_FALLBACK": "empty"})

    assert said(caplog, "gave no main content") == []


def test_there_is_advice_for_every_reason() -> None:
    assert set(ADVICE) == set(FallbackReason)
