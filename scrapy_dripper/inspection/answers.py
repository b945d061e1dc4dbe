"""The answers of people and models about the blocks of a page: what identifies the page, and the labels of its blocks.

The inspector exports such answers, and ``learn`` reads them. They are parsed strictly: every id must occur exactly
once, or an error names the ids.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.page import NATIVE, PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import Page

HUMAN = "human"
STYLES = ("normal", "conversational")
"""The styles of a page in WebMainBench: whether its users have written its main content (Dripper paper, A.5)."""
ANSWERS = "*.answer*.json"
"""The files that the inspector exports."""
MAX_BLOCKS = 1_000_000
"""Maximum number of blocks in an answer. Ids are listed before they are compared."""
_is_sha256 = re.compile("[0-9a-f]{64}").fullmatch
_BOM = b"\xef\xbb\xbf"
_STEM = 80  # characters of an input's name in an id
_JOINERS = "\u200c\u200d"
_unsafe = re.compile(r"[^\w.+,=@()-]+")  # not portable in file names


class AnswerError(ValueError):
    """The answer of a model, or of a person, is invalid. The message says what was expected and what came."""


class LabelsError(ValueError):
    """The labels do not match the current page."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A page to label."""

    id: str
    """Name of the input and the first 8 digits of its hash: stable across runs and unique for each page."""
    name: str
    """The input as given."""
    url: str
    """The URL of the page, or its canonical URL; empty if both are unknown."""
    title: str
    sha256: str
    """Hash of the uncompressed document."""
    cut: str
    """SHA-256 of the texts of the blocks, because labels are only valid for these blocks."""
    document: Document
    page: Page
    profile: str
    """Name of the profile by which the page was cut."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.page.blocks)


def in_utf8(document: Document) -> bytes:
    """Return a document in UTF-8, with a byte order mark if it was in another encoding."""
    data = document.html
    if isinstance(data, str):
        return _BOM + data.encode("utf-8", "replace")
    text = decode_html(data, document.charset)
    return data if data.removeprefix(_BOM) == text.encode() else _BOM + text.encode("utf-8", "replace")


def sheet(document: Document, name: str, stem: str, profile: str = NATIVE.name) -> Sheet:
    """Return the sheet of a document. Raise :exc:`PageError` if it has no blocks."""
    page = read(document, Config(metadata_field="metadata"), PROFILES[profile])
    declared = page.metadata.canonical if page.metadata else None
    data = document.html if isinstance(document.html, bytes) else document.html.encode("utf-8", "replace")
    sha256 = hashlib.sha256(data).hexdigest()
    cut = hashlib.sha256("\0".join(page.blocks.text).encode("utf-8", "replace")).hexdigest()
    return Sheet(
        id=f"{_unsafe.sub('-', stem)[:_STEM]}-{sha256[:8]}",
        name=name,
        url=one_line(document.url or declared or ""),
        title=one_line(page.title or ""),
        sha256=sha256,
        cut=cut,
        document=document,
        page=page,
        profile=profile,
    )


def one_line(text: str) -> str:
    """Return the text on one line, without control and other invisible characters."""
    text = " ".join(text.split())  # all characters that can end a line count as white space here
    if text.isascii() and text.isprintable():
        return text
    kept = (c for c in text if c in _JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    return " ".join("".join(kept).split())


@dataclass(frozen=True, slots=True)
class Record:
    """The labels of a page, with everything needed to check that they still match it."""

    id: str
    url: str
    title: str
    sha256: str
    """Hash of the uncompressed document."""
    profile: str
    """The profile by which the page was cut."""
    blocks: int
    cut: str
    """SHA-256 of the blocks' texts."""
    labels: tuple[int, ...]
    """The ids of the main blocks, in order. Ids start at 1."""
    who: str
    """The name of the model, or ``human``."""
    prompt: str
    """Hash of the rules and the prompt of a model; empty if there was none."""
    date: str
    style: str = ""
    """One of :data:`STYLES`, by the model; empty if it has not said, and in records of earlier versions."""

    @classmethod
    def of(cls, value: Any) -> Record:
        """Return the record for a JSON value. Raise ValueError, saying what was expected, if it is invalid."""
        names = [field.name for field in fields(cls)]
        if not isinstance(value, dict) or {"style", *value} != set(names):
            raise ValueError(f"an object with the keys {', '.join(names)}")
        value = {"style": "", **value}
        for name in names:
            kind = {"blocks": int, "labels": list}.get(name, str)
            if type(value[name]) is not kind:
                raise ValueError(f"{name!r} to be {'a list of ids' if kind is list else kind.__name__}")
        labels, n = value["labels"], value["blocks"]
        if not all(type(i) is int and 1 <= i <= n for i in labels) or labels != sorted(set(labels)):
            raise ValueError(f"'labels' to be ids from 1 to {n}, in order and each once")
        if not safe_name(value["id"]):
            raise ValueError("'id' to be a file name")
        if not _is_sha256(value["sha256"]):
            raise ValueError("'sha256' to be 64 hexadecimal digits")
        if value["style"] not in ("", *STYLES):
            raise ValueError(f"'style' to be one of {', '.join(STYLES)}")
        return cls(**{**value, "labels": tuple(labels)})


def task_of(sheet: Sheet, prompt: str = "") -> dict[str, Any]:
    """Return the part of a record that is known before labelling."""
    names = ("id", "url", "title", "sha256", "blocks", "cut", "profile")
    return {name: getattr(sheet, name) for name in names} | {"prompt": prompt}


