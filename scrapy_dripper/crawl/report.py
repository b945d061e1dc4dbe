"""Report on a crawl when it ends: a summary in the log, and a table of its pages in the file of ``DRIPPER_REPORT``."""

from __future__ import annotations

import logging
import random
import zlib
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappush, heapreplace
from html import escape
from math import ceil
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import quote, urlsplit

from scrapy_dripper.checks import OUT_OF_PROCESS
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import SUSPECT, Document, Extraction

logger = logging.getLogger(__name__)

MOST_ROWS = 5_000
"""Maximum number of rows of a report. A longer crawl is represented by a random sample of this size."""
MOST_NAMES = 40
"""Maximum number of sources, reasons or types that are counted by name. Others are counted together."""
NAMES_SHOWN = 8
"""Maximum number of names in a line of the summary."""
OTHERS = "(others)"
KEPT, KEPT_WITH_REASON = 16, 4
"""Number of pages with a view: of those that the model decided, and of those with the same reason."""
KEPT_BYTES = 1_000_000
"""Size of the largest document that is kept for a view, in bytes or characters."""


class Kept:
    """The pages to look at first, with their documents: of each reason, those of the lowest quality."""

    def __init__(self) -> None:
        self._of: dict[str, list[tuple[float, int, Row, Document]]] = defaultdict(list)
        self._number = 0

    def add(self, row: Row, document: Document) -> None:
        """Keep a document, compressed, if it is one of those."""
        self._number -= 1  # of equal pages, the first ones stay
        heap, rank = self._of[row.reason], (-(row.quality or 0), self._number)
        is_full = len(heap) >= (KEPT_WITH_REASON if row.reason else KEPT)
        if row.reason in SUSPECT or len(document.html) > KEPT_BYTES or (is_full and rank < heap[0][:2]):
            return
        html = document.html
        data = html if isinstance(html, bytes) else BOM_UTF8 + html.encode("utf-8", "replace")
        entry = (*rank, row, replace(document, html=zlib.compress(data, 1)))
        if is_full:
            heapreplace(heap, entry)
        else:
            heappush(heap, entry)

    def documents(self) -> dict[Row, Document]:
        """Return the documents."""
        found = (entry for heap in self._of.values() for entry in heap)
        return {row: replace(one, html=zlib.decompress(one.html)) for *_, row, one in found}  # type: ignore[arg-type]


class Report:
    """Counts the pages of a crawl, and keeps a random sample of them, in bounded memory."""

    def __init__(self, config: Config) -> None:
        """Raise :exc:`~scrapy_dripper.config.ConfigError` if the report cannot be written."""
        self._path = Path(config.report) if config.report is not None else None
        if self._path is not None:
            if self._path.is_dir():
                raise ConfigError(f"DRIPPER_REPORT must be the path of a file (got the folder {str(self._path)!r})")
            folder = self._path.parent
            try:
                folder.mkdir(parents=True, exist_ok=True)
                TemporaryFile(dir=folder).close()
            except OSError as error:
                problem = error.strerror or error
                raise ConfigError(f"DRIPPER_REPORT: {folder} cannot be written to: {problem}") from None
        self.pages = 0
        self.rows: list[Row] = []
        """All pages, or a random sample of them (reservoir sampling, Vitter 1985, algorithm R)."""
        self._counts: dict[str, Counter[str]] = {"source": Counter(), "reason": Counter(), "page type": Counter()}
        self._random = random.Random(0)
        self._config, self._kept = config, Kept()
        self._keeps = self._path is not None and config.engine not in OUT_OF_PROCESS  # such as a model on a GPU

    def page(self, extraction: Extraction, document: Document | None = None) -> None:
        """Record a page that has been extracted. Without its document, it gets no view."""
        row = Row.of(extraction)
        self.pages += 1
        for kind, name in (("source", row.source), ("reason", row.reason), ("page type", row.page_type)):
            counts = self._counts[kind]
            if name:
                counts[name if name in counts or len(counts) < MOST_NAMES else OTHERS] += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        elif (place := self._random.randrange(self.pages)) < MOST_ROWS:
            self.rows[place] = row
        if self._keeps and document is not None:
            self._kept.add(row, document)

    def tell(self, name: str, command: InspectCommand) -> None:
        """Log the summary if there were any pages, and write the report and its views if it is configured.

        Never raises. The views take seconds.
        """
        if self.pages:
            logger.info("%s", self.summary())
        if self._path is not None:
            try:
                self._write(self._path, name, command)
            except Exception as error:  # a missing report must not spoil the end of a successful crawl
                logger.error("DRIPPER_REPORT: cannot write %s: %s", self._path, error)

    def _write(self, path: Path, name: str, command: InspectCommand) -> None:
        from scrapy_dripper.inspection import VIEW  # most crawls have no report, and need no model here
        from scrapy_dripper.inspection.look import named, remove_views, write_views
        from scrapy_dripper.paths import replace_file

        folder = path.with_name(f"{path.stem}.pages")
        pages = {row: named(document) for row, document in self._kept.documents().items()}
        folder.parent.mkdir(parents=True, exist_ok=True)
        views = {row: f"{quote(folder.name)}/{quote(page.name)}{VIEW}" for row, page in pages.items()}
        replace_file(path, self.html(name, command, views))
        logger.info("Report of the crawl: %s", path)
        remove_views(folder)
        if pages:
            write_views(folder, pages.values(), self._config)

    def summary(self) -> str:
        """Return the summary of the crawl, in lines. Times and quality are those of the sample."""
        lines = [("by " + kind, self._shares(counts)) for kind, counts in self._counts.items() if counts]
        times = sorted(row.milliseconds for row in self.rows if row.milliseconds is not None)
        if times:
            lines.append(("time a page", f"p50 {_ms(_quantile(times, 0.5))}, p95 {_ms(_quantile(times, 0.95))}"))
        quality = sorted(row.quality for row in self.rows if row.quality is not None)
        if quality:
            mean = sum(quality) / len(quality)
            lines.append(("quality", f"mean {mean:.2f}, p10 {_quantile(quality, 0.1):.2f}"))
        width = max((len(name) for name, _ in lines), default=0)
        pages = "1 page" if self.pages == 1 else f"{self.pages:,} pages"
        return "\n".join([f"Main content of {pages}", *(f"  {name:<{width}}  {line}" for name, line in lines)])

    def _shares(self, counts: Counter[str]) -> str:
        common = counts.most_common(NAMES_SHOWN)
        rest = counts.total() - sum(count for _, count in common)
        named = [f"{name} {count:,} ({count / self.pages:.1%})" for name, count in common]
        return ", ".join([*named, f"and {rest:,} of other names"] if rest else named)

    def html(self, name: str, command: InspectCommand, views: Mapping[Row, str]) -> str:
        """Return the report as an HTML file. ``views`` are the addresses of the inspector's views."""
        summary = self.summary()
        if self.pages > len(self.rows):
            summary += f"\nThe table has a random sample of {len(self.rows):,} pages, and those with a view."
        return table_file(name, summary, dict.fromkeys([*self.rows, *views]), views, command)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a given share of the ordered values does not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


