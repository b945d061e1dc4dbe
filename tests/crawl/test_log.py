"""The log of a crawl has no pages, and warns once if nothing works."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import scrapy
from scrapy.logformatter import LogFormatter
from scrapy.settings import Settings

from scrapy_dripper import Addon
from scrapy_dripper.crawl.log import ADVICE, DripperLogFormatter
from scrapy_dripper.data import FallbackReason
from tests.crawl.crawling import Crawls, Site, page, spider


def said(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    """Return the messages that contain these words."""
    return [message for record in caplog.records if words in (message := record.getMessage())]


def test_items_are_logged_without_their_pages(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Long values are shortened to their beginning and end. Short ones are complete."""
    site.routes["/page/1"] = ("text/html", page(1, "<p>MAIN text goes on.</p>" * 500).encode())
    caplog.set_level(logging.DEBUG, "scrapy.core.scraper")

    (item,) = crawl(spider([site.url("/page/1")]), {"DRIPPER_CONTENT_FIELD": "content"}).items

    (message,) = said(caplog, "Scraped from")
    assert len(item["main_html"]) > 10_000
    assert "MAIN text of page 1" in message
    assert repr(item["url"]) in message
    assert len(message) < 3_000


class Broken:
    """A pipeline that drops some items and fails on the others."""

    def process_item(self, item: Any) -> Any:
        if "drop" in item["url"]:
            raise scrapy.exceptions.DropItem("not wanted")
        raise ZeroDivisionError


def test_items_that_a_pipeline_loses_are_logged_without_their_pages(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.routes["/drop"] = site.routes["/fail"] = ("text/html", page(1, "<p>MAIN text goes on.</p>" * 500).encode())

    crawl(spider([site.url("/drop"), site.url("/fail")]), {"ITEM_PIPELINES": {Broken: 300}})

    messages = [*said(caplog, "Dropped:"), *said(caplog, "Error processing")]
    assert len(messages) == 2
    assert all("MAIN text of page 1" in message and len(message) < 1_500 for message in messages)


class Mine(LogFormatter):
    """A user's log formatter."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, DripperLogFormatter), ({"LOG_FORMATTER": Mine}, Mine), ({"DRIPPER_ENABLED": False}, None)],
)
def test_a_log_formatter_of_the_users_stays(settings: dict[str, Any], expected: type | None) -> None:
    both = Settings(settings)
    default = Settings()["LOG_FORMATTER"]

    Addon().update_settings(both)

    assert both["LOG_FORMATTER"] == (expected or default)


def test_an_item_that_cannot_be_shown_is_named(site: Site) -> None:
    """The item is not lost."""

    class Odd(dict[str, Any]):
        def __iter__(self) -> Any:
            raise ZeroDivisionError

    args = DripperLogFormatter().scraped(Odd(a=1), None, scrapy.Spider("odd"))["args"]

    assert isinstance(args, dict)
    assert "Odd object at" in str(args["item"])


def test_a_crawl_without_main_content_says_so_once(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The warning has the most frequent reason, an example page and advice."""
    result = crawl(spider(site.pages(3)), {"DRIPPER_LIMITS": {"blocks": 1}, "DRIPPER_FALLBACK": "empty"})

    (warning,) = said(caplog, "gave no main content")
    assert "3 of the 3 pages" in warning
    assert "because of oversize" in warning
    assert 'over DRIPPER_LIMITS["blocks"] = 1' in warning
    assert site.url("/page/") in warning
    assert ADVICE[FallbackReason.OVERSIZE] in warning
    assert result.stat("fallback/oversize") == 3


def test_a_long_crawl_says_so_before_its_end(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The warning comes once, after twenty pages."""
    crawl(spider(site.pages(30)), {"DRIPPER_LIMITS": {"blocks": 1}, "DRIPPER_FALLBACK": "empty"})

    (warning,) = said(caplog, "gave no main content")
    assert "20 of the 20 pages so far" in warning


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
