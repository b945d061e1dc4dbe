"""Worker processes that die, hang and use too much memory, in live crawls: only the pages at fault are affected."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import scrapy_dripper.models
from scrapy import signals

from scrapy_dripper.crawl import Dripper
from scrapy_dripper.workers.pool import STAND_INS
from tests.crawl.crawling import TIMES, Crawls, Site, page, workers
from tests.faults.ledger import DOORS, fault_spider

SOFT = ["RAISE", "MEMORY", "NAN", "SHORT", "LONG", "FEWER"]
REASONS = {
    **dict.fromkeys([*SOFT, "EAT"], "engine_error"),
    **dict.fromkeys(["DIE", "EXIT", "SEGFAULT"], "worker_error"),
    **dict.fromkeys(["SLEEP", "STICK"], "timeout"),
}
"""What an engine does on a page that has the word, and the reason of its fallback."""


def urls_of(site: Site, name: str, words: list[str], good: int) -> tuple[list[str], dict[str, str]]:
    """Return the addresses of pages, and the words of those that have some, which come at equal distances."""
    words = words * TIMES
    count, bad = good * TIMES + len(words), {}
    for i, word in enumerate(words):
        number = i * count // len(words)
        bad[str(number)] = word
        site.routes[f"/{name}/{number}"] = ("text/html", page(number, f"<p>{word} </p>").encode())
    site.routes |= {
        path: ("text/html", page(n).encode()) for n in range(count) if (path := f"/{name}/{n}") not in site.routes
    }
    return [site.url(f"/{name}/{number}") for number in range(count)], bad


def test_pages_that_an_engine_fails_for(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """It raises, answers nonsense, takes all memory, hangs, holds the interpreter, ends its process, follows a wild
    pointer: only for the pages that do it. Three crawls of one process, by three doors, do not affect each other. Each
    says once that a page has stopped a worker.
    """
    jobs, expected = [], {}
    crawls = [
        ("middleware", 1, [*SOFT, "DIE"]),
        ("pipeline", 2, ["EAT", "SEGFAULT"]),
        ("callback", 2, ["SLEEP", "STICK"]),
    ]
    for door, processes, words in crawls:
        urls, expected[door] = urls_of(site, door, words, good=40)
        settings = workers(processes, timeout=2 if "STICK" in words else 60, worker_memory=512) | DOORS[door]
        jobs.append((fault_spider(urls, door=door), settings))

    results = crawl.together(*jobs)

    for (door, processes, _), (spider, _), result in zip(crawls, jobs, results, strict=True):
        spider.ledger.balance(result)
        assert spider.ledger.by == {
            id_: ("fallback:html", REASONS[expected[door][id_]]) if id_ in expected[door] else ("truth", None)
            for id_ in map(str, range(len(spider.urls)))
        }
        deaths = sum(REASONS[word] == "worker_error" for word in expected[door].values())
        assert result.stat("workers/worker_error") >= 2 * deaths  # each such page is tried twice
        assert result.stat("workers/max") <= processes + max(STAND_INS, processes)
    assert caplog.text.count("A page stopped a worker process and fell back") == len(crawls)


def test_workers_that_are_killed(crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system kills one now and then: its pages are tried again, and fall back only if they are hit twice."""
    chance, kills = random.Random(15), []

    def kill(item: Any) -> None:
        dripper = Dripper.of(crawl.running())
        assert dripper is not None
        pids = dripper._batcher._pool.pids
        if int(item["id"]) % 10 == 0 and pids:
            kills.append(chance.choice(pids))
            os.kill(kills[-1], signal.SIGKILL)

    spider = fault_spider(site.pages(60 * TIMES))
    opened = spider.ledger.watch
    monkeypatch.setattr(
        spider.ledger, "watch", lambda crawler: (opened(crawler), crawler.signals.connect(kill, signals.item_scraped))
    )
    result = crawl(spider, workers(2, batch_size=4))

    spider.ledger.balance(result)
    assert len(spider.ledger.by) == 60 * TIMES
    assert len(kills) >= 4 * TIMES
    assert result.stat("workers/worker_error") <= len(kills)
    assert 2 * result.stat("fallback/worker_error") <= len(kills)
    assert set(spider.ledger.by.values()) <= {("truth", None), ("fallback:html", "worker_error")}


def test_a_model_that_vanishes_and_comes_back(
    crawl: Crawls, site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When its worker dies, no other one has a model: pages fall back until the folder is there again. The log says so
    once."""
    model, away = tmp_path / "tagger", tmp_path / "away"
    shutil.copytree(Path(scrapy_dripper.models.__path__[0]) / "tagger", model)
    site.routes["/page/20"] = ("text/html", page(20, "<p>GO </p>").encode())
    spider = fault_spider(site.pages(60 * TIMES))
    settings = workers(1, engine="tests.workers.engines.Vanishing", model=str(model), batch_size=4)

    class Return:
        """Brings the model back after some pages without it."""

        def process_item(self, item: Any) -> Any:
            if away.exists() and sum(reason is not None for _, reason in spider.ledger.by.values()) >= 10:
                away.rename(model)
                time.sleep(0.5)  # more than the pause after which an engine is loaded again
            return item

    result = crawl(spider, settings | {"ITEM_PIPELINES": {Return: 900}})

    spider.ledger.balance(result)
    assert len(spider.ledger.by) == 60 * TIMES
    assert set(spider.ledger.by.values()) == {("tagger", None), ("fallback:html", "engine_lost")}
    assert spider.ledger.by[str(60 * TIMES - 1)] == ("tagger", None)
    assert result.stat("fallback/engine_lost") >= 10
    assert caplog.text.count(f"The engine is lost: No tagger model in {model}") == 1


def test_a_fallback_that_fails(crawl: Crawls, site: Site) -> None:
    """If it raises, the result is empty; if it hangs or dies, the item stays as it is. Other pages are not affected."""
    path = "fallback:tests.workers.engines.fallback"
    expected = {
        "RAISE THEN": (path, "engine_error"),
        "RAISE THEN RAISE": ("fallback:empty", "engine_error"),
        "RAISE THEN DIE": ("fallback:none", "worker_error"),
        "RAISE THEN SLEEP": ("fallback:none", "timeout"),
        "RAISE THEN STICK": ("fallback:none", "timeout"),
    }
    urls, bad = urls_of(site, "bad", list(expected), good=30)
    spider = fault_spider(urls)
    result = crawl(spider, workers(2, timeout=2, fallback="tests.workers.engines.fallback"))

    spider.ledger.balance(result)
    assert spider.ledger.by == {
        id_: expected[bad[id_]] if id_ in bad else ("truth", None) for id_ in map(str, range(len(urls)))
    }
