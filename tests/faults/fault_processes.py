"""Information about processes from the system: children, open files and workers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the child processes of a process, including zombies."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread may end between the two lines
            found += map(int, path.read_text(encoding="ascii").split())
    return found


def files(pid: int | str = "self") -> set[str]:
    """Return the open files, pipes and sockets of a process, without those of ONNX Runtime."""
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself
            found.add(os.readlink(path))
    return {name for name in found if "onnxruntime" not in name}


def is_worker(pid: int) -> bool:
    """Return True if a process is a worker and alive."""
    try:
        return b"scrapy_dripper/child" in Path(f"/proc/{pid}/cmdline").read_bytes()  # empty when it has ended
    except OSError:
        return False
