"""Labels of pages: a file with a record per page, the answers that people export from the inspector, and the folder for
training (``html/ID.html`` and ``ground-truth/ID.json``)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.inspection.answers import HUMAN, LabelsError, Record, Sheet, in_utf8, main_blocks, task_of
from scrapy_dripper.page import PageError, read


def load(path: Path) -> list[Record]:
    """Return the records of a file. Raise :exc:`UsageError`, naming the line, for an invalid one; OSError if
    missing."""
    return _records(path, path.read_bytes())


def _records(path: Path, data: bytes) -> list[Record]:
    records = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(Record.of(json.loads(line)))
        except (ValueError, RecursionError) as error:
            expected = "JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else error
            raise UsageError(f"{path}, line {number}: expected {expected}; correct or delete the line") from None
    return records


class Store:
    """A file of labels to append to, with each page once."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raise :exc:`UsageError` if it holds something other than labels.

        An incomplete last line, left by a killed run, is removed.
        """
        self.path = path
        if path.exists():
            _drop_torn_line(path)
            self.done = {record.sha256 for record in load(path)}
        else:
            self.done = set()
        self._file = path.open("a", encoding="utf-8", errors="replace", newline="\n")

    def add(self, record: Record) -> None:
        """Append the labels of a page, and flush them to the file."""
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
        json.loads(data[start:])
    except (ValueError, RecursionError):
        # Only remove what can be the beginning of a record, in case this is another kind of file.
        _records(path, data[:start])
        if not data[start:].startswith(b'{"id": "'[: len(data) - start]):
            return
        with path.open("r+b") as file:
            file.truncate(start)
    else:
        _records(path, data)
        with path.open("ab") as file:
            file.write(b"\n")


MODEL_CONFIDENCE = 0.5
"""Confidence of a model's labels. That of a person's labels is 1."""


def checked_page(record: Record, sheet: Sheet) -> tuple[bytes, npt.NDArray[np.bool_]]:
    """Return a page in UTF-8, and which of its n blocks are main, of shape (n,).

    Raise :exc:`LabelsError` if the labels do not match the blocks.
    """
    if record.sha256 != sheet.sha256:
        raise LabelsError(f"the page has changed since it was labelled: its SHA-256 was {record.sha256[:12]}..., "
                          f"now it is {sheet.sha256[:12]}...; label it again")  # fmt: skip
    main, data = main_blocks(record, sheet), in_utf8(sheet.document)
    try:
        again = list(read(Document(data), Config(), PROFILES[sheet.profile]).blocks.text)
    except PageError:
        again = []
    if again != list(sheet.page.blocks.text):
        raise LabelsError("its blocks are not the same when it is written as UTF-8; leave it out")
    return data, main


def write_page(folder: Path, record: Record, sheet: Sheet) -> None:
    """Write a page to a folder, with its text and, beside it, its labels as the inspector exports them, for ``learn``.

    Raise :exc:`LabelsError` if the labels do not match the blocks.
    """
    data, main = checked_page(record, sheet)
    answer = {
        "task": task_of(sheet) | {"url": record.url, "sha256": hashlib.sha256(data).hexdigest()},
        "labels": {str(i): "main" if one else "other" for i, one in enumerate(main, 1)},
    }
    truth: dict[str, Any] = {
        "url": record.url,
        "file_id": record.id,
        "source": record.who,
        "sure": 1.0 if record.who == HUMAN else MODEL_CONFIDENCE,
        "reviewed": False,
        "_internal": {},
        "ground_truth": {"main_content": sheet.page.text_of(main), "title": record.title, "with": [], "without": []},
        "prompt": record.prompt,
    }
    for name in ("html", "ground-truth"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "html" / f"{record.id}.html").write_bytes(data)
    for name, values in ((f"ground-truth/{record.id}.json", truth), (f"html/{record.id}.answer.json", answer)):
        text = json.dumps(values, ensure_ascii=False, indent=1) + "\n"
        (folder / name).write_text(text, encoding="utf-8", errors="replace")


def adjudicated(readings: Sequence[Sequence[Record]]) -> tuple[list[Record], list[dict[str, Any]], list[float]]:
    """Combine two or more readings of pages, as the benchmark of the Dripper paper was annotated (A.5).

    Return the pages that are decided: by two readers who agree on all blocks, or, for each block, by most of three or
    more. Then the blocks on which the first two differ: ``page``, ``block``, and by reader whether it is ``main``. Then
    the agreement of these two for each page that both have read, 0 to 1, as the share of blocks. A page with one
    reading is not in the result. Nor is one that an even number of readers has not decided.
    """
    pages: dict[str, list[Record]] = {}
    for record in (record for reading in readings for record in reading):
        pages.setdefault(record.sha256, []).append(record)
    decided, disagreements, agreement = [], [], []
    for records in (some for some in pages.values() if len(some) > 1):
        first, second, *_ = records
        if any((one.cut, one.profile, one.blocks) != (first.cut, first.profile, first.blocks) for one in records):
            raise UsageError(f"{first.id} was cut into other blocks for {second.who} than for {first.who}")
        differing = set(first.labels) ^ set(second.labels)
        agreement.append(1 - len(differing) / max(first.blocks, 1))
        readers = {f"{one.who} ({k})": frozenset(one.labels) for k, one in enumerate(records, 1)}
        disagreements += [
            {"page": first.id, "block": block, "main": {who: block in labels for who, labels in readers.items()}}
            for block in sorted(differing)
        ]
        votes = Counter(block for one in records for block in one.labels)
        if not any(2 * count == len(records) for count in votes.values()):
            labels = tuple(sorted(block for block, count in votes.items() if 2 * count > len(records)))
            read = any(one.who == HUMAN and one.labels == labels for one in records)
            who = HUMAN if read else "+".join(one.who for one in records)
            styles = {one.style for one in records} - {""}
            style = styles.pop() if len(styles) == 1 else ""
            decided.append(replace(first, labels=labels, who=who, style=style))
    return decided, disagreements, agreement
