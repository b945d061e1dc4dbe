"""What a process may use, from trees of files as Linux has them inside and outside of containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scrapy_dripper.machine import cores, free_memory

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder, and a machine with 32 GiB of memory available."""
    for name, text in {"proc/meminfo": f"MemTotal: {64 << 20} kB\nMemAvailable: {32 << 20} kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    return root


def version_2(path: str, limit: str, used: int, idle: int = 0) -> dict[str, str]:
    folder = f"sys/fs/cgroup{path}"
    stat = f"anon {used - idle}\ninactive_file {idle}\n"
    return {f"{folder}/memory.max": limit, f"{folder}/memory.current": str(used), f"{folder}/memory.stat": stat}


def version_1(path: str, limit: int, used: int, idle: int = 0) -> dict[str, str]:
    folder = f"sys/fs/cgroup/memory{path}"
    return {
        f"{folder}/memory.limit_in_bytes": f"{limit}\n",
        f"{folder}/memory.usage_in_bytes": f"{used}\n",
        f"{folder}/memory.stat": f"inactive_file 5\ntotal_inactive_file {idle}\n",
    }


@pytest.mark.parametrize(
    ("files", "free"),
    [
        pytest.param({}, 32 * GIB, id="no groups"),
        pytest.param({"proc/self/cgroup": "0::/\n", **version_2("", str(4 * GIB), GIB)}, 3 * GIB, id="container"),
        pytest.param({"proc/self/cgroup": "0::/\n", **version_2("", "max", GIB)}, 32 * GIB, id="no limit"),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", **version_2("", str(4 * GIB), 3 * GIB, 2 * GIB)},
            3 * GIB,
            id="the cache of files is given back",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", **version_2("", str(GIB), 2 * GIB)}, 0, id="over the limit"),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", **version_2("/a", str(2 * GIB), GIB), **version_2("/a/b", "max", 1)},
            GIB,
            id="limit of a group above",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/docker/77\n", **version_2("", str(2 * GIB), GIB)},
            GIB,
            id="path as it is outside of the container",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", **version_2("", str(99 * GIB), GIB)}, 32 * GIB, id="large limit"),
        pytest.param(
            {"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/pod\n0::/\n", **version_1("/pod", 3 * GIB, 2 * GIB, GIB)},
            2 * GIB,
            id="version 1",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", **version_2("", "much", GIB)}, 32 * GIB, id="not a number"),
    ],
)
def test_free_memory_is_what_the_machine_and_every_group_have_left(
    tmp_path: Path, files: dict[str, str], free: int
) -> None:
    assert free_memory(tree(tmp_path, files)) == free


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, 8),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"sys/fs/cgroup/cpu.max": "250000 100000"}, 3),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_cores_are_those_that_the_container_has_time_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)

    assert cores(tree(tmp_path, {"proc/self/cgroup": "3:cpu,cpuacct:/\n0::/\n", **files})) == expected
