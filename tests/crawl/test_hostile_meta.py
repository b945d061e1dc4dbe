"""A request's meta may come from outside. It breaks no feed, batch or log."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy

from scrapy_dripper.config import Config, ConfigError
from tests.crawl.crawling import Crawls, EngineLog, Site, spider, warnings


class Yes:
    """An object that is equal to everything, like an array with one equal element."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("option", ["fallback", "title", "links", "comments", "favor", "oversize"])
def test_objects_that_are_equal_to_a_value_are_rejected(option: str) -> None:
    config, wrong, *_ = Config().overridden({option: Yes()})
    assert wrong == 1
    assert config == Config()


NAMES = ["\ud800", 'x><evil a="1"/', "a\0b", "a b", "1st", "__class__", "x" * 101, "xml\n", "a=b", 5, b"x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_field_has_a_name_that_every_feed_can_write(name: Any) -> None:
    with pytest.raises(ConfigError, match="DRIPPER_MARKDOWN_FIELD"):
        Config(markdown_field=name)
    _, wrong, *_ = Config().overridden({"markdown_field": name})
    assert wrong == 1


@pytest.mark.parametrize("name", ["markdown", "main_html", "_md", "body.md", "main-html", "größe", "正文", "x2"])
def test_names_of_any_language_are_taken(name: str) -> None:
    assert Config(markdown_field=name).markdown_field == name


def test_fields_that_requests_name_fill_neither_log_nor_stats(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture
) -> None:
    class Page(scrapy.Item):
        url = scrapy.Field()
        main_html = scrapy.Field()

    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield Page(url=response.url)

    metas = ({"dripper": {"markdown_field": f"field{number}"}} for number in range(60))
    requests = [scrapy.Request(url, meta=meta) for url, meta in zip(site.pages(60), metas, strict=True)]
    result = crawl(spider(requests, parse))

    assert len(result.items) == 60
    assert len(warnings(caplog)) == 1
    assert result.stat("field_errors/other") == 20
    assert sum(name.startswith("dripper/field_errors/") for name in result.stats) == 41