LONGEST_URL, LONGEST_TITLE, LONGEST_NAME, LONGEST_START = 500, 120, 60, 300
"""Maximum number of characters that are kept."""

_COLUMNS = ("page", "look", "reason", "source", "type", "quality", "length", "main blocks", "ms")


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One page of a crawl."""

    url: str
    title: str
    start: str
    """The start of the text."""
    source: str
    reason: str
    """Why the model did not decide; empty if it did."""
    page_type: str
    quality: float | None
    length: int
    """Number of characters of the text."""
    blocks: int
    main_blocks: int
    milliseconds: float | None
    """None for pages that were stopped, and so not measured."""

    @classmethod
    def of(cls, extraction: Extraction) -> Row:
        """Return the row of an extraction."""
        text = extraction.text or ""
        return cls(
            url=_short(extraction.url, LONGEST_URL),
            title=_short(extraction.title, LONGEST_TITLE),
            start=_short(text, LONGEST_START),
            source=_short(extraction.source, LONGEST_NAME),
            reason=_short(extraction.fallback_reason, LONGEST_NAME),
            page_type=_short(extraction.page_type, LONGEST_NAME),
            quality=extraction.quality,
            length=len(text),
            blocks=extraction.details.get("blocks", 0),
            main_blocks=extraction.main_blocks,
            milliseconds=extraction.details.get("milliseconds") or None,
        )


@dataclass(frozen=True)
class InspectCommand:
    """A command that shows the inspector's view of a page, before the page's URL."""

    words: str = "scrapy dripper --inspect --open"
    source: str = "downloaded again"
    """Where it finds pages."""


def table_file(name: str, summary: str, rows: Iterable[Row], views: Mapping[Row, str], command: InspectCommand) -> str:
    """Return the report of a spider's crawl. ``views`` are the addresses of the inspector's views.

    Pages that the model did not decide come first, by their reason, and then those of the lowest quality.
    """
    from scrapy_dripper.inspection import html_file  # most crawls have no report

    ordered = sorted(rows, key=lambda row: (not row.reason, row.reason, row.quality is None, row.quality or 0))
    return html_file(
        "report",
        f"{name} · pages",
        name=escape(name),
        summary=escape(summary),
        command=escape(command.words),
        source=escape(command.source),
        head="".join(f'<th scope="col">{name}</th>' for name in _COLUMNS),
        rows="\n".join(_line(row, views.get(row)) for row in ordered),
    )


def _line(row: Row, view: str | None) -> str:
    """Return a row of the table. Only addresses of the web are links."""
    page, look, host = escape(row.title or row.url or "(no title)"), "", ""
    if row.url.lower().startswith(("http://", "https://")):
        page = f'<a href="{escape(row.url)}" rel="noopener noreferrer">{page}</a>'
        look, host = '<button type="button">command</button>', _host(row.url)
    if view is not None:
        look = f'<a href="{escape(view)}" target="_blank">look</a>'
    if row.title:
        page += f"<p>{escape(row.url)}</p>"
    if row.start:
        page += f'<p class="start">{escape(row.start)}</p>'
    others = (
        row.reason,
        row.source,
        row.page_type,
        "" if row.quality is None else f"{row.quality:.2f}",
        f"{row.length:,}",
        f"{row.main_blocks} / {row.blocks}" if row.blocks else "",
        "" if row.milliseconds is None else f"{row.milliseconds:,.0f}",
    )
    cells = "".join(f"<td>{escape(text)}</td>" for text in others)
    begin = f'<tr data-host="{escape(host)}" data-reason="{escape(row.reason)}">'
    return f'{begin}<td dir="auto">{page}</td><td>{look}</td>{cells}</tr>'


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _short(value: object, most: int) -> str:
    return " ".join(str(value)[: 2 * most].split())[:most] if value is not None else ""
