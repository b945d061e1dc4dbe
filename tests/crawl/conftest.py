"""A site, a reactor and an engine for tests of the Scrapy components."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Reactor, Site


@pytest.fixture(scope="session")
def reactor() -> Iterator[Reactor]:
    running = Reactor()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def _site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()


@pytest.fixture
def site(_site: Site) -> Site:
    _site.reset()
    return _site


@pytest.fixture
def crawl(reactor: Reactor, engine: EngineLog) -> Crawls:
    """Run a spider with the fake engine: ``crawl(spider, settings)``."""
    return Crawls(reactor)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineLog]:
    """The fake engine, which replaces every engine that is loaded during a test."""
    log = EngineLog()
    monkeypatch.setattr("scrapy_dripper.extractor.load_engine", lambda config: FakeEngine(log))
    yield log
    log.free.set()
