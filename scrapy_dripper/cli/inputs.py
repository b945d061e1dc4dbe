"""The inputs of commands: files (gzipped or not, HTML or MHTML), folders, globs, URLs and standard input."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from email import message_from_bytes
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import normalize
from urllib.parse import quote, urlsplit, urlunsplit

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.checks import short
from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.egress import PIECE, SECONDS, download
from scrapy_dripper.inspection import VIEW
from scrapy_dripper.paths import matches, portable

PAGE_EXTENSIONS = (".html", ".htm", ".xhtml", ".mhtml", ".mht")
WARC = (".warc", ".warc.gz", ".warc.zst", ".warc.lz4")
# A document larger than this multiple of --max-bytes is not read at all: it may be a gzip bomb or an endless stream.
READ_FACTOR = 10
SAVED_WITHIN = 2_000
"""Number of bytes within which a comment says where a page was saved from."""
NAME_LENGTH = 120
LONGEST_NAME = 255
"""Longest name of a file, in bytes, that file systems allow."""

_host = re.compile(r"(?:www\.|(?=[^/*]+/))[\w-]{1,63}(?:\.[\w-]{1,63}){1,20}(?::\d{1,5})?(?:/|$)").match
# What browsers and SingleFile write above a page that they save.
_saved_from = re.compile(
    rb"<!--[^<>]{0,40}?(?:saved from url=\(\d{1,6}\)|\burl: )(https?://[^\s<>\"]{1,1000})", re.I
).search
_end_of_head = re.compile(rb"</head", re.I).search
_declares = re.compile(rb"canonical|og:url", re.I).search
_tag = re.compile(rb"<[A-Za-z!/?]").search


@dataclass(frozen=True, slots=True)
class Source:
    """One input: the path of a file, a URL, or ``-`` for standard input; ``id`` is unique within a run."""

    name: str
    id: str
    url: str = ""
    """The URL that the user gives; empty if it is unknown here."""

    @property
    def path(self) -> Path | None:
        """The file, None for a URL or standard input."""
        return None if self.name == "-" or is_url(self.name) else Path(self.name)


def find_sources(
    inputs: Sequence[str], fail: Callable[[str, str], None], url: str | None = None, urls: str | None = None
) -> list[Source]:
    """Return the inputs, with folders and globs expanded. Pass names that match nothing to ``fail``.

    ``url`` is the URL of a single input, under which the pages of a folder are. ``urls`` is a list of files and their
    URLs (:func:`read_urls`); without inputs, its files are the inputs. Raise :exc:`UsageError` for a list
    that is wrong, and for one URL with several inputs, or with an input whose URL is known.
    """
    listed = read_urls(urls) if urls else {}
    for one in listed.values():
        if not os.path.isfile(one.path):
            fail(f"{urls}, line {one.number}", f"{one.name} not found: names are relative to the folder of the list")
    listed = {name: one for name, one in listed.items() if os.path.isfile(one.path)}
    counts: dict[str, int] = {}
    sources: list[Source] = []
    for name in inputs:
        found = [name] if name == "-" or is_url(name) else list(_files(name, fail))
        if not found:
            fail(name, _missing(name))
        sources.extend(Source(path, unique(page_id(path), counts)) for path in found)
    if not inputs:
        sources = [Source(one.path, unique(page_id(one.path), counts)) for one in listed.values()]
    if url:
        is_folder = len(inputs) == 1 and inputs[0] != "-" and os.path.isdir(inputs[0])
        if not is_folder and (len(sources) > 1 or any(is_url(source.name) for source in sources)):
            raise UsageError("--url is for a single file, a folder or standard input; --urls names a list of others")
        sources = [replace(one, url=_below(url, inputs[0], one.name) if is_folder else url) for one in sources]
    if listed:
        known = [listed.get(identity(source.name)) if source.path else None for source in sources]
        sources = [replace(one, url=(line and line.url) or one.url) for one, line in zip(sources, known, strict=True)]
        if left := len(listed) - len({line.path for line in known if line}):
            say(f"{left:,} files of {urls} are not among the inputs")
    return sources


def _below(url: str, folder: str, path: str) -> str:
    """Return the URL of a file if that of its folder is known."""
    parts = urlsplit(url)
    name = os.path.relpath(path, folder).replace(os.sep, "/")
    whole = f"{parts.path.rstrip('/')}/{quote(os.fsencode(name[:-3] if name.lower().endswith('.gz') else name))}"
    return urlunsplit((parts.scheme, parts.netloc, whole, "", ""))


def _missing(name: str) -> str:
    """Return why a name has no page."""
    if os.path.isdir(name):
        return f"no page there ({', '.join(PAGE_EXTENSIONS)}, or those with .gz)"
    if "://" in name:
        return "not found: URLs begin with http:// or https://, and a file is named by its path"
    return f"not found (did you mean https://{name}?)" if _host(name) else "not found"


def _files(name: str, fail: Callable[[str, str], None]) -> Iterator[str]:
    """Yield the files of a path or a glob, in order of name.

    The inspector's views in a folder are left out. Files there that may never end (named pipes, devices) are passed to
    ``fail``. If they are named themselves, they are read.
    """
    if os.path.isdir(name):
        yield from files_in(name, fail, lambda file: _without_extensions(file) != file and not file.endswith(VIEW))
    else:
        for match in matches(name):
            # `**` matches every folder, and also all files in it.
            if match != name and _is_special(match):
                fail(match, "not a regular file")
            elif not os.path.isdir(match):
                yield match
            elif "**" not in name:
                yield from _files(match, fail)


def files_in(folder: str, fail: Callable[[str, str], None], is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """Yield the files of a folder and its subfolders whose names are wanted, in order of name.

    What cannot be read is passed to ``fail``. A link to a folder, which may lead in a circle, is only told.
    """

    def unreadable(error: OSError) -> None:
        fail(str(error.filename), why(error))

    for place, subfolders, files in os.walk(folder, onerror=unreadable):
        subfolders.sort()
        for path in (os.path.join(place, one) for one in subfolders):
            if os.path.islink(path):
                say(f"{path}: a link to a folder is not followed; name it to read it")
        for path in (os.path.join(place, one) for one in sorted(files) if is_wanted(one)):
            if _is_special(path):
                fail(path, "not a regular file")
            else:
                yield path


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


def page_id(name: str) -> str:
    """Return a short name for a file, a URL or standard input. Different pages may have the same."""
    if name == "-":
        return "stdin"
    if is_url(name):
        bare = _without_extensions(name.split("://", 1)[1].split("#", 1)[0])
        return portable(re.sub(r"[^\w.]+", "-", bare).strip("-.")[:NAME_LENGTH] or "page")
    return on_one_line(_without_extensions(os.path.basename(name)))


def unique(name: str, counts: dict[str, int]) -> str:
    """Return the name, or the first of name-2, name-3, ... that is not taken.

    Names that some file systems take for one are the same: in upper and lower case, or with accents composed or not.
    """
    unique, key = name, _same(name)
    while _same(unique) in counts:
        counts[key] += 1
        unique = f"{name}-{counts[key]}"
    counts[_same(unique)] = 1
    return unique


def _same(name: str) -> str:
    return normalize("NFC", name.casefold())


def file_name(name: str, extension: str) -> str:
    """Return the name of a file. A name that is too long is cut, and gets a hash that makes it unique."""
    data, most = os.fsencode(name), LONGEST_NAME - len(extension)
    if len(data) <= most:
        return name + extension
    mark = "-" + hashlib.sha256(data).hexdigest()[:16]
    return data[: most - len(mark)].decode("utf-8", "ignore") + mark + extension


def refuse_inputs(outputs: Iterable[Path], sources: Sequence[Source]) -> None:
    """Raise :exc:`UsageError` if writing an output would overwrite an input, under any name."""
    files = {_identity(source.path or 0) for source in sources if source.path or source.name == "-"} - {None}
    paths = {os.path.realpath(path) for source in sources if (path := source.path)}  # resolve() raises on loops
    for output in outputs:
        if os.path.realpath(output) in paths or _identity(output) in files:
            raise UsageError(f"{output} is an input and would be overwritten; choose another --output")


def _identity(path: Path | int) -> tuple[int, int] | None:
    """Return the identity of a file, which all links to it share; None for a pipe, a terminal and the like."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) and status.st_ino else None


