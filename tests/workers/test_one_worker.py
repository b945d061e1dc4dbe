"""The worker of an extractor: which documents it processes, with the same results."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper import extractor as extraction
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers import process
from tests.workers.children import ARTICLE, LARGE, SECONDS, SENTENCE, SMALL, Make, comes_true, gone
from tests.workers.engines import AllMain

pytestmark = pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them")


def pid_of(extractor: Extractor) -> int | None:
    """Return the process ID of an extractor's worker."""
    pool = extractor._worker.pool
    return next(iter(pool.pids), None) if pool is not None else None


@pytest.fixture
def every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker read all pages, not only large ones."""
    monkeypatch.setattr(extraction, "MOST_TAGS", -1)
    monkeypatch.setattr(extraction, "MOST_TAGS_FOR_FALLBACK", -1)


def test_only_large_pages_go_there(extractor: Make) -> None:
    """Other pages do not start the worker."""
    one = extractor()
    assert one.extract([SMALL])[0].text == "one\ntwo"
    one.extract([ARTICLE + "<i></i>" * 15_000])
    assert pid_of(one) is None

    (found,) = one.extract([ARTICLE + "<i></i>" * 25_000])
    assert SENTENCE.strip() in (found.text or "")
    assert found.details["work"]["pid"] == pid_of(one) != os.getpid()


@pytest.mark.usefixtures("every_page")
def test_it_is_reused(extractor: Make) -> None:
    one = extractor()
    one.extract([SMALL])
    first = pid_of(one)

    found = one.extract([SMALL, "", b"%PDF-1.4", LARGE, b"<p>caf\xe9 au lait", SMALL])

    assert [x.fallback_reason for x in found] == [None, "empty_body", "not_html", None, None, None]
    assert found[4].text == "café au lait"
    assert {x.details.get("work", {}).get("pid", first) for x in found} == {first} == {pid_of(one)}


def test_without_processes_there_is_none(extractor: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MAIN", Path("no-such-file"))
    one = extractor(processes=0)
    assert one.extract([LARGE])[0].fallback_reason is None


def test_a_callable_stays_here(extractor: Make) -> None:
    """It is the user's own code, and need not be importable elsewhere."""
    seen = []

    def mine(html: str, url: str) -> str:
        seen.append(os.getpid())
        return "<p>mine"

    one = extractor(limits={"blocks": 1}, fallback=mine, metadata_field="metadata")
    (found,) = one.extract([f"<title>Tides</title>{LARGE}"])
    assert (found.text, found.source.rpartition(".")[2]) == ("mine", "mine")
    assert found.metadata is not None
    assert found.metadata.title == "Tides"
    assert seen == [os.getpid()]


@pytest.mark.usefixtures("every_page")
def test_the_options_of_a_page_count_there(extractor: Make) -> None:
    one = extractor()
    (found,) = one.extract([Document(ARTICLE, config=Config(markdown={"types": ("title",)}))])
    assert found.text == "Tides"


@pytest.mark.usefixtures("every_page")
@pytest.mark.parametrize(
    ("word", "reason", "error"),
    [("HANG", FallbackReason.TIMEOUT, "DRIPPER_TIMEOUT"), ("DIE", FallbackReason.WORKER_ERROR, "ended by SIGKILL")],
)
def test_a_page_that_stops_it(extractor: Make, word: str, reason: FallbackReason, error: str) -> None:
    """Its fallback runs in another worker, which the next page also uses."""
    one = extractor(timeout=2.0 if word == "HANG" else SECONDS, metadata_field="metadata")
    bad, good = one.extract([f"{ARTICLE}<p>{word}", SMALL])
    assert (bad.fallback_reason, bad.source) == (reason, "fallback:trafilatura")
    assert SENTENCE.strip() in (bad.text or "")
    assert error in (bad.error or "")
    assert good.text == "one\ntwo"


def test_the_fallback_can_die_too(extractor: Make, fake: Callable[[str], None]) -> None:
    """The extraction is empty and has the reason."""
    one = extractor()
    fake("ready(); asked(); os.kill(os.getpid(), signal.SIGKILL)")
    (bad,) = one.extract([LARGE])

    assert (bad.source, bad.text) == ("fallback:none", None)
    assert bad.fallback_reason is FallbackReason.WORKER_ERROR
    assert (bad.error or "").count("SIGKILL") == 2


def test_pages_of_an_engine_object_stay_in_this_process(extractor: Make) -> None:
    """Their fallbacks run in the worker if they are large."""
    one = Extractor(Config(timeout=SECONDS, limits={"blocks": 1}), AllMain(None))
    assert one.extract([SMALL])[0].fallback_reason is FallbackReason.OVERSIZE
    assert pid_of(one) is None
    assert SENTENCE.strip() in (one.extract([LARGE])[0].text or "")
    assert pid_of(one) is not None
    one.close()


@pytest.mark.parametrize("trouble", ["no interpreter", "no file", "no model"])
def test_it_continues_without_a_worker(
    trouble: str,
    extractor: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """There is one warning for any number of pages."""
    options: dict[str, Any] = {"metadata_field": "metadata"}
    if trouble == "no model":
        options |= {"engine": "tests.workers.engines.LoadedOnce", "model": str(tmp_path / "flag")}
    one = extractor(**options)
    if trouble != "no model":
        monkeypatch.setattr(sys, "executable", {"no interpreter": "", "no file": "/no/such/python"}[trouble])
    with caplog.at_level(logging.WARNING):
        found = one.extract([LARGE, LARGE])

    assert [x.fallback_reason for x in found] == [None] * 2
    assert all(SENTENCE.strip() in (x.text or "") for x in found)
    words = [r.getMessage().partition(" (")[0] for r in caplog.records if r.name.startswith("scrapy_dripper")]
    assert words == ["The worker process for large pages cannot be started"]


def test_an_extractor_that_is_never_closed() -> None:
    """Its worker ends with it."""
    one = Extractor(Config(engine="tests.workers.engines.AllMain"))
    one.extract([LARGE])
    pid = pid_of(one)
    assert pid is not None
    del one
    assert comes_true(lambda: gone(pid))
