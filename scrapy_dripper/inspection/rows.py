"""The rows of a crawl's index: a small record of each page, from an extraction or from an item of a feed."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from scrapy_dripper.data import STRIP, Extraction

MAX_ROWS = 5_000
"""Maximum number of rows of an index. A longer crawl is represented by a random sample of this size."""
MAX_URL, MAX_TITLE, MAX_NAME = 500, 120, 60
"""Maximum number of characters that are kept."""
MAX_LINE = 50_000_000
"""Maximum size of a line, in bytes."""
_is_strip = re.compile(rf"[0-9]{{1,{STRIP}}}").fullmatch


@dataclass(frozen=True, slots=True)
class Row:
    """One page of a crawl."""

    url: str
    title: str
    source: str
    reason: str
    """Why the model did not decide; empty if it did."""
    page_type: str
    quality: float | None
    length: int
    """Number of characters of the text, or of another form if there is no text."""
    blocks: int
    main_blocks: int
    milliseconds: float | None
    strip: str
    """:attr:`Extraction.strip <scrapy_dripper.Extraction.strip>`; empty without labels."""

    @classmethod
    def of(cls, extraction: Extraction) -> Row:
        """Return the row of an extraction by any engine or fallback."""
        # meta() is not used, because it computes fingerprints, which take longer than everything else.
        names = ("url", "title", "source", "fallback_reason", "page_type", "quality", "main_blocks", "strip")
        values = {**extraction.details, **{name: getattr(extraction, name) for name in names}}
        return cls._of(values, extraction.text)

    @classmethod
    def of_item(cls, item: Mapping[str, Any]) -> Row:
        """Return the row of an item from ``extract -f jsonl`` or from a crawl, with any names of fields."""
        # DRIPPER_META_FIELD can have any name. It is recognised as the dict that has a source.
        meta = next((v for v in item.values() if isinstance(v, Mapping) and {"source", "blocks"} <= set(v)), {})
        texts = (item.get(name) for name in ("text", "markdown", "main_html"))
        text = next((text for text in texts if isinstance(text, str) and text), "")
        return cls._of({**item, **meta, "url": item.get("url") or item.get("id")}, text)

    @classmethod
    def _of(cls, values: Mapping[str, Any], text: Any) -> Row:
        strip = values.get("strip")
        return cls(
            url=_text(values.get("url"), MAX_URL),
            title=_text(values.get("title"), MAX_TITLE),
            source=_text(values.get("source"), MAX_NAME),
            reason=_text(values.get("fallback_reason"), MAX_NAME),
            page_type=_text(values.get("page_type"), MAX_NAME),
            quality=_number(values.get("quality"), most=1),
            length=len(text) if isinstance(text, str) else 0,
            blocks=int(_number(values.get("blocks")) or 0),
            main_blocks=int(_number(values.get("main_blocks")) or 0),
            milliseconds=_number(values.get("milliseconds"))
            or None,  # 0 for pages that were stopped, and so not measured
            strip=strip if isinstance(strip, str) and _is_strip(strip) else "",
        )


class Sample:
    """A random sample of rows of bounded size (reservoir sampling, Vitter 1985, algorithm R); all, if they are few."""

    def __init__(self, most: int = MAX_ROWS) -> None:
        self.rows: list[Row] = []
        self.seen = 0
        self._most, self._random = most, random.Random(0)

    def add(self, row: Row) -> None:
        """Add a row, or drop it by chance."""
        self.seen += 1
        if len(self.rows) < self._most:
            self.rows.append(row)
        elif (place := self._random.randrange(self.seen)) < self._most:
            self.rows[place] = row


def read_rows(path: Path) -> Iterator[Row | None]:
    """Yield the row of each item in a JSON Lines file (gzipped or not), and None for each line that is not an item.

    Raise OSError or EOFError if the file cannot be read.
    """
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        lines: IO[bytes] = gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[assignment]
        while line := lines.readline(MAX_LINE):
            if not line.isspace():
                try:
                    item = json.loads(line)
                except (ValueError, RecursionError):
                    item = None
                yield Row.of_item(item) if isinstance(item, dict) else None


def _text(value: Any, most: int) -> str:
    return " ".join(str(value)[: 2 * most].split())[:most] if value is not None else ""


def _number(value: Any, most: float = 1e15) -> float | None:
    """Return a number from 0 to ``most``, or None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return None
