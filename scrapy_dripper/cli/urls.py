"""The list of files and their URLs that ``--urls`` names: CSV or JSON Lines, with ``file`` and ``url``."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrapy_dripper.checks import short
from scrapy_dripper.cli.console import UsageError

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
