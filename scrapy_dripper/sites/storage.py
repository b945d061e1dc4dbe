"""The files of site memories and templates. A file has one line of JSON and the arrays of the hosts, and is replaced as
a whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_dripper.sites import memory, templates
from scrapy_dripper.sites.layout import SIZE
from scrapy_dripper.sites.memory import MOST_PAGES, MOST_PLACES, MOST_TEXTS, Host, SiteMemory
from scrapy_dripper.sites.places import HASH, PLACE
from scrapy_dripper.sites.templates import CHECKS, MOST_RULES, MOST_TEMPLATES, Template, Templates

FORMAT = 2
"""Version of the format, and of the way in which the hashes in the files are computed."""
_COUNT, _NUMBER, _MEAN = np.dtype("<u2"), np.dtype("<u4"), np.dtype("<f4")
_LONGEST_LINE = 2_000_000

T = TypeVar("T")
Columns = Sequence[tuple[npt.NDArray[Any], "np.dtype[Any]"]]
Take = Callable[["np.dtype[Any]", int], npt.NDArray[Any]]
"""A function that returns the next array of a file, given its data type and length."""


class MemoryFileError(ValueError):
    """The file of a site memory, or of templates, cannot be used. The message says why."""


def write(known: SiteMemory, path: Path) -> None:
    """Write a memory to a file, which is replaced atomically. Raise OSError if that fails."""

    def hosts() -> Iterator[tuple[list[object], Columns]]:
        for name, host in known:
            texts = ((host.texts, HASH), (host.counts, _COUNT), (host.last, _NUMBER), (host.seen, HASH))
            places = ((host.places, HASH), (host.place_counts, _COUNT), (host.place_texts, _NUMBER))
            yield [name, host.pages, host.clock, len(host.texts), len(host.seen), len(host.places)], (*texts, *places)

    _write(path, hosts())


def read(path: Path) -> SiteMemory:
    """Return the memory in a file, or an empty one if there is no file. Raise MemoryFileError if the file cannot be
    used.
    """
    found = SiteMemory()

    def put(row: Sequence[Any], take: Take) -> None:
        name, pages, clock, texts, seen, places = row
        fits = 0 <= texts <= MOST_TEXTS and 0 <= seen <= MOST_PAGES and 0 <= places <= MOST_PLACES
        if not (isinstance(name, str) and fits):
            raise ValueError("a host exceeds a limit")
        own = take(HASH, texts), take(_COUNT, texts), take(_NUMBER, texts)
        addresses = take(HASH, seen)
        of_places = take(HASH, places), take(_COUNT, places), take(_NUMBER, places)
        if not np.isin(own[0] >> PLACE, of_places[0]).all():
            raise ValueError("a host has texts in places that it does not have")
        found.put(name, Host(int(pages), *own, int(clock), addresses, *of_places))

    _read(path, memory.MOST_HOSTS * memory.BYTES_PER_HOST, "a site memory", put)
    return found


def write_templates(known: Templates, path: Path) -> None:
    """Write templates to a file, as :func:`write` does."""

    def hosts() -> Iterator[tuple[list[object], Columns]]:
        for name, own in known:
            rows: list[object] = []
            columns: list[tuple[npt.NDArray[Any], np.dtype[Any]]] = []
            for one in own:
                facts = [one.number, one.born, one.pages, one.shortest, one.longest, one.refused]
                rows.append([*facts, list(one.checks), len(one.hashes)])
                columns += [(one.centroid, _MEAN), (one.hashes, HASH)]
                columns += [(one.counts, _COUNT), (one.sums, _COUNT), (one.last, _COUNT)]
            yield [name, rows], columns

    _write(path, hosts())


def read_templates(path: Path) -> Templates:
    """Return the templates in a file, or none if there is no file. Raise MemoryFileError if the file cannot be used."""
    found = Templates()

    def put(row: Sequence[Any], take: Take) -> None:
        name, rows = row
        if not isinstance(name, str) or len(rows) > MOST_TEMPLATES:
            raise ValueError("a host exceeds a limit")
        own = []
        for number, born, pages, shortest, longest, refused, checks, rules in rows:
            if not (0 <= rules <= MOST_RULES and len(checks) <= CHECKS):
                raise ValueError("a template exceeds a limit")
            facts = int(number), float(born), int(pages), int(shortest), int(longest), int(refused)
            columns = take(_MEAN, SIZE), take(HASH, rules), *(take(_COUNT, rules) for _ in range(3))
            own.append(Template(*facts, tuple(map(float, checks)), *columns))
        found.put(name, own)

    _read(path, templates.MOST_HOSTS * templates.BYTES_PER_HOST, "a file of templates", put)
    return found


def _write(path: Path, hosts: Iterator[tuple[list[object], Columns]]) -> None:
    rows, parts = [], []
    for row, columns in hosts:
        rows.append(row)
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


def _read(path: Path, most: int, kind: str, put: Callable[[Sequence[Any], Take], None]) -> None:
    """Call ``put`` with each host of a file, and with a function that returns its arrays."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
            data = file.read(most + 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise MemoryFileError(f"{path} cannot be read ({error.strerror})") from None
    at = 0

    def take(dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        nonlocal at
        start, at = at, at + count * dtype.itemsize
        found: npt.NDArray[Any] = np.frombuffer(data, dtype=dtype, count=count, offset=start).copy()
        return found

    try:
        header = json.loads(line)
        if header["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, got {header['format']!r:.20}")
        if header["crc32"] != zlib.crc32(data):
            raise ValueError("it is damaged")
        for row in header["hosts"]:
            put(row, take)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MemoryFileError(f"{path} is not {kind} of this version ({error})") from None
