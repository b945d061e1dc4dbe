"""Measure the time that a step of a worker takes, without the time in which the worker could not run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

STARVED = 3.0
"""Upper bound of the waiting time that does not count, as a multiple of the step's limit."""


class StepClock:
    """Measures one step, from the creation of the object on.

    If the machine is busy, a worker has to wait for a core, and for longer if its priority is low. Linux reports this
    *run delay*. It does not count, within bounds: a step ends after four times its limit at the latest. On other
    systems, all of the time counts.
    """

    def __init__(self, pid: int, limit: float, now: float, delay: Callable[[int], float] | None = None) -> None:
        """``pid`` is the worker's process, ``limit`` the step's limit in seconds, and ``now`` the present time."""
        self.limit = limit
        self._pid, self._since = pid, now
        self._delay = run_delay if delay is None else delay
        self._first: float | None = None

    def look(self, now: float, stood_still: float) -> float:
        """Return the seconds of the step that count so far.

        ``stood_still`` is the time since the last call, in seconds, for which the calling process itself was suspended.
        """
        self._since += stood_still
        delay = self._delay(self._pid)
        if self._first is None:  # read at the first look, because most steps end before it
            self._first = delay
        return now - self._since - min(delay - self._first, STARVED * self.limit)


def run_delay(pid: int) -> float:
    """Return how long the main thread of a process has waited for a core, in seconds since its start.

    It is the second field of ``/proc/PID/schedstat`` (Linux, Documentation/scheduler/sched-stats.rst), or 0.0 on other
    systems.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0
