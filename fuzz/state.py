"""The state that a fuzzing process shares with its supervisor: a small memory-mapped file."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path

_FIXED = struct.Struct("=QdQdQQQdd")
_SIZE = _FIXED.size + (1 << 20)


@dataclass(slots=True)
class State:
    """The counts of one process. ``started`` is 0 between two inputs."""

    inputs: int = 0
    started: float = 0.0
    """CPU seconds of the process when the current input began."""
    thorough: int = 0
    slowest: float = 0.0
    """CPU seconds of the slowest extraction."""
    largest: int = 0
    """Number of characters of the largest document."""
    findings: int = 0
    grown: int = 0
    """Largest growth of memory during one extraction, in bytes."""
    rate: float = 0.0
    """Most CPU seconds of an extraction per 100,000 characters of its document, which counts as at least 1,000."""
    factor: float = 0.0
    """Most characters of a form of the output per character of the document."""


class Shared:
    """The memory-mapped file: the counts, and the current input, which survives the process."""

    def __init__(self, path: Path) -> None:
        if not path.exists() or path.stat().st_size != _SIZE:
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)

    def write(self, state: State) -> None:
        """Write the counts."""
        _FIXED.pack_into(
            self._map, 0, state.inputs, state.started, state.thorough, state.slowest, state.largest, state.findings,
            state.grown, state.rate, state.factor,
        )  # fmt: skip

    def read(self) -> State:
        """Return the counts."""
        return State(*_FIXED.unpack_from(self._map, 0))

    def write_input(self, data: bytes) -> None:
        """Write the current input, cut off if it is too long for the file."""
        data = data[: _SIZE - _FIXED.size - 8]
        struct.pack_into("=Q", self._map, _FIXED.size, len(data))
        self._map[_FIXED.size + 8 : _FIXED.size + 8 + len(data)] = data

    def read_input(self) -> bytes:
        """Return the current input."""
        (size,) = struct.unpack_from("=Q", self._map, _FIXED.size)
        return self._map[_FIXED.size + 8 : _FIXED.size + 8 + size]


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used. Raise OSError if there is no such process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int | str = "self") -> int:
    """Return the resident memory of a process in bytes. Raise OSError if there is no such process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE


class Peak:
    """The peak memory of this process since :meth:`reset`, in bytes."""

    def __init__(self) -> None:
        self._clear = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._status = os.open("/proc/self/status", os.O_RDONLY)

    def reset(self) -> int:
        """Reset the peak, and return the current memory of the process."""
        os.write(self._clear, b"5")
        return self.read()

    def read(self) -> int:
        """Return the peak."""
        status = os.pread(self._status, 4_096, 0)
        at = status.index(b"VmHWM:") + 6
        return int(status[at : status.index(b"kB", at)]) * 1_024
