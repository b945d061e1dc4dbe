"""Crawls in real processes: how they start, stop with Ctrl-C (pitfalls 3 and 5), and reject settings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import scrapy

from scrapy_dripper.config import FALLBACKS
from tests.crawl.crawling import PATIENCE, Site, page

ROOT = Path(__file__).parents[2]
KINDS: dict[str, dict[str, Any]] = {"CrawlerProcess": {}, "AsyncCrawlerProcess": {}}
if scrapy.version_info >= (2, 19):  # From then on with a download handler that every installation has.
    KINDS["reactorless"] = {"TWISTED_REACTOR_ENABLED": False}
if find_spec("uvloop"):
    KINDS["uvloop"] = {"ASYNCIO_EVENT_LOOP": "uvloop.Loop"}


class Process:
    """A running ``crawl_process.py``."""

    def __init__(self, **job: Any) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tests.crawl.crawl_process", json.dumps({"engine": "good", "settings": {}, **job})],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.logged: list[str] = []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.popen.stdout, self.said), (self.popen.stderr, self.logged))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, lines: list[str]) -> None:
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def wait_for(self, words: str, count: int = 1) -> None:
        """Wait until a number of lines with these words have been printed or logged."""

        def found() -> bool:
            return sum(words in line for line in [*self.said, *self.logged]) >= count

        with self._changed:
            assert self._changed.wait_for(found, PATIENCE), "\n".join([words, *self.said, *self.logged])

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.popen.send_signal(signal.SIGINT)

    def release(self) -> None:
        """Let the held engine continue."""
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def end(self, patience: float = PATIENCE) -> int:
        """Wait for the end of the process and return its exit status."""
        status = self.popen.wait(patience)
        for reader in self._readers:
            reader.join(PATIENCE)
        return status

    @property
    def items(self) -> list[dict[str, Any]]:
        """Return the scraped items."""
        return [json.loads(line.removeprefix("item ")) for line in self.said if line.startswith("item ")]


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that are ended with the test."""
    processes: list[Process] = []

    def run(kind: str, settings: dict[str, Any] | None = None, **job: Any) -> Process:
        processes.append(Process(process=kind, settings={**KINDS[kind], **(settings or {})}, **job))
        return processes[-1]

    yield run
    for process in processes:
        process.popen.kill()
        process.popen.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_process_works(start: Start, site: Site, kind: str) -> None:
    """There is a Twisted reactor, started in either way, or none. Each process also runs two crawls at once."""
    process = start(kind, urls=site.pages(5), crawls=2)

    assert process.end() == 0
    assert process.said[-1] == "finished"
    assert sorted(item["url"] for item in process.items) == sorted(site.pages(5) * 2)
    assert all("MAIN text of page " + item["url"][-1] in item["markdown"] for item in process.items)
    ours = [line for line in process.logged if "AiohttpDownloadHandler is experimental" not in line]
    assert not [line for line in ours if "WARNING" in line or "ERROR" in line or "Traceback" in line]


def test_p03_ctrl_c_while_a_batch_waits_for_more_pages(start: Start, site: Site) -> None:
    """The batch is sent before it is full, and the crawl ends normally."""
    process = start("AsyncCrawlerProcess", {"DRIPPER_BATCH_WAIT": 1}, urls=site.pages(3))
    process.wait_for("parsed", 3)

    process.interrupt()

    assert process.end() == 0
    assert len(process.items) == 3
    assert all(item["markdown"] for item in process.items)


def test_p05_ctrl_c_once_finishes_what_waits_and_says_how_much(start: Start, site: Site) -> None:
    """Every downloaded page is extracted, and the log explains the delay."""
    process = start("AsyncCrawlerProcess", {"DRIPPER_BATCH_SIZE": 3}, urls=site.pages(6), engine="held")
    process.wait_for("parsed", 6)
    process.wait_for("labelling")
    process.interrupt()

    process.wait_for("6 pages are still waiting to be extracted")
    process.release()

    assert process.end() == 0
    assert len(process.items) == 6
    assert all(item["markdown"] for item in process.items)
    assert sum("still wait" in line for line in process.logged) == 1


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
            "DRIPPER_ENGINE must be one of 'tagger', 'qwen3' or a dotted path to a callable (got 'oracle')",
        ),
        ({"DRIPPER_MODEL": "/no/such/folder"}, "real", "ModelError: "),
        ({"DRIPPER_MODEL": "/no/such/folder", "DRIPPER_PROCESSES": 1}, "real", "ModelError: "),
        (
            {"DRIPPER_ENGINE": "tests.crawl.engines.nothing", "DRIPPER_PROCESSES": 1},
            "real",
            "ModelError: DRIPPER_ENGINE is 'tests.crawl.engines.nothing', which cannot be imported",
        ),
        (
            {"DRIPPER_FALLBACK": "tests.crawl.engines.nothing", "DRIPPER_PROCESSES": 1},
            "real",
            "ConfigError: DRIPPER_FALLBACK is 'tests.crawl.engines.nothing', which cannot be imported",
        ),
        (
            {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
            "good",
            "ConfigError: TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'",
        ),
    ],
    ids=[
        "value",
        "name",
        "engine",
        "model",
        "model of a worker",
        "engine of a worker",
        "fallback of a worker",
        "reactor",
    ],
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


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_crawl_that_is_suspended_gives_no_page_up(start: Start, site: Site, tmp_path: Path) -> None:
    """The time for which it is suspended does not count, although it is longer than the limit."""
    limit, flag = 4.0, tmp_path / "flag"
    site.routes["/page/0"] = ("text/html", page(0, f"<p>WAIT-FOR {flag}</p>").encode())
    settings = {
        "DRIPPER_PROCESSES": 1,
        "DRIPPER_ENGINE": "tests.crawl.engines.Truth",
        "DRIPPER_LIMITS": {"blocks": 1},  # which lets the fallback have the page, which waits for the flag
        "DRIPPER_FALLBACK": "tests.crawl.engines.fallback",
        "DRIPPER_META_FIELD": "by",
    }
    process = start("AsyncCrawlerProcess", {**settings, "DRIPPER_TIMEOUT": limit}, urls=site.pages(1), engine="real")
    process.wait_for("parsed")
    time.sleep(0.5)

    process.popen.send_signal(signal.SIGSTOP)
    time.sleep(1.5 * limit)
    process.popen.send_signal(signal.SIGCONT)
    flag.touch()

    assert process.end() == 0
    assert [item["by"]["fallback_reason"] for item in process.items] == ["oversize"]
