"""Report on a crawl when it ends: a summary in the log, and the file of ``DRIPPER_REPORT``."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from pathlib import Path
from tempfile import TemporaryFile

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import Extraction
from scrapy_dripper.paths import replace_file

logger = logging.getLogger(__name__)

MOST_ROWS = 5_000
"""Maximum number of rows of a report. A longer crawl is represented by a random sample of this size."""
MOST_NAMES = 40
"""Maximum number of sources, reasons or types that are counted by name. Others are counted together."""
NAMES_SHOWN = 8
"""Maximum number of names in a line of the summary."""
OTHERS = "(others)"
LONGEST_URL, LONGEST_TITLE, LONGEST_NAME = 500, 120, 60
"""Maximum number of characters that are kept."""

_COLUMNS = ("page", "type", "quality", "length", "main blocks", "ms", "source", "reason")
_STYLE = """\
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: start; vertical-align: top; padding: .3rem .8rem; border-bottom: 1px solid #8886; }
td:first-child { overflow-wrap: anywhere; }
"""


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
    """Number of characters of the text."""
    blocks: int
    main_blocks: int
    milliseconds: float | None
    """None for pages that were stopped, and so not measured."""

    @classmethod
    def of(cls, extraction: Extraction) -> Row:
        """Return the row of an extraction."""
        return cls(
            url=_short(extraction.url, LONGEST_URL),
            title=_short(extraction.title, LONGEST_TITLE),
            source=_short(extraction.source, LONGEST_NAME),
            reason=_short(extraction.fallback_reason, LONGEST_NAME),
            page_type=_short(extraction.page_type, LONGEST_NAME),
            quality=extraction.quality,
            length=len(extraction.text or ""),
            blocks=extraction.details.get("blocks", 0),
            main_blocks=extraction.main_blocks,
            milliseconds=extraction.details.get("milliseconds") or None,
        )


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

    def page(self, extraction: Extraction) -> None:
        """Record a page that has been extracted."""
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

    def tell(self, name: str) -> None:
        """Log the summary if there were any pages, and write the report if it is configured. Never raises."""
        if self.pages:
            logger.info("%s", self.summary())
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._path, self.html(name))
            except Exception as error:  # a missing report must not spoil the end of a successful crawl
                logger.error("DRIPPER_REPORT: cannot write %s: %s", self._path, error)
            else:
                logger.info("Report of the crawl: %s", self._path)

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

    def html(self, name: str) -> str:
        """Return the report as an HTML file without scripts: the summary, and a table of the pages.

        Those that the model did not decide come first, by their reason, and then those of the lowest quality.
        """
        summary = self.summary()
        if self.pages > len(self.rows):
            summary += f"\nThe table has a random sample of {len(self.rows):,} pages."
        rows = sorted(self.rows, key=lambda row: (not row.reason, row.reason, row.quality is None, row.quality or 0))
        table = "\n".join(f"<tr>{_line(row)}</tr>" for row in rows)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>{escape(name)} · pages</title>
<style>
{_STYLE}</style>
</head>
<body>
<h1>{escape(name)}</h1>
<pre>{escape(summary)}</pre>
<table>
<thead><tr>{_cells(_COLUMNS, "th")}</tr></thead>
<tbody>
{table}
</tbody>
</table>
</body>
</html>
"""


def _line(row: Row) -> str:
    """Return the cells of a row. Only addresses of the web are links."""
    page = escape(row.title or row.url or "(no title)")
    if row.url.lower().startswith(("http://", "https://")):
        page = f'<a href="{escape(row.url)}" rel="noopener noreferrer">{page}</a>'
    if row.title:
        page += f"<br>{escape(row.url)}"
    others = (
        row.page_type,
        "" if row.quality is None else f"{row.quality:.2f}",
        f"{row.length:,}",
        f"{row.main_blocks} / {row.blocks}" if row.blocks else "",
        "" if row.milliseconds is None else f"{row.milliseconds:,.0f}",
        row.source,
        row.reason,
    )
    return f'<td dir="auto">{page}</td>{_cells(others, "td")}'


def _cells(texts: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a given share of the ordered values does not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _short(value: object, most: int) -> str:
    return " ".join(str(value)[: 2 * most].split())[:most] if value is not None else ""
