"""Figures of an extracted corpus, from the stats of its tasks and from its texts."""

from __future__ import annotations

import hashlib
import heapq
import json
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scrapy_dripper.corpus.reader import MOST_BYTES
from scrapy_dripper.corpus.records import pages
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.workers.one_worker import MOST_TAGS_FOR_FALLBACK, is_large

PER_DECADE = 4
"""Number of bins of text lengths for each power of ten."""
MOST_DECADES = 7
QUALITIES = 20
"""Number of bins of the quality, between 0 and 1."""


@dataclass
class Texts:
    """Figures of the texts in some files."""

    lengths: list[int] = field(default_factory=lambda: [0] * (PER_DECADE * MOST_DECADES))
    """Number of texts in each bin of the logarithm of their length in characters. Empty texts are left out."""
    characters: int = 0
    qualities: list[int] = field(default_factory=lambda: [0] * QUALITIES)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Number of rows by value of each column: ``source``, ``reason``, ``page_type``, ``language``."""
    rows: int = 0
    empty: int = 0


def texts(files: Iterable[str]) -> Texts:
    """Return the figures of Parquet files, which are read batch by batch."""
    found = Texts()
    for file in files:
        with pq.ParquetFile(file) as table:
            there = set(table.schema_arrow.names)
            named = [name for name in ("source", "reason", "page_type", "language") if name in there]
            for batch in table.iter_batches(columns=["text", "quality", *named]):
                found.rows += batch.num_rows
                lengths = [length or 0 for length in pc.utf8_length(batch.column("text")).to_pylist()]
                for length in lengths:
                    if length:
                        at = int(math.log10(length) * PER_DECADE)
                        found.lengths[min(at, len(found.lengths) - 1)] += 1
                found.empty += lengths.count(0)
                found.characters += sum(lengths)
                for quality in batch.column("quality").to_pylist():
                    if quality is not None:
                        found.qualities[max(0, min(int(quality * QUALITIES), QUALITIES - 1))] += 1
                for name in named:
                    counted = pc.value_counts(batch.column(name)).to_pylist()
                    found.counts[name].update({one["values"]: one["counts"] for one in counted if one["values"]})
    return found


def totals(folder: Path) -> dict[str, Counter[str]]:
    """Return the stats of each step of a pipeline, summed over all tasks, in the order of the steps."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted(folder.glob("*.json")):
        for step in json.loads(file.read_text(encoding="utf-8")):
            counter = found[step["name"].rpartition(": ")[2]]
            for name, value in step["stats"].items():
                total = value.get("total") if isinstance(value, dict) else value
                if isinstance(total, (int, float)):
                    counter[name] += int(total)
    return found


@dataclass
class Ratios:
    """Lengths of texts compared with those of Trafilatura, as in figure 3 of AICC (arXiv:2511.16397).

    A ratio is the difference of the two lengths, divided by the greater one. It is 1 if only we have a text, and -1 if
    only Trafilatura has one.
    """

    values: list[float] = field(default_factory=list)
    ours: int = 0
    """Total number of characters of our texts."""
    theirs: int = 0
    left_out: int = 0
    """Number of documents that are too large for Trafilatura, on which it failed, or that are not in their archive."""


def ratios(files: Sequence[str], number: int, markdown: bool, compared: Callable[[], None]) -> Ratios:
    """Compare a sample of documents with Trafilatura, in Markdown or as text, and call ``compared`` after each.

    The sample only depends on the ids of the documents. Their archives are read again from the paths in the rows. Raise
    OSError if one is missing.
    """
    found = Ratios()
    by_archive: dict[str, dict[str, int]] = defaultdict(dict)
    for _, name, archive, length in heapq.nsmallest(number, _hashed(files)):
        by_archive[archive][name] = length
    for archive, wanted in sorted(by_archive.items()):
        for name, html, url in _again(archive, set(wanted)):
            ours = wanted.pop(name)
            theirs = None if is_large(html, MOST_TAGS_FOR_FALLBACK) else _peer(html, url, markdown)
            if theirs is None:
                found.left_out += 1
            elif ours or theirs:
                found.values.append((ours - theirs) / max(ours, theirs))
                found.ours += ours
                found.theirs += theirs
            compared()
        found.left_out += len(wanted)
    return found


def _hashed(files: Iterable[str]) -> Iterator[tuple[bytes, str, str, int]]:
    """Yield for each row a pseudo-random number, its id, its archive and the length of its text."""
    for file in files:
        with pq.ParquetFile(file) as table:
            for batch in table.iter_batches(columns=["id", "file_path", "text"]):
                lengths = pc.fill_null(pc.utf8_length(batch.column("text")), pa.scalar(0, pa.int64())).to_pylist()
                columns = (batch.column("id").to_pylist(), batch.column("file_path").to_pylist(), lengths)
                for name, archive, length in zip(*columns, strict=True):
                    yield hashlib.sha256(name.encode()).digest(), name, archive, length


def _again(archive: str, wanted: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, HTML and URL of the wanted pages of an archive."""
    with open(archive, "rb") as stream:
        for page in pages(stream, MOST_BYTES, lambda _: None, archive):
            if page.id in wanted:
                wanted.remove(page.id)
                yield page.id, decode_html(page.body, page.charset), page.url
                if not wanted:
                    return


def _peer(html: str, url: str, markdown: bool) -> int | None:
    """Return the length of Trafilatura's text, or None if it fails."""
    from trafilatura import extract

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it warns about each page without text

    options: dict[str, Any] = {"output_format": "markdown" if markdown else "txt"}
    try:
        return len(extract(html, url=url or None, **options) or "")
    except Exception:  # a page on which Trafilatura fails must not stop the report
        return None
