"""One thread, which ends by itself, runs all passes of an engine."""

from __future__ import annotations

import gc
import threading

import pytest
from lxml.html import document_fromstring

from scrapy_dripper.engines.one_thread import OneThread
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine
from scrapy_dripper.engines.qwen3.passes import Passes
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.page.profiles import PROFILES
from tests.engines.qwen3.fakes import FakeTagger


def test_what_a_call_returns_and_raises() -> None:
    """Results and exceptions are passed to the caller."""
    thread = OneThread()
    own = thread(threading.current_thread)

    assert thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        thread(divmod, 7, 0)
    assert thread(threading.current_thread) is own is not threading.current_thread()
    thread.close()
    thread.close()
    own.join(10)
    assert not own.is_alive()


def test_calls_after_the_end_raise() -> None:
    """A crawl that ends while a thread labels pages must not leave the thread waiting forever."""
    thread, begun, go = OneThread(), threading.Event(), threading.Event()
    found: list[object] = []

    def slow() -> str:
        begun.set()
        go.wait(10)
        return "done"

    asking = threading.Thread(target=lambda: found.append(thread(slow)))
    asking.start()
    begun.wait(10)
    thread.close()
    with pytest.raises(RuntimeError, match="closed"):
        thread(divmod, 7, 2)
    go.set()
    asking.join(10)

    assert found == ["done"]


def test_a_thread_that_is_forgotten_ends() -> None:
    """An engine that is never closed leaves no thread behind."""
    thread = OneThread()
    own = thread(threading.current_thread)
    del thread
    gc.collect()
    own.join(10)

    assert not own.is_alive()


def test_passes_run_in_one_thread(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calling threads can change, as in a crawl after every 100 MB of pages."""
    seen, run = set(), Passes._run

    def noted(self: Passes, *args: object) -> object:
        seen.add(threading.get_ident())
        return run(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Passes, "_run", noted)
    engine = Qwen3Engine(prepared, FakeTagger())
    page = PROFILES["native"].cut(document_fromstring("<html><body><p>one<p>two</body></html>"), "")
    for _ in range(3):
        asking = threading.Thread(target=engine.label, args=([page],))
        asking.start()
        asking.join()
    engine.close()

    assert len(seen) == 1
