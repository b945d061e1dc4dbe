"""Labels on disk: JSON Lines, one record a page, appended as they come."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from scrapy_dripper.annotation.pages import PROFILE, Sheet

HUMAN = "human"
_HEX = frozenset("0123456789abcdef")


class StoreError(ValueError):
    """A file does not hold labels; the message names the place and what to do."""


@dataclass(frozen=True, slots=True)
class Record:
    """The labels of one page, with all that is needed to see that they still belong to it."""

    id: str
    url: str
    title: str
    sha256: str
    """Of the document's bytes, unzipped."""
    profile: str
    """The rules that the page was cut by."""
    blocks: int
    cut: str
    """SHA-256 of the blocks' texts."""
    labels: tuple[int, ...]
    """The ids of the main blocks, in order; ids start at 1."""
    who: str
    """The name of a model, or ``human``."""
    prompt: str
    """Which version of the rules and the prompt was read."""
    date: str

    @classmethod
    def of(cls, value: Any) -> Record:
        """Return the record that a JSON value is. Raise ValueError, with what was expected, if it is none."""
        types = {field.name: field.type for field in fields(cls)}
        if not isinstance(value, dict) or set(value) != set(types):
            raise ValueError(f"an object with the keys {', '.join(types)}")
        for name, kind in types.items():
            python = {"str": str, "int": int}.get(str(kind), list)
            if not isinstance(value[name], python) or isinstance(value[name], bool):
                raise ValueError(f"{name!r} to be {'a list of ids' if python is list else kind}")
        labels, n = value["labels"], value["blocks"]
        if not all(type(i) is int and 1 <= i <= n for i in labels) or labels != sorted(set(labels)):
            raise ValueError(f"'labels' to be ids from 1 to {n}, in order and each once")
        if not safe_name(value["id"]):
            raise ValueError("'id' to be a file name")
        if len(value["sha256"]) != 64 or not _HEX.issuperset(value["sha256"]):
            raise ValueError("'sha256' to be 64 hexadecimal digits")
        return cls(**{**value, "labels": tuple(labels)})


def task_of(sheet: Sheet, prompt: str) -> dict[str, Any]:
    """Return what a record says about the page before anybody has labelled it."""
    names = ("id", "url", "title", "sha256", "blocks", "cut")
    return {name: getattr(sheet, name) for name in names} | {"profile": PROFILE, "prompt": prompt}


def record_of(task: dict[str, Any], labels: list[int], who: str) -> Record:
    """Return the record of a task that has been done now. Raise ValueError if it is no task."""
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Record.of({**task, "labels": labels, "who": who, "date": date})


def safe_name(name: str) -> bool:
    """Return True if a name is that of a file, in whatever folder it is put."""
    return bool(name) and name not in (".", "..") and name.isprintable() and not set(name) & set('/\\:*?"<>|')


def load(path: Path) -> list[Record]:
    """Return the records of a file. Raise :exc:`StoreError`, with the line, if one is broken; OSError if not there."""
    data = path.read_bytes()
    records = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(Record.of(json.loads(line)))
        except (ValueError, RecursionError) as error:
            expected = "JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else error
            raise StoreError(f"{path}, line {number}: expected {expected}; correct or delete the line") from None
    return records


class Store:
    """A file of labels that is added to, each page once."""

    def __init__(self, path: Path) -> None:
        """Open the file, which need not exist. Raise :exc:`StoreError` if it holds something else than labels.

        What a killed run left of its last line is taken away.
        """
        self.path = path
        if path.exists():
            _drop_torn_line(path)
            self.done = {record.sha256 for record in load(path)}
        else:
            self.done = set()
        self._file = path.open("a", encoding="utf-8", errors="replace", newline="\n")

    def add(self, record: Record) -> None:
        """Append the labels of a page; they are in the file when this returns."""
        self._file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
        self._file.flush()
        self.done.add(record.sha256)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop_torn_line(path: Path) -> None:
    data = path.read_bytes()
    if not data or data.endswith(b"\n"):
        return
    start = data.rfind(b"\n") + 1
    try:
        Record.of(json.loads(data[start:]))
    except ValueError:
        # Only what can be the beginning of a record: another file is not to lose its end.
        if not data[start:].startswith(b'{"id": "'[: len(data) - start]):
            return
        with path.open("r+b") as file:
            file.truncate(start)
    else:
        with path.open("ab") as file:
            file.write(b"\n")
