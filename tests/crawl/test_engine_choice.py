"""The choice of the engine for each spider, and its stats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.engines.tagger import Tagger
from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Reactor, Site, spider

PREPARED = Path(__file__).parents[1] / "engines" / "qwen3" / "prepared"
QWEN3 = {"DRIPPER_ENGINE": "qwen3", "DRIPPER_MODEL": str(PREPARED)}


@pytest.fixture
def crawl(reactor: Reactor, monkeypatch: pytest.MonkeyPatch) -> Crawls:
    """Run a spider with the engine of its settings. The tagger knows the site's main content, with a probability of
    0.9."""

    def load(_: Any) -> FakeEngine:
        tagger = FakeEngine(EngineLog())
        tagger.name = "tagger"
        return tagger

    monkeypatch.setattr(Tagger, "load", load)
    return Crawls(reactor)


def test_each_spider_has_its_engine(crawl: Crawls, site: Site) -> None:
    """Each spider sets its own. Both run at the same time, with similar items and stats."""
    urls = site.pages(5)
    fast, careful = spider(urls), spider(urls)
    careful.custom_settings = QWEN3

    tagged, read = crawl.together((fast, {}), (careful, {}))

    assert (tagged.stat("pages/tagger"), read.stat("pages/qwen3")) == (5, 5)
    assert all("MAIN text" in item["markdown"] for item in tagged.items)
    assert [set(item) for item in read.items] == [{"url", "main_html", "markdown"}] * 5
    assert 5 <= read.stat("qwen3/passes") <= 5 * 3
    assert read.stat("qwen3/draft") == 5 * 3 >= read.stat("qwen3/draft_kept")
