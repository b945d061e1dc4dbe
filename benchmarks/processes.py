"""CPU time and memory of a process and all its children, as reported by Linux; zeros on other systems."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def family(pid: int) -> list[int]:
    """Return the IDs of a process and of all its descendants."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def memory(pid: int) -> float:
    """Return the memory of a process and its children in megabytes. Shared memory is counted once."""
    total = 0
    for one in family(pid):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1_000


def children_cpu(pid: int) -> float:
    """Return the CPU seconds of the children of a process, including those that have ended."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            values = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, values[13:15])) + (sum(map(int, values[11:13])) if one != pid else 0)
    return ticks / _TICKS
