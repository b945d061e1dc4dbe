"""The process of a model that keeps failing is not used for a while, and then retried."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.workers import pool as model
from scrapy_dripper.workers.pool import SharedModel
from scrapy_dripper.workers.process import StartError, WorkerError

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


def test_a_process_that_says_that_it_is_lost_is_ended(clock: list[float]) -> None:
    """Its errors would persist, so a new process is started next."""
    one, processes = asked(LOST, LABELS)

    assert one.label({}, []) == LOST
    assert processes.ended == 1
    assert "the model no longer runs" in one.label({}, [])[0]["lost"]
    clock[0] += model.RETRY_SECONDS
    assert one.label({}, []) == LABELS
    assert processes.kept == 1


def test_workers_that_wait_for_a_model_that_is_lost(clock: list[float]) -> None:
    """They get an error. Otherwise, each of them would load the model again in turn."""
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


def test_a_process_that_cannot_be_started(clock: list[float]) -> None:
    """The model is lost at once, because no page can be the cause."""
    one, _ = asked(StartError("no GPU"), LABELS)

    assert [one.label({}, [])[0].get("lost") for _ in range(2)] == ["the model's process cannot be started: no GPU"] * 2
    clock[0] += model.RETRY_SECONDS
    assert one.label({}, []) == LABELS
