"""The number of workers: as many as pages need, started one by one. A model that keeps failing has pauses."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.workers import pool as model
from scrapy_dripper.workers import pool as module
from scrapy_dripper.workers import process
from scrapy_dripper.workers.pool import ClosedError, Pool, SharedModel, Workers, processes
from scrapy_dripper.workers.process import StartError, WorkerError
from tests.workers.children import Pools, comes_true, gone, own, task, worker_of

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them"),
    pytest.mark.usefixtures("light"),
]

Begin = Callable[..., "Future[Any]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Return a function that sends a page to a pool in its own thread."""
    with ThreadPoolExecutor(16) as threads:
        yield lambda pool, text, **how: threads.submit(lambda: pool.extract([task(text)], **how)[0])


def test_a_first_worker_that_is_killed_is_started_again(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    """An accident at the start does not leave a crawl without workers."""
    wait, turns = process.Process.wait_until_ready, iter(range(2))

    def killed(worker: process.Process, seconds: float) -> None:
        if next(turns, None) is not None:
            worker.kill()
        wait(worker, seconds)

    monkeypatch.setattr(process.Process, "wait_until_ready", killed)
    pool = pools()
    pool.start()
    assert len(pool.pids) == 1


def test_there_are_no_more_than_are_needed(pools: Pools) -> None:
    """There is none before the first page, and one for consecutive pages, although four are allowed."""
    pool = pools(4)
    assert pool.pids == []
    workers = {worker_of(pool.extract([task("one")])[0]) for _ in range(20)}
    assert pool.pids == list(workers)


def test_another_one_starts_while_pages_wait(pools: Pools, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """They start one by one, up to the maximum."""
    counts: list[int] = []
    start = Pool._start

    def counted(pool: Pool, alone: bool = False) -> Any:
        counts.append(len(pool.pids))
        process = start(pool, alone)
        assert len(pool.pids) == counts[-1] + 1  # no other one was started meanwhile
        return process

    monkeypatch.setattr(Pool, "_start", counted)
    pool = pools(3)
    answers = [begin(pool, "PAUSE") for _ in range(16)]
    found = {worker_of(answer.result()) for answer in answers}
    assert counts == [0, 1, 2]
    assert len(found) == len(pool.pids) == 3


def test_idle_ones_end_but_for_one(pools: Pools, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pools(3)
    answers = [begin(pool, "PAUSE") for _ in range(3)]
    workers = {worker_of(answer.result()) for answer in answers}
    assert len(workers) > 1
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    assert comes_true(lambda: len(pool.pids) == 1)
    (last,) = pool.pids
    assert comes_true(lambda: all(gone(pid) for pid in workers - {last}))
    time.sleep(0.5)
    assert pool.pids == [last]
    assert not gone(last)


def test_stand_ins_are_bounded(pools: Pools, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for any number of slow pages."""
    monkeypatch.setattr(process, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(module, "STAND_INS", 2)
    pool = pools(1)
    answers = [begin(pool, "SLOW") for _ in range(6)]
    most = 0
    while not all(answer.done() for answer in answers):
        most = max(most, len(pool.pids))
        time.sleep(0.02)
    assert most == 3
    assert {answer.result().text for answer in answers} == {"SLOW"}


def test_a_page_that_is_tried_alone_holds_up_no_other(
    pools: Pools, begin: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It does not count as one of the workers from the start, even before it is known to be slow."""
    monkeypatch.setattr(process, "SLOW_SECONDS", 3_600)
    pool = pools(1)
    pool.start()
    flag = tmp_path / "flag"
    alone = [begin(pool, f"WAIT-FOR {flag} ", alone=True) for _ in range(6)]
    assert comes_true(lambda: pool.aside_count == module.STAND_INS - 1)
    for _ in range(3):
        assert pool.extract([task("one")])[0].text == "one"
    assert len(pool.pids) <= module.STAND_INS
    assert not any(answer.done() for answer in alone)
    flag.touch()
    assert [answer.result().fallback_reason for answer in alone] == [None] * 6


def test_a_page_that_is_tried_alone_shares_a_worker_where_no_other_can_be_started(
    pools: Pools, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pools(1)
    pool.start()

    def refuse(*args: Any) -> Any:
        raise StartError("no more processes")

    monkeypatch.setattr(module, "Process", refuse)
    assert [worker_of(begin(pool, "one", alone=True).result())] == pool.pids


def test_closed_while_pages_wait_and_work(pools: Pools, begin: Begin) -> None:
    """No caller waits any longer, and no process is left."""
    pool = pools(1)
    pool.start()
    (pid,) = pool.pids
    answers = [begin(pool, "SLEEP") for _ in range(3)]
    time.sleep(0.3)
    pool.close()
    for answer in answers:
        with pytest.raises((ClosedError, StartError)):
            answer.result(30)
    with pytest.raises(ClosedError):
        pool.extract([task("one")])
    assert comes_true(lambda: gone(pid))
    assert pool.pids == []


def test_closed_while_a_worker_starts(
    pools: Pools, begin: Begin, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("time.sleep(600)")
    pool = pools(1)
    waiting = begin(pool, "one")
    assert comes_true(lambda: len(pool.pids) == 1)
    (pid,) = pool.pids
    pool.close()
    with pytest.raises((ClosedError, StartError)):
        waiting.result(30)
    assert comes_true(lambda: gone(pid))


def test_killed_while_it_is_idle_or_at_work(pools: Pools, begin: Begin) -> None:
    """If it is working, its batch gets an error. If it is idle, nothing is affected."""
    pool = pools(1)
    for _ in range(2):
        pid = worker_of(pool.extract([task("one")])[0])
        os.kill(pid, signal.SIGTERM)
        assert comes_true(partial(gone, pid))
    pool.start()
    (found,) = pool.extract([task("one")])
    assert found.text == "one"
    assert pool.pids == [worker_of(found)] != [pid]
    waiting = begin(pool, "SLEEP")
    time.sleep(0.3)
    os.kill(pool.pids[0], signal.SIGTERM)
    with pytest.raises(WorkerError, match="ended by SIGTERM"):
        waiting.result(30)


@pytest.mark.parametrize("fails", ["to start", "to get ready"])
def test_a_further_worker_that_fails(
    fails: str, pools: Pools, begin: Begin, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page gets one of the existing workers."""
    pool = pools(2)
    pool.start()
    tried = []

    def start(*args: Any) -> Any:
        tried.append(args)
        if fails == "to start":
            raise StartError("no more processes")
        return process.Process(*args)

    fake("sys.exit('no room')")
    monkeypatch.setattr(module, "Process", start)
    answers = [begin(pool, "PAUSE") for _ in range(4)]
    assert {worker_of(answer.result()) for answer in answers} == set(pool.pids)
    assert 1 <= len(tried) <= 4  # once by each: nobody tries again and again


def test_functions_that_a_worker_cannot_find() -> None:
    """They are in the main script, local, or their name leads to another function."""

    def local(html: str, url: str) -> str:
        return ""

    def main(html: str, url: str) -> str:
        return ""

    def other(html: str, url: str) -> str:
        return ""

    main.__module__, main.__qualname__ = "__main__", "main"
    other.__module__, other.__qualname__ = "tests.workers.engines", "fallback"
    for function in (local, main, other, lambda html, url: ""):
        with pytest.raises(ConfigError, match=r"or set DRIPPER_PROCESSES = 0"):
            Workers(own(fallback=function))


def test_how_many_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is one less than the available cores, but both of two. A large model gets two more than that."""
    for cores, expected, of_large_model in ((1, 1, 3), (2, 2, 3), (3, 2, 4), (32, 31, 33)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, cores=cores: set(range(cores)), raising=False)
        assert processes(Config()) == expected
        assert processes(Config(engine="qwen3")) == of_large_model  # workers that wait for the model need no core
    assert processes(Config(processes=5)) == 5


LABELS: tuple[dict[str, Any], list[bytes]] = {"say": "labels", "answers": []}, []
LOST: tuple[dict[str, Any], list[bytes]] = {"say": "labels", "answers": [], "is_lost": True}, []
DIED = WorkerError(FallbackReason.ENGINE_ERROR, "the model's process: it was ended by SIGKILL")


class Processes:
    """Stands for a pool. It holds the answers of its processes, and records their fate."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.kept = self.ended = 0

    def lease(self) -> Processes:
        """Return a process, or raise an error if there is none."""
        if isinstance(self.answers[0], StartError):
            raise self.answers.pop(0)
        return self

    def label(self, *_: object) -> Any:
        """Return the next answer."""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def give_back(self, process: object) -> None:
        self.kept += 1

    def forget(self, process: object) -> None:
        self.ended += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only the test advances."""
    now = [100.0]
    monkeypatch.setattr(model.time, "monotonic", lambda: now[0])
    return now


def asked(*answers: Any) -> tuple[SharedModel, Processes]:
    """Return a model whose processes give these answers."""
    one, processes = SharedModel(Config()), Processes(*answers)
    one.pool = processes  # type: ignore[assignment]
    return one, processes


def test_a_process_that_dies_three_times_in_a_row_is_lost(clock: list[float]) -> None:
    """Then no request waits for it for half a minute."""
    one, processes = asked(DIED, DIED, LABELS, DIED, DIED, DIED, LABELS)

    found = [one.label({}, [])[0] for _ in range(8)]
    assert [("error" in answer, "lost" in answer) for answer in found] == [
        *[(True, False)] * 2,
        (False, False),
        *[(True, False)] * 2,
        *[(False, True)] * 3,
    ]
    assert "SIGKILL" in found[-1]["lost"]
    assert (processes.ended, processes.kept) == (5, 1)

    clock[0] += model.RETRY_SECONDS
    assert one.label({}, []) == LABELS


def test_workers_that_wait_for_a_model_that_is_lost(clock: list[float]) -> None:
    """They get an error. Otherwise, each of them would load the model again in turn. The process is ended, because its
    errors would persist, and a new one is started later.
    """
    one, processes = asked(LOST, LABELS)
    begun, go = threading.Event(), threading.Event()
    label, found = processes.label, []

    def slow(*args: object) -> Any:
        begun.set()
        go.wait(10)
        return label(*args)

    processes.label = slow  # type: ignore[method-assign]
    threads = [threading.Thread(target=lambda: found.append(one.label({}, [])[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    go.set()
    for thread in threads:
        thread.join(10)

    assert sorted("lost" in answer for answer in found) == [False, True, True, True]
    assert (processes.ended, processes.kept) == (1, 0)
    clock[0] += model.RETRY_SECONDS
    assert one.label({}, []) == LABELS
    assert processes.kept == 1


def test_a_process_that_cannot_be_started(clock: list[float]) -> None:
    """The model is lost at once, because no page can be the cause."""
    one, _ = asked(StartError("no GPU"), LABELS)

    assert [one.label({}, [])[0].get("lost") for _ in range(2)] == ["the model's process cannot be started: no GPU"] * 2
    clock[0] += model.RETRY_SECONDS
    assert one.label({}, []) == LABELS
