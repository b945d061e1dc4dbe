"""How long a page may take, after what pages of its host have done to workers so far."""

from __future__ import annotations

from collections import OrderedDict

RECOVERY = 8
"""Pages of a host that have to be answered to make up for one that had to be stopped."""
LEAST = 1 / 32
"""The smallest share of the time limit that is left to a page."""
LEAST_SECONDS = 3.0
"""Seconds that are left to it all the same: a hundred times what an ordinary page takes, on a machine that is busy."""
HOSTS = 10_000
"""Hosts that are remembered, the latest ones."""


class Patience:
    """Time limits by host. A page whose worker had to be killed shortens them for the next pages of its host.

    The first one changes nothing, each further one halves the limit, and :data:`RECOVERY` pages that are answered
    double it again: pages that are made to burn time burn less and less of it, and no ordinary page is any worse off.
    Where pages of all hosts fail in a row, it is the engine that is stuck, and the limit is halved for all of them.
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
        """Note that a page of a host had to be stopped."""
        self._row += 1
        self._levels[host] = self._levels.get(host, 0.0) + 1
        self._levels.move_to_end(host)
        if len(self._levels) > HOSTS:
            self._levels.popitem(last=False)

    def answered(self, host: str) -> None:
        """Note that a page of a host was answered in time."""
        self._row = 0
        level = self._levels.get(host)
        if level is None:
            return
        if level <= 1 / RECOVERY:
            del self._levels[host]
        else:
            self._levels[host] = level - 1 / RECOVERY
