"""Hashes with what is known about each of them, as columns, and how such columns are sent and stored."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint64]
Column = npt.NDArray[Any]

HASH = np.dtype("<u8")
"""The data type of a hash, in the memory, in its file and in messages to worker processes."""
FORMAT = 3
"""Version of the files, and of the way in which the hashes in them are computed."""
_TYPES = ("|u1", "<u2", "<u4", "<u8", "<f4")


class MemoryFileError(ValueError):
    """The file of a site memory, or of templates, cannot be used. The message says why."""


class Tally:
    """Hashes in ascending order, each with the number of pages that have it, a sum over these pages, and when it was
    seen last."""

    BYTES = 8 + 2 + 4 + 4
    """Size of a hash with its columns, in bytes."""

    def __init__(self, *columns: Column) -> None:
        """``columns`` are those of another tally."""
        self.hashes: Hashes = columns[0] if columns else np.zeros(0, dtype=HASH)
        self.counts: npt.NDArray[np.uint16] = columns[1] if columns else np.zeros(0, dtype="<u2")
        self.sums: npt.NDArray[np.uint32] = columns[2] if columns else np.zeros(0, dtype="<u4")
        self.last: npt.NDArray[np.uint32] = columns[3] if columns else np.zeros(0, dtype="<u4")
        if len({len(column) for column in self.columns}) > 1:
            raise ValueError("columns differ in length")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, the hashes first."""
        return self.hashes, self.counts, self.sums, self.last

    def has(self, hashes: Hashes) -> Bools:
        """Return which hashes are known."""
        at = np.searchsorted(self.hashes, hashes)
        known = at < len(self.hashes)
        known[known] = self.hashes[at[known]] == hashes[known]
        return known

    def add(self, hashes: Hashes, values: Column, time: int) -> None:
        """Count the hashes of a page, which are distinct and in ascending order, and add a value to the sum of each."""
        at, old = np.searchsorted(self.hashes, hashes), self.has(hashes)
        self.counts[at[old]] += np.uint16(1)
        self.sums[at[old]] += values[old].astype("<u4")
        self.last[at[old]] = time
        at, new = at[~old], ~old
        self.hashes = np.insert(self.hashes, at, hashes[new])
        self.counts = np.insert(self.counts, at, np.uint16(1))
        self.sums = np.insert(self.sums, at, values[new].astype("<u4"))
        self.last = np.insert(self.last, at, np.uint32(time))

    def limit(self, most: int, kept: int) -> None:
        """Keep ``kept`` hashes if there are more than ``most``: those on most pages, the latest before the others."""
        if len(self.hashes) > most:
            # The hash comes last, so that the result does not depend on the order of pages.
            self.keep(np.sort(np.lexsort((self.hashes, self.last, self.counts))[-kept:]))

    def halve(self) -> None:
        """Halve all counts, and the sums with them, to forget what is rare."""
        halves = self.counts // np.uint16(2)
        self.sums = (self.sums.astype("<u8") * halves // self.counts).astype("<u4")
        self.counts = halves
        self.keep(self.counts > 0)

    def keep(self, which: Bools | npt.NDArray[np.intp]) -> None:
        """Keep some of the hashes."""
        self.hashes, self.counts, self.sums, self.last = (column[which] for column in self.columns)


def pack(facts: object, columns: Sequence[Column]) -> bytes:
    """Return facts and columns as bytes: a line of JSON and the arrays."""
    head = json.dumps([facts, [[column.dtype.str, len(column)] for column in columns]], separators=(",", ":"))
    return b"\n".join((head.encode("ascii"), b"".join(column.tobytes() for column in columns)))


def unpack(data: bytes) -> tuple[Any, list[Column]]:
    """Return the facts and columns in bytes. Raise ValueError if they are invalid."""
    head, _, rest = data.partition(b"\n")
    columns: list[Column] = []
    at = 0
    try:
        facts, shapes = json.loads(head)
        for kind, size in shapes:
            if kind not in _TYPES or type(size) is not int or size < 0:
                raise ValueError(f"expected columns (got {kind!r:.20} and {size!r:.20})")
            columns.append(np.frombuffer(rest, np.dtype(kind), size, at).copy() if size else np.zeros(0, kind))
            at += columns[-1].nbytes
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if at != len(rest):
        raise ValueError(f"expected {at:,} bytes (got {len(rest):,})")
    return facts, columns


def write_file(path: Path, facts: object, columns: Sequence[Column]) -> None:
    """Write facts and columns to a file, which is replaced atomically. Raise OSError if that fails."""
    data = pack(facts, columns)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(f"{FORMAT} {zlib.crc32(data)}\n".encode() + data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()


def read_file(path: Path, most: int) -> tuple[Any, list[Column]]:
    """Return the facts and columns in a file of at most ``most`` bytes; none if there is no file.

    Raise ValueError if it is damaged or of another version, and MemoryFileError if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            head, data = file.readline(100), file.read(most + 1)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise MemoryFileError(f"{path} cannot be read ({error.strerror})") from None
    if head != f"{FORMAT} {zlib.crc32(data)}\n".encode():
        raise ValueError(f"it is damaged, or not of format {FORMAT}")
    return unpack(data)
