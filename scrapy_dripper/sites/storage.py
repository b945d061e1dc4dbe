"""Store a site memory on disk, as one file with a JSON line and the arrays of the hosts."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path

import numpy as np

from scrapy_dripper.sites.memory import BYTES_PER_HOST, MOST_HOSTS, MOST_PAGES, MOST_TEXTS, Host, SiteMemory
from scrapy_dripper.sites.places import HASH

FORMAT = 1
"""Version of the file format, and of the text and place that each hash represents."""
_COUNT, _TIME = np.dtype("<u2"), np.dtype("<u4")
_LONGEST_LINE = 1_000_000


class MemoryFileError(ValueError):
    """The file of a site memory cannot be used. The message says why."""


def write(memory: SiteMemory, path: Path) -> None:
    """Write a memory to a file, which is replaced atomically. Raise OSError if that fails."""
    rows: list[list[object]] = []
    parts: list[bytes] = []
    for name, host in memory:
        rows.append([name, host.pages, host.clock, len(host.texts), len(host.seen)])
        columns = ((host.texts, HASH), (host.counts, _COUNT), (host.last, _TIME), (host.seen, HASH))
        parts += [column.astype(dtype).tobytes() for column, dtype in columns]
    data = b"".join(parts)
    header = json.dumps({"format": FORMAT, "crc32": zlib.crc32(data), "hosts": rows})
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(header.encode("ascii") + b"\n" + data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()


def read(path: Path) -> SiteMemory:
    """Return the memory in a file, or an empty one if there is no file. Raise MemoryFileError if it is unusable."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
            data = file.read(MOST_HOSTS * BYTES_PER_HOST + 1)
    except FileNotFoundError:
        return SiteMemory()
    except OSError as error:
        raise MemoryFileError(f"{path} cannot be read ({error.strerror})") from None
    try:
        return _read(json.loads(line), data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFileError(f"{path} is not a site memory of this version ({error})") from None


def _read(header: dict[str, object], data: bytes) -> SiteMemory:
    if header["format"] != FORMAT:
        raise ValueError(f"expected format {FORMAT}, got {header['format']!r:.20}")
    if header["crc32"] != zlib.crc32(data):
        raise ValueError("the checksum does not match")
    memory = SiteMemory()
    at = 0
    for name, pages, clock, texts, seen in header["hosts"]:  # type: ignore[attr-defined]
        if not (isinstance(name, str) and 0 <= texts <= MOST_TEXTS and 0 <= seen <= MOST_PAGES):
            raise ValueError("a host has an invalid name, or too many texts or pages")
        arrays = []
        for dtype, count in ((HASH, texts), (_COUNT, texts), (_TIME, texts), (HASH, seen)):
            arrays.append(np.frombuffer(data, dtype=dtype, count=count, offset=at).copy())
            at += count * dtype.itemsize
        memory.put(name, Host(int(pages), arrays[0], arrays[1], arrays[2], int(clock), arrays[3]))
    return memory
