"""The inputs of commands: files (gzipped or not), folders, globs, URLs and standard input."""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.fetch import PIECE, SECONDS, fetch
from scrapy_dripper.extraction import Document

PAGE_EXTENSIONS = (".html", ".htm", ".xhtml")
# A document larger than this multiple of --max-bytes is not read at all: it may be a gzip bomb or an endless stream.
READ_FACTOR = 10
NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Source:
    """One input: the path of a file, a URL, or ``-`` for standard input; ``id`` is unique within a run."""

    name: str
    id: str

    @property
    def path(self) -> Path | None:
        """The file, None for a URL or standard input."""
        return None if self.name == "-" or is_url(self.name) else Path(self.name)


def is_url(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def find_sources(inputs: Iterable[str], fail: Callable[[str, str], None]) -> list[Source]:
    """Return the inputs, with folders and globs expanded. Pass names that match nothing to ``fail``."""
    counts: dict[str, int] = {}
    sources: list[Source] = []
    for name in inputs:
        found = [name] if name == "-" or is_url(name) else list(_files(name, fail))
        if not found:
            fail(name, "no page there (.html, .htm, .xhtml, or those with .gz)" if os.path.isdir(name) else "not found")
        sources.extend(Source(path, _unique(_id(path), counts)) for path in found)
    return sources


def _files(name: str, fail: Callable[[str, str], None]) -> Iterator[str]:
    """Yield the files of a path or a glob, in order of name.

    Files in a folder that may never end (named pipes, devices) are passed to ``fail``. If they are named themselves,
    they are read.
    """
    if os.path.isdir(name):
        for folder, subfolders, files in os.walk(name):
            subfolders.sort()
            for file in sorted(files):
                path = os.path.join(folder, file)
                if _without_extensions(file) == file:
                    continue
                if _is_special(path):
                    fail(path, "not a regular file")
                else:
                    yield path
    elif os.path.lexists(name):
        yield name
    else:
        for match in sorted(glob.glob(name, recursive=True)):
            # `**` matches every folder, and also all files in it.
            if _is_special(match):
                fail(match, "not a regular file")
            elif not os.path.isdir(match):
                yield match
            elif "**" not in name:
                yield from _files(match, fail)


def _is_special(path: str) -> bool:
    """Return True for a pipe, a device or a socket. A missing file is False; reading it will report that."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _without_extensions(name: str) -> str:
    """Return a file's name without ``.html`` and the like, gzipped or not. Other names are returned unchanged."""
    stem = name[:-3] if name.lower().endswith(".gz") else name
    for extension in PAGE_EXTENSIONS:
        if stem.lower().endswith(extension):
            return stem[: -len(extension)] or name
    return name


def _id(name: str) -> str:
    if name == "-":
        return "stdin"
    if is_url(name):
        bare = _without_extensions(name.split("://", 1)[1].split("#", 1)[0])
        return re.sub(r"[^\w.]+", "-", bare).strip("-.")[:NAME_LENGTH] or "page"
    return on_one_line(_without_extensions(os.path.basename(name)))


def _unique(name: str, counts: dict[str, int]) -> str:
    """Return the name, or the first of name-2, name-3, ... that is not taken, ignoring case."""
    unique = name
    while unique.casefold() in counts:
        counts[name.casefold()] += 1
        unique = f"{name}-{counts[name.casefold()]}"
    counts[unique.casefold()] = 1
    return unique


def read_source(source: Source, limit: int, seconds: float = SECONDS) -> Document:
    """Return the document of an input. Raise OSError, ValueError or HTTPException if it cannot be read.

    ``limit`` is the maximum number of its bytes, and ``seconds`` the deadline for a URL.
    """
    url, charset = "", None
    if source.name == "-":
        data = _read(sys.stdin.buffer, limit + 1)
    elif is_url(source.name):
        data, url, charset = fetch(source.name, limit, seconds)
    else:
        with open(source.name, "rb") as file:
            data = _read(file, limit + 1)
    if data[:2] == b"\x1f\x8b":
        try:
            data = _read(gzip.GzipFile(fileobj=io.BytesIO(data)), limit + 1)
        except (EOFError, zlib.error) as error:
            raise ValueError(str(error)) from None
    if len(data) > limit:
        raise ValueError(f"over {limit:,} bytes, {READ_FACTOR} times --max-bytes")
    return Document(data, url=url, charset=charset)


def _read(file: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """Return the first bytes of a file. A single read would reserve the memory for all that may come."""
    data = bytearray()
    while len(data) < most and (piece := file.read(min(PIECE, most - len(data)))):
        data += piece
    return bytes(data)
