"""A step's clock only counts the time in which its worker could run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_dripper.workers import process
from scrapy_dripper.workers.process import STARVED, StepClock, run_delay
from tests.workers.children import Pools, own, task

SCHEDSTAT = Path("/proc/self/schedstat").exists()
BURN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def test_time_without_a_core_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting only counts from the start of the step."""
    waited = iter([5.0, 7.0, 12.0])
    monkeypatch.setattr(process, "run_delay", lambda _: next(waited))
    clock = StepClock(1, 10.0, 100.0)
    assert clock.look(100.1, 0.0) == pytest.approx(0.1)
    assert clock.look(104.0, 0.0) == pytest.approx(2.0)
    assert clock.look(112.0, 0.0) == pytest.approx(5.0)


def test_a_step_ends_even_if_its_worker_never_gets_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after four times its limit."""
    monkeypatch.setattr(process, "run_delay", lambda _: now)
    clock = StepClock(1, 10.0, 0.0)
    now = 0.0
    clock.look(now, 0.0)
    for now in (20.0, 30.0, 39.0):
        assert clock.look(now, 0.0) < 10
    now = (1 + STARVED) * 10 + 1
    assert clock.look(now, 0.0) > 10


def test_time_in_which_the_caller_stood_still_does_not_count() -> None:
    """It does not count, however long it is, because no answer could be received."""
    clock = StepClock(2**22 + 1, 10.0, 0.0)
    assert clock.look(100.0, 95.0) == pytest.approx(5.0)
    assert clock.look(101.0, 0.0) == pytest.approx(6.0)


def test_where_the_system_does_not_say_how_long_a_process_waits() -> None:
    """All of the time counts."""
    nobody = 2**22 + 1  # over the largest number of a process
    assert run_delay(nobody) == 0.0
    clock = StepClock(nobody, 10.0, 0.0)
    assert clock.look(5.0, 0.0) == 5.0


@pytest.mark.skipif(not SCHEDSTAT, reason="needs /proc/PID/schedstat")
def test_a_starved_worker_answers_its_page(pools: Pools) -> None:
    """A page that takes 0.4 CPU seconds is answered with a limit of 2, although others use most of the only core."""
    pool = pools()
    pool.start()
    (pid,) = pool.pids
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {core})
    burners = [subprocess.Popen([sys.executable, "-c", BURN, str(core)]) for _ in range(3)]
    try:
        (found,) = pool.extract([task("BURN 0.4", own(timeout=2.0))])
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert found.text == "BURN 0.4"
