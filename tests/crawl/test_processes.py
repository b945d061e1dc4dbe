"""Crawls in processes of their own: how they start, and that they reject settings."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy

from scrapy_dripper.checks import ENGINES, FALLBACKS
from tests.crawl.conftest import KINDS, Start
from tests.crawl.crawling import Site


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_process_works(start: Start, site: Site, kind: str) -> None:
    """There is a Twisted reactor, started in either way, or none. Each process also runs two crawls at once."""
    process = start(kind, urls=site.pages(5), crawls=2, check=True)

    assert process.end() == 0
    assert process.said[-2:] == ["left", "finished"]
    assert sorted(item["url"] for item in process.items) == sorted(site.pages(5) * 2)
    assert all("MAIN text of page " + item["url"][-1] in item["markdown"] for item in process.items)
    ours = [line for line in process.logged if "AiohttpDownloadHandler is experimental" not in line]
    assert not [line for line in ours if "WARNING" in line or "ERROR" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("settings", "engine", "sentence"),
    [
        (
            {"DRIPPER_FALLBACK": "nothing"},
            "good",
            f"ConfigError: DRIPPER_FALLBACK must be one of {', '.join(map(repr, FALLBACKS))}, a dotted path to a "
            "callable or a callable (got 'nothing')",
        ),
        ({"DRIPPER_BACH_SIZE": 5}, "good", "ConfigError: DRIPPER_BACH_SIZE is not a setting of scrapy-dripper"),
        (
            {"DRIPPER_ENGINE": "oracle"},
            "good",
            f"DRIPPER_ENGINE must be one of {', '.join(map(repr, ENGINES))} or a dotted path to a callable (got",
        ),
        ({"DRIPPER_MODEL": "/no/such/folder"}, "real", "ModelError: "),
        ({"DRIPPER_MODEL": "/no/such/folder", "DRIPPER_PROCESSES": 1}, "real", "ModelError: "),
        (
            {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
            "good",
            "ConfigError: TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'",
        ),
    ],
    ids="value name engine model worker's-model reactor".split(),
)
def test_a_crawl_that_cannot_work_stops_at_its_start(
    start: Start, site: Site, settings: dict[str, Any], engine: str, sentence: str
) -> None:
    """No page is downloaded, the exit status shows the failure, and the last line says what to do."""
    process = start("CrawlerProcess", settings, urls=site.pages(1), engine=engine)

    process.end()

    assert site.seen == []
    # Before 2.16, Scrapy's CrawlerProcess does not tell such an end from another.
    assert process.said == ["failed" if scrapy.version_info >= (2, 16) else "finished"]
    assert any(sentence in line for line in process.logged), "\n".join(process.logged)
