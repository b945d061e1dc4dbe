"""The time that a step of a worker takes, without the time in which it could not run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

STARVED = 3.0
"""How much of the time in which the system runs other processes does not count, as a multiple of the step's limit."""


class StepClock:
    """Measures one step, from the creation of the object on.

    A worker that is ready to run waits for its turn if the machine is busy, and the longer the lower its priority is.
    Linux reports this *run delay*. It does not count, within bounds: a step ends after four times its limit at the
    latest. Elsewhere, all of the time counts.
    """

    def __init__(self, pid: int, limit: float, now: float, delay: Callable[[int], float] | None = None) -> None:
        """``pid`` is the worker's process, ``limit`` the step's limit in seconds, and ``now`` the present time."""
        self.limit = limit
        self._pid, self._since = pid, now
        self._delay = run_delay if delay is None else delay
        self._first: float | None = None

    def look(self, now: float, stood_still: float) -> float:
        """Return the seconds of the step that count so far.

        ``stood_still`` are the seconds since the last call for which the calling process was suspended itself.
        """
        self._since += stood_still
        delay = self._delay(self._pid)
        if self._first is None:  # read at the first look, because most steps end before it
            self._first = delay
        return now - self._since - min(delay - self._first, STARVED * self.limit)


def run_delay(pid: int) -> float:
    """Return how long the main thread of a process has waited for a core, in seconds since its start.

    It is the second field of ``/proc/PID/schedstat`` (Linux, Documentation/scheduler/sched-stats.rst), or 0.0 where
    there is none.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0
