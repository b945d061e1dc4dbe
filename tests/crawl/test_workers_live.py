"""Live crawls with worker processes, through every component, and with hostile pages."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import scrapy

from scrapy_dripper.crawl import Dripper
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.workers.pool import SharedModel
from tests.crawl.crawling import PATIENCE, Crawls, EngineLog, FakeEngine, Reactor, Site, page, spider, workers
from tests.engines.qwen3.fakes import PREPARED


def test_slow_pages_wait_for_the_others_and_not_the_others_for_them(crawl: Crawls, site: Site, tmp_path: Path) -> None:
    """Four pages are slow until all others have been extracted, including those of their batches: the event loop, which
    says when, goes on as well.
    """
    flag, good = tmp_path / "flag", site.pages(60)
    slow = [site.url(f"/slow/{number}") for number in range(4)]
    for n in range(4):
        site.routes[f"/slow/{n}"] = ("text/html", page(n, f"<p>THEN WAIT-FOR {flag} </p>").encode())
    urls = [*good[:3], slow[0], *good[3:20], slow[1], slow[2], *good[20:40], slow[3], *good[40:]]

    fall = {"limits": {"blocks": 1}}  # which lets the fallback have them
    requests = [
        scrapy.Request(url, meta={"dripper": fall if url in slow else {}}, priority=-n) for n, url in enumerate(urls)
    ]
    out: list[str] = []

    class Pipeline:
        def process_item(self, item: Any) -> Any:
            out.append(item["url"])
            if len(out) == len(good):
                flag.touch()
            return item

    settings = workers(1, timeout=120, fallback="tests.workers.engines.fallback")
    result = crawl(spider(requests), {**settings, "ITEM_PIPELINES": {Pipeline: 900}})

    assert sorted(out[: len(good)]) == sorted(good)
    assert sorted(out[len(good) :]) == sorted(slow)
    assert result.stat("workers/timeout") == 0
    assert {item["by"]["source"] for item in result.items if item["url"] in slow} == {
        "fallback:tests.workers.engines.fallback"
    }


@pytest.mark.parametrize(("encoding", "number"), [("cp1251", 0), ("koi8-r", 1), ("shift_jis", 1)])
def test_the_encoding_that_a_response_was_made_with(crawl: Crawls, site: Site, encoding: str, number: int) -> None:
    """An explicit encoding takes precedence over a wrong header."""
    text = {"shift_jis": "日本語の文章です。"}.get(encoding, "Съешь же ещё этих мягких булок") * 3
    site.routes["/file"] = ("text/html; charset=ascii", f"<article><p>MAIN {text}</p></article>".encode(encoding))

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        main = await Dripper.from_crawler(self.crawler).extract(response.replace(encoding=encoding))
        yield {"text": main.text}

    engine = {"DRIPPER_PROCESSES": number} if number == 0 else workers(number)
    result = crawl(spider([site.url("/file")], parse), {**engine, "ADDONS": {"scrapy_dripper.Addon": 500}})
    assert [item["text"] for item in result.items] == [f"MAIN {text}"]


def test_pages_are_prepared_while_the_model_reads(crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No prompts are answered here before those of the next batch wait, so the model need not pause between batches."""
    label, both = SharedModel.label, threading.Barrier(2)

    def paired(model: SharedModel, header: dict[str, object], parts: list[bytes]) -> Any:
        if parts:
            both.wait(PATIENCE)
        return label(model, header, parts)

    monkeypatch.setattr(SharedModel, "label", paired)
    large = {"DRIPPER_ENGINE": "qwen3", "DRIPPER_MODEL": str(PREPARED), "DRIPPER_TIMEOUT": 2 * PATIENCE}
    result = crawl(spider(site.pages(6)), workers(2, batch_size=1) | large)

    assert result.stat("pages/qwen3") == 6
    assert not both.broken


def test_each_spider_has_its_engine(reactor: Reactor, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each spider sets its own. Both run at the same time, with similar items and stats."""
    tagger = FakeEngine(EngineLog())
    tagger.name = "tagger"
    monkeypatch.setattr(Tagger, "load", lambda _: tagger)
    urls = site.pages(5)
    fast, careful = spider(urls), spider(urls)
    careful.custom_settings = {"DRIPPER_ENGINE": "qwen3", "DRIPPER_MODEL": str(PREPARED)}

    tagged, read = Crawls(reactor).together((fast, {}), (careful, {}))

    assert (tagged.stat("pages/tagger"), read.stat("pages/qwen3")) == (5, 5)
    assert all("MAIN text" in item["markdown"] for item in tagged.items)
    assert [set(item) for item in read.items] == [{"url", "main_html", "markdown"}] * 5
    assert 5 <= read.stat("qwen3/passes") <= 5 * 3
    assert read.stat("qwen3/draft") == 5 * 3 >= read.stat("qwen3/draft_kept")
