"""The pages of a crawl as a table in one HTML file, in which only our own script runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from scrapy_dripper.data import Extraction
from scrapy_dripper.inspection.assets import html_file

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
class Command:
    """A command that shows the inspector's view of a page, before the page's URL."""

    words: str = "scrapy dripper --inspect --open"
    source: str = "downloaded again"
    """Where it finds pages."""


def table_file(name: str, summary: str, rows: Iterable[Row], views: Mapping[Row, str], command: Command) -> str:
    """Return the report of a spider's crawl. ``views`` are the addresses of the inspector's views.

    Pages that the model did not decide come first, by their reason, and then those of the lowest quality.
    """
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
