"""Adaptive time limits: pages of a host that keeps stopping workers get less time."""

from __future__ import annotations

from collections import OrderedDict

RECOVERY = 8
"""Pages of a host that must succeed to make up for one that was stopped."""
LEAST = 1 / 32
"""Lower bound of a page's time limit, as a share of the configured one."""
LEAST_SECONDS = 3.0
"""Lower bound of a page's time limit in seconds: a hundred times what an ordinary page takes on a busy machine."""
HOSTS = 10_000
"""Hosts to remember. The one that was stopped least recently is evicted first."""


class Patience:
    """Time limits by host, which shrink when pages of the host have to be stopped.

    The first such page changes nothing. Each further one halves the limit, and every :data:`RECOVERY` pages that
    succeed double it again. Hostile pages thus waste less and less time, and ordinary pages are not affected. If pages
    fail in a row regardless of their host, the engine itself is likely stuck, and the limit shrinks for all hosts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._levels: OrderedDict[str, float] = OrderedDict()
        self._row = 0

    def seconds(self, host: str) -> float:
        """Return the time limit of a page, in seconds."""
        level = max(self._levels.get(host, 0.0), self._row)
        share: float = max(LEAST, 0.5 ** max(0.0, level - 1))
        return min(self._seconds, max(LEAST_SECONDS, share * self._seconds))

    def stopped(self, host: str) -> None:
        """Record that a page of a host had to be stopped."""
        self._row += 1
        self._levels[host] = self._levels.get(host, 0.0) + 1
        self._levels.move_to_end(host)
        if len(self._levels) > HOSTS:
            self._levels.popitem(last=False)

    def answered(self, host: str) -> None:
        """Record that a page of a host was extracted in time."""
        self._row = 0
        level = self._levels.get(host)
        if level is None:
            return
        if level <= 1 / RECOVERY:
            del self._levels[host]
        else:
            self._levels[host] = level - 1 / RECOVERY