def read_page(source: Source, config: Config, seconds: float = SECONDS) -> Document:
    """Return the document of an input, with its URL: the given one, that of its download, or the one that it declares.

    Raise what :func:`read_source` raises.
    """
    document = read_source(source, READ_FACTOR * config.limits.bytes, seconds)
    return replace(document, url=source.url or document.url or _declared(document, config))


def _declared(document: Document, config: Config) -> str:
    """Return the URL that a page declares as its own, or an empty string."""
    from scrapy_dripper.extractor import MOST_CHARS
    from scrapy_dripper.fallback import metadata  # Slow to import, and not needed for --help.

    html = document.html
    assert isinstance(html, bytes)
    # A head is read in a fifth of the time of a page. Of a page that is not small, the rest may take very long.
    head = _end_of_head(html, 0, MOST_CHARS)
    for part in (html[: head.start() if head else 0], html[:MOST_CHARS]):
        if _declares(part) and (url := metadata(replace(document, html=part), config).canonical):
            return url
    return ""


def read_source(source: Source, limit: int, seconds: float = SECONDS) -> Document:
    """Return the document of an input. Raise OSError or ValueError if it cannot be read or is no page.

    ``limit`` is the maximum number of its bytes, and ``seconds`` the deadline for a URL.
    """
    url, charset = "", None
    if source.name == "-":
        data = _read(sys.stdin.buffer, limit + 1)
    elif is_url(source.name):
        data, url, charset = download(source.name, limit, seconds)
    else:
        with open(source.name, "rb") as file:
            data = _read(file, limit + 1)
    if data[:2] == b"\x1f\x8b":
        try:
            data = _read(gzip.GzipFile(fileobj=io.BytesIO(data)), limit + 1)
        except (EOFError, zlib.error) as error:
            raise ValueError(str(error)) from None
    if data[:99].lstrip().startswith(b"WARC/") or (source.path and source.name.lower().endswith(WARC)):
        raise ValueError("a WARC archive, which `scrapy-dripper corpus extract` reads")
    if len(data) > limit:
        raise ValueError(f"over {limit:,} bytes, {READ_FACTOR} times --max-bytes")
    if is_mhtml(data):
        return from_mhtml(data)
    kind = _other_kind(source, data)
    if kind is not None:
        raise ValueError(f"not HTML but {kind}")
    saved = None if url else _saved_from(data, 0, SAVED_WITHIN)
    return Document(data, url=saved[1].decode("ascii", "replace") if saved else url, charset=charset)


