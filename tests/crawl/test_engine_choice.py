"""Which engine labels the pages of a spider, and what the stats say about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.engines.tagger import Tagger
from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Reactor, Site, spider

PREPARED = Path(__file__).parents[1] / "engines" / "qwen3" / "prepared" / "gqa"
QWEN3 = {"DRIPPER_ENGINE": "qwen3", "DRIPPER_MODEL": str(PREPARED)}


@pytest.fixture
def crawl(reactor: Reactor, monkeypatch: pytest.MonkeyPatch) -> Crawls:
    """Run a spider with the engine of its settings; the tagger knows the site's main content, and is 0.9 sure of it."""

    def load(_: Any) -> FakeEngine:
        tagger = FakeEngine(EngineLog())
        tagger.name = "tagger"
        return tagger

    monkeypatch.setattr(Tagger, "load", load)
    return Crawls(reactor)


def test_each_spider_has_its_engine(crawl: Crawls, site: Site) -> None:
    """Set by the spider itself; both run at the same time, and items and stats look the same."""
    urls = site.pages(5)
    fast, careful = spider(urls), spider(urls)
    careful.custom_settings = QWEN3

    tagged, read = crawl.together((fast, {}), (careful, {}))

    assert (tagged.stat("pages/tagger"), read.stat("pages/qwen3")) == (5, 5)
    assert all("MAIN text" in item["markdown"] for item in tagged.items)
    assert [set(item) for item in read.items] == [{"url", "main_html", "markdown"}] * 5
    assert read.stat("qwen3/windows") == 5
    assert 5 <= read.stat("qwen3/passes") <= 5 * 3
    assert read.stat("qwen3/draft") == 5 * 3 >= read.stat("qwen3/draft_kept")
    assert not any(name.startswith("dripper/cascade") for name in read.stats)


@pytest.mark.parametrize(("threshold", "share"), [(0.8, 1.0), (0.95, 0.0)])
def test_a_cascade(crawl: Crawls, site: Site, threshold: float, share: float) -> None:
    """Pages that the tagger is sure of stay with it; the stats say how many of them those are."""
    crawled = crawl(spider(site.pages(4)), {**QWEN3, "DRIPPER_CASCADE": threshold})

    assert crawled.stat("cascade/threshold") == threshold
    assert crawled.stat("cascade/share") == share
    assert crawled.stat("pages/tagger") == 4 * share
    assert crawled.stat("pages/qwen3") == 4 * (1 - share)


def test_a_page_over_the_models_context_falls_back(crawl: Crawls, site: Site) -> None:
    """With the same reason as one over the other limits, and the others are not touched."""
    long = "<p>" + "A long line of many words. " * 2000 + "</p>"
    site.routes["/long"] = ("text/html", f"<html><body>{long}</body></html>".encode())
    crawled = crawl(spider([*site.pages(2), site.url("/long")]), {**QWEN3, "DRIPPER_FALLBACK": "html"})

    assert crawled.stat("fallback/oversize") == 1
    assert crawled.stat("pages/qwen3") == 2
    assert len(crawled.items) == 3
