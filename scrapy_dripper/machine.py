"""The cores and the memory that this process may use, within the limits of its container.

Containers limit both by control groups, of which Linux has two versions (``man 7 cgroups``). Even inside a container,
``/proc/meminfo`` and the number of cores are those of the whole machine.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def cores(root: Path = ROOT) -> int:
    """Return the number of cores that this process may use: those that it may run on, or fewer if its CPU time is
    limited.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for folder in _groups("cpu", root) if (share := _cpu_share(folder)) is not None]
    return max(1, min([allowed, *map(math.ceil, shares)]))


def free_memory(root: Path = ROOT) -> int | None:
    """Return the number of bytes of memory that this process can still get, or None if the system does not report it.

    A limit of its control group, or of a group above it, is reduced by the memory that the group uses. Cached files
    that were not read for a while do not count as used, because Linux can drop them.
    """
    found = [_left(folder) for folder in _groups("memory", root)]
    available = _numbers(root / "proc/meminfo").get("MemAvailable:")
    found.append(None if available is None else available << 10)
    return min((free for free in found if free is not None), default=None)


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups that may limit this process, up to the root of each tree."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:  # version 2: one tree for all controllers
            tree = root / "sys/fs/cgroup"
        elif controller in names.split(","):
            tree = root / "sys/fs/cgroup" / controller
        else:
            continue
        folder = tree / path.strip("/")
        # In a container, the path may be that of the group outside the container, while the root of the tree is the
        # group itself.
        yield from (one for one in (folder, *folder.parents) if one == tree or tree in one.parents)


def _left(group: Path) -> int | None:
    """Return the number of bytes that a group of either version has left, or None if it has no limit."""
    for limit, used, reclaimable in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, taken = _text(group / limit), _text(group / used)
        if most and taken and most.isdecimal() and taken.isdecimal():
            idle = _numbers(group / "memory.stat").get(reclaimable, 0)
            return max(0, int(most) - max(0, int(taken) - idle))
    return None


def _cpu_share(group: Path) -> float | None:
    """Return the CPU time that a group of either version may use, in cores, or None if it has no limit."""
    whole = (_text(group / "cpu.max") or "").split()
    quota, period = whole if len(whole) == 2 else (_text(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota and period and quota.isdecimal() and period.isdecimal() and int(period):  # "max" or -1: no limit
        return int(quota) / int(period)
    return None


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers in a file by name. Each line begins with a name and a number."""
    pairs = (line.split()[:2] for line in (_text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
