"""Live crawls with worker processes, through every component, and with hostile pages."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import scrapy

from scrapy_dripper.crawl import Dripper
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.workers import pool as pools
from scrapy_dripper.workers.pool import SharedModel
from tests.crawl.crawling import PATIENCE, Crawls, EngineLog, FakeEngine, Reactor, Site, page, spider, workers
from tests.engines.qwen3.fakes import PREPARED


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Check that all workers end with the crawl."""
    started: list[Any] = []
    start = pools.Pool._start

    def noted(pool: Any, alone: bool = False) -> Any:
        process = start(pool, alone)
        started.append(process)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools.Pool, "_start", noted)
        yield
    for process in started:
        process._popen.wait(30)


@contextmanager
def lags_of(reactor: Reactor) -> Iterator[list[float]]:
    """Record repeatedly by how many seconds the event loop is late."""
    lags, stop = [0.0], threading.Event()

    async def measure() -> None:
        while not stop.is_set():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - before - 0.01)

    done = asyncio.run_coroutine_threadsafe(measure(), reactor.loop)
    try:
        yield lags
    finally:
        stop.set()
        done.result(30)


def hanging(number: object, then: str = "") -> bytes:
    """Return a page that makes a worker hang."""
    return page(number, f"<p>STICK {then}</p>").encode()


def test_pages_that_hang_hold_nothing_up(
    crawl: Crawls, reactor: Reactor, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """Three of 57 pages of one host: the others have the model's content, those their fallback, and the event loop runs
    on, though the interpreter of a worker does not."""
    urls = site.pages(57)
    hung = (5, 27, 49)
    for number in hung:
        site.routes[f"/page/{number}"] = ("text/html", hanging(number))

    begun: list[int] = []

    with lags_of(reactor) as lags:

        def parse(self: scrapy.Spider, response: Any) -> Any:
            begun.append(len(lags))  # before the first page, the crawl waits for the first worker
            yield {"url": response.url}

        result = crawl(spider(urls, parse), workers(timeout=2))
        assert max(lags[begun[0] :]) < 1.0

    assert sorted(item["url"] for item in result.items) == sorted(urls)
    bad = {item["url"]: item for item in result.items if item["by"]["source"] != "truth"}
    assert sorted(bad) == sorted(site.url(f"/page/{number}") for number in hung)
    for item in result.items:
        assert f"MAIN text of page {item['url'].rpartition('/')[2]}," in item["markdown"]
    for item in bad.values():
        assert (item["by"]["source"], item["by"]["fallback_reason"]) == ("fallback:html", "timeout")
    assert result.stat("pages/truth") == 54
    assert result.stat("fallback/timeout") == 3
    assert result.stat("workers/timeout") >= 3
    assert caplog.text.count("A page stopped a worker process and fell back") == 1


def test_slow_pages_wait_for_the_others_and_not_the_others_for_them(crawl: Crawls, site: Site, tmp_path: Path) -> None:
    """Four pages are slow until all others have been extracted, including those of their batches."""
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
