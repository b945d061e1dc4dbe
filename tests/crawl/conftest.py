"""Crawls in their own processes: ``start(kind, settings, urls=...)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import scrapy

from tests.crawl.crawl_process import crawl as crawl_in_process
from tests.crawl.processes import Program

KINDS: dict[str, dict[str, Any]] = {"CrawlerProcess": {}, "AsyncCrawlerProcess": {}}
if scrapy.version_info >= (2, 19):  # From then on with a download handler that every installation has.
    KINDS["reactorless"] = {"TWISTED_REACTOR_ENABLED": False}
if find_spec("uvloop"):
    KINDS["uvloop"] = {"ASYNCIO_EVENT_LOOP": "uvloop.Loop"}

Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that are ended with the test."""
    programs: list[Program] = []

    def run(kind: str, settings: dict[str, Any] | None = None, **job: Any) -> Program:
        job = {"engine": "good", "crawls": 1, "check": False, **job}
        values = {**KINDS.get(kind, {}), **(settings or {})}
        programs.append(
            Program(crawl_in_process, kind, values, *(job[name] for name in ("urls", "engine", "crawls", "check")))
        )
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