def is_mhtml(data: bytes) -> bool:
    """Return True for a page with its images and styles, as browsers save it."""
    head = data[:4_096].lower()
    return b"\nmime-version:" in b"\n" + head and b"multipart/related" in head and not head.lstrip().startswith(b"<")


def from_mhtml(data: bytes) -> Document:
    """Return the page of an MHTML file (RFC 2557). Raise ValueError if it has none."""
    try:
        message = message_from_bytes(data)
        part = next((one for one in message.walk() if one.get_content_type() == "text/html"), None)
    except RecursionError:
        part = None
    if part is None:
        raise ValueError("an MHTML file without HTML")
    places = (str(place).strip() for place in (part["Content-Location"], message["Snapshot-Content-Location"]))
    body = part.get_payload(decode=True)
    assert isinstance(body, bytes)  # as of every part that is not multipart
    return Document(body, url=next(filter(is_url, places), ""), charset=part.get_content_charset())


def _other_kind(source: Source, data: bytes) -> str | None:
    """Return the type of a document that is not HTML; None if it may be. Binary files are left to the extraction."""
    start, name = data[:1_024].lstrip().lower(), source.name.lower().removesuffix(".gz") if source.path else ""
    if not start or start.startswith(b"%pdf") or b"\0" in start or name.endswith(PAGE_EXTENSIONS):
        return None
    if start.startswith((b"{", b"[")):
        return "JSON"
    if b"<html" in start or b"<!doctype html" in start:
        return None
    kind = MimeTypes().guess_type(name)[0]  # without the types of this machine
    if kind not in (None, "text/html"):
        return kind
    return None if _tag(data) else "text"


def _read(file: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """Return the first bytes of a file. A single read would reserve the memory for all that may come."""
    data = bytearray()
    while len(data) < most and (piece := file.read(min(PIECE, most - len(data)))):
        data += piece
    return bytes(data)


COLUMNS = ("file", "url")


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of a list. ``path`` is that of the file from here, and ``url`` is empty if it is unknown."""

    number: int
    name: str
    path: str
    url: str


def read_urls(path: str) -> dict[str, Listed]:
    """Return the lines of a list by :func:`identity`. Names of files are relative to the folder of the list.

    Raise :exc:`UsageError` for a line that is none, or that gives a file another URL than an earlier line.
    """
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8-sig", "surrogateescape")  # as in the names of files
    except OSError as error:
        raise UsageError(f"--urls: {path} cannot be read: {error.strerror or error}") from None
    found: dict[str, Listed] = {}
    try:
        for number, row in (_json_lines if text.lstrip()[:1] == "{" else _table)(text):
            name, url = (row.get(column) for column in COLUMNS)
            if not isinstance(name, str) or not name or "\0" in name:
                raise ValueError(f"line {number}: expected the name of a file as file (got {short(name)})")
            if url and not (isinstance(url, str) and is_url(url)):
                raise ValueError(f"line {number}: expected a URL with http:// or https:// as url (got {short(url)})")
            one = Listed(number, name, os.path.join(os.path.dirname(path), name), url or "")
            before = found.setdefault(identity(one.path), one)
            if before.url != one.url:
                raise ValueError(f"line {number}: {name} has another URL in line {before.number}")
        if not found:
            raise ValueError("line 2: expected the name of a file")
    except ValueError as error:
        raise UsageError(f"{path}, {error}") from None
    return found


def _json_lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: expected a JSON object ({getattr(error, 'msg', error)})") from None
            if not isinstance(row, dict) or not set(COLUMNS) <= row.keys():
                raise ValueError(f"line {number}: expected an object with file and url (got {short(row)})")
            yield number, row


def _table(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if not set(COLUMNS) <= set(columns := reader.fieldnames or ()):
            raise csv.Error(f"expected the columns file and url (got {short(', '.join(columns))})")
        for row in reader:
            if None in row:
                raise csv.Error("there are more values than columns: one that has a comma needs quotation marks")
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"line {max(1, reader.reader.line_num)}: {error}") from None


def is_url(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def identity(path: str) -> str:
    """Return one name for a file, however its folder is named."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
