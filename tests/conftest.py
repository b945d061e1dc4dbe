"""A site, a reactor and an engine for crawls, and Hypothesis settings: the same examples on every run or, on request,
many new ones.

``HYPOTHESIS_PROFILE=search pytest -k property`` looks for counter-examples nobody has seen; what it finds becomes a
test case of its own. A run that must be reproducible, such as CI's, cannot depend on chance.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import scrapy.core.downloader.contextfactory  # noqa: F401 (looks at all modules there are, so it comes before most)
from hypothesis import HealthCheck, settings

from scrapy_dripper.workers import process

if TYPE_CHECKING:  # the tests of most folders need no crawl
    from tests.crawl.crawling import Crawls, EngineLog, Reactor, Site

EXAMPLES = 30
"""Examples of a property. They are the same on every run, so what they find, they find the first time."""

settings.register_profile("same", derandomize=True, deadline=None, max_examples=EXAMPLES)
settings.register_profile(
    "search", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

if "COVERAGE_PROCESS_CONFIG" in os.environ:  # `make coverage` measures the child process too, which gets to know little
    process._ENVIRONMENT |= {"COVERAGE_PROCESS_CONFIG"}


def pytest_collection_finish() -> None:
    """Let the garbage collector look only at what tests make. Thousands of collected tests take a quarter of the CPU
    time of those that make many objects, as it looks at all of them again and again.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def reactor() -> Iterator[Reactor]:
    """The reactor of all crawls in this process, which can only be started once."""
    from tests.crawl.crawling import Reactor

    running = Reactor()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def _site() -> Site:
    from tests.crawl.crawling import Site

    return Site()


@pytest.fixture
def site(_site: Site) -> Site:
    """The local site, without what earlier tests have put there."""
    _site.reset()
    return _site


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names such as ``site.example``, whose servers are on this machine."""
    from tests.internet import connect_internet

    connect_internet(put=monkeypatch.setattr)


@pytest.fixture
def crawl(reactor: Reactor, engine: EngineLog) -> Crawls:
    """Run a spider with the fake engine: ``crawl(spider, settings)``."""
    from tests.crawl.crawling import Crawls

    return Crawls(reactor)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineLog]:
    """The fake engine, which replaces every engine that is loaded during a test."""
    from tests.crawl.crawling import EngineLog, FakeEngine

    log = EngineLog()
    monkeypatch.setattr("scrapy_dripper.extractor.load_engine", lambda config: FakeEngine(log))
    yield log
    log.free.set()