def task_for(document: Document, name: str, stem: str, page: Page) -> dict[str, Any] | str:
    """Return the task of a page that an engine has cut, or the reason why labels of its blocks cannot be exported.

    ``name`` and ``stem`` are as for :func:`sheet`.
    """
    try:
        found = sheet(document, name, stem)
    except PageError as error:
        return str(error)
    if found.page.blocks.text != page.blocks.text:
        return "annotation uses other blocks: these are of another profile, or only of the first part of the page"
    return task_of(found)


def record_of(task: dict[str, Any], labels: list[int], who: str) -> Record:
    """Return the record of a completed task, with the current time. Raise ValueError if the task is invalid."""
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Record.of({**task, "labels": labels, "who": who, "date": date})


def safe_name(name: str) -> bool:
    """Return True if a name is a plain file name without a path."""
    return bool(name) and name not in (".", "..") and name.isprintable() and not set(name) & set('/\\:*?"<>|')


def main_blocks(record: Record, sheet: Sheet) -> npt.NDArray[np.bool_]:
    """Return which of a page's n blocks are labelled as main, of shape (n,).

    Raise :exc:`LabelsError` if the blocks are not those that were labelled. The bytes of the page are not looked at.
    """
    if record.profile != sheet.profile:
        raise LabelsError(f"labelled in the profile {record.profile!r}, expected {sheet.profile!r}; label it again")
    if record.blocks != sheet.blocks:
        raise LabelsError(
            f"cut into {record.blocks} blocks when it was labelled, into {sheet.blocks} now; label it again"
        )
    if record.cut != sheet.cut:
        raise LabelsError("its blocks have other texts than when it was labelled; label it again")
    main = np.zeros(sheet.blocks, dtype=np.bool_)
    main[[i - 1 for i in record.labels]] = True
    return main


def read_answers(folder: Path, fail: Callable[[str, str], None]) -> list[Record]:
    """Return the record of each answer in a folder, sorted by name and each page once. Pass other files to ``fail``."""
    paths = sorted(folder.glob(ANSWERS))
    found: dict[str, tuple[Record, Path]] = {}
    for path in paths:
        try:
            record = _read_answer(path.read_text(encoding="utf-8"))
        except (AnswerError, ValueError, OSError) as error:
            fail(str(path), str(error))
            continue
        _, first = found.setdefault(record.sha256, (record, path))
        if first != path:
            fail(str(path), f"the page was answered in {first.name} as well; remove one of them")
    return [record for record, _ in found.values()]


def _read_answer(text: str) -> Record:
    """Return the record of an answer. Raise AnswerError or ValueError if it is invalid."""
    whole = read_object(text).unique()
    task, labels = whole.get("task"), whole.get("labels")
    if not isinstance(task, Pairs) or not isinstance(labels, Pairs):
        raise AnswerError("expected an object with the objects 'task' and 'labels', as the inspector exports it")
    known = task.unique()
    blocks = known.get("blocks")
    if not isinstance(blocks, int) or not 0 < blocks <= MAX_BLOCKS:
        raise AnswerError("expected the task as it was written (got one without blocks, or with more than any page)")
    main = check(labels, blocks)
    try:
        return record_of(known, main, HUMAN)
    except ValueError as error:
        raise AnswerError(f"expected {error}; leave the task as it was written") from None


LABELS = ("main", "other")
_NAMED = 20  # maximum number of ids in an error message
_short = Repr()
_short.maxstring = _short.maxother = 24
_excerpt = Repr()
_excerpt.maxstring = 100


class Pairs(list[tuple[str, Any]]):
    """A JSON object as written: in order, and with duplicate keys."""

    def unique(self) -> dict[str, Any]:
        """Return the object as a dict. Raise :exc:`AnswerError` if a key occurs twice."""
        twice = [key for key, count in Counter(key for key, _ in self).items() if count > 1]
        if twice:
            raise AnswerError(f"expected each key once (got twice: {_names(map(_short.repr, twice))})")
        return dict(self)


def read_object(text: str) -> Pairs:
    """Parse a text that is a JSON object. Raise :exc:`AnswerError` if it is something else."""
    try:
        value = json.loads(text, object_pairs_hook=Pairs)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, Pairs):
        return value
    raise AnswerError(f"expected one JSON object and nothing else (got {_excerpt.repr(text) if text else 'nothing'})")


def check(pairs: Iterable[tuple[str, Any]], n: int) -> list[int]:
    """Return the ids of main blocks, in order. Raise :exc:`AnswerError` unless each id from 1 to n has one label."""
    expected = {str(i): i for i in range(1, n + 1)}
    counts: Counter[str] = Counter()
    main: list[int] = []
    unknown: list[str] = []
    wrong: list[str] = []
    for key, label in pairs:
        if key not in expected:
            unknown.append(_short.repr(key))
            continue
        counts[key] += 1
        if label not in LABELS or not isinstance(label, str):
            wrong.append(f"{key} ({_short.repr(label)})")
        elif label == "main":
            main.append(expected[key])
    problems = {
        "missing": [key for key in expected if key not in counts],
        "more than once": [key for key, count in counts.items() if count > 1],
        "unknown": unknown,
        "neither main nor other": wrong,
    }
    if any(problems.values()):
        found = "; ".join(f"{problem}: {_names(ids)}" for problem, ids in problems.items() if ids)
        ids = f"every id from 1 to {n}" if n > 1 else "the id 1"
        raise AnswerError(f"expected {ids} exactly once, as main or other (got {found})")
    return sorted(main)


def _names(ids: Iterable[str]) -> str:
    listed = list(ids)
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {more} more" if more > 0 else "")
