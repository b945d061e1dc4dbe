"""Read WebMainBench, and score Markdown as its toolkit does.

A line of its JSON Lines is a page: ``html``, ``main_html`` (the part that annotators chose), ``convert_main_content``
(the Markdown of that part), ``groundtruth_content`` (Markdown written by annotators, for 545 of the 7,809 pages) and
``meta``. The metrics are those of the Dripper paper (section 4.2.2) and of MinerU-HTML (section 3.2.1):

* ROUGE-5 over jieba's tokens, of html2text's Markdown of both the extraction and ``main_html``;
* edit similarities of the text, the code, the formulas and the tables, against ``groundtruth_content``;
* TEDS of the tables, as the toolkit computes it, and as it is defined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import html2text
import lxml.html
from bs4 import Tag
from rapidfuzz.distance import Levenshtein

from scrapy_dripper.workshop.dataset.metrics import PRF
from scrapy_dripper.workshop.dataset.pages import DataError
from scrapy_dripper.workshop.evaluation.rouge import Cut, rouge
from scrapy_dripper.workshop.evaluation.webmainbench.parts import (
    code,
    first_table,
    formulas,
    html_of_rows,
    table_text,
    tables,
)
from scrapy_dripper.workshop.evaluation.webmainbench.teds import edit_similarity, teds

FINE = ("text_edit", "code_edit", "formula_edit", "table_edit", "table_TEDS")
"""The toolkit's metrics of parts. Its overall score is their mean."""
TREES = "TEDS of trees"
ALL = "all"

_marks = re.compile(r"</?marked-(?:tail|text|inline)\b[^<>]*>", re.IGNORECASE).sub
_attributes = re.compile(
    r"""\s(?:data-anno-uid|cc-select)\s{0,9}=\s{0,9}(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"']+)""", re.IGNORECASE
).sub


@dataclass(frozen=True, slots=True)
class BenchPage:
    """A page of WebMainBench."""

    id: str
    url: str
    html: str
    """The page without the marks of the annotators' tool."""
    main_html: str | None
    converted: str | None
    """html2text's Markdown of ``main_html``."""
    truth: str | None
    """The Markdown written by annotators; None for most pages."""
    groups: tuple[str, ...]
    """The groups of the paper's table 2 to which the page belongs: ``all``, its level, and what it contains."""


def read_page(line: str) -> BenchPage:
    """Return the page of a line. Raise ValueError or TypeError if the line is not a page."""
    record = json.loads(line)
    if not isinstance(record, dict) or not isinstance(record.get("html"), str):
        found = ", ".join(map(repr, list(record)[:5])) if isinstance(record, dict) else type(record).__name__
        raise ValueError(f"expected an object with 'html' (got {found})")
    main_html, converted, truth = map(record.get, ("main_html", "convert_main_content", "groundtruth_content"))
    for name, value in (("main_html", main_html), ("convert_main_content", converted), ("groundtruth_content", truth)):
        if not isinstance(value, str | None):
            raise ValueError(f"expected text as {name!r} (got {type(value).__name__})")
    if converted is None and main_html is not None:
        converted = canonical_markdown(main_html)
    if converted is None and truth is None:
        raise ValueError("expected 'main_html', 'convert_main_content' or 'groundtruth_content' (got none of them)")
    return BenchPage(
        id=str(record.get("track_id") or record.get("id") or ""),
        url=str(record.get("url") or ""),
        html=without_annotation(record["html"]),
        main_html=main_html,
        converted=converted,
        truth=truth,
        groups=groups_of(record.get("meta") or {}),
    )


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers. Raise :exc:`DataError` if it cannot be read."""
    try:
        with path.open(encoding="utf-8") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None


def without_annotation(html: str) -> str:
    """Return a page without the elements and attributes that the annotators' tool wrote into it.

    The attribute ``cc-select`` marks the answer itself. The elements are placed around texts, and would separate them
    from their paragraphs.
    """
    return _attributes("", _marks("", html))


def groups_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of a page: level, language, style, and each kind of rich content that it has."""
    groups = [ALL]
    if level := meta.get("level"):
        groups.append(str(level))
    if language := meta.get("language"):
        groups.append("English" if language == "en" else "other languages")
    groups += [kind for kind in ("table", "code", "equation") if meta.get(kind)]
    if style := meta.get("style"):
        forum = str(style).lower().startswith(("forum", "conversation"))
        groups.append("conversational" if forum else "not conversational")
    return tuple(groups)


def canonical_markdown(html: str) -> str:
    """Return the Markdown that both papers compare: that of html2text, without line wrapping, links and images."""
    writer = html2text.HTML2Text(bodywidth=0)
    writer.ignore_links = writer.ignore_images = True
    return str(writer.handle(html)) if html.strip() else ""


@dataclass(frozen=True, slots=True)
class BenchScores:
    """The scores of a text on a page."""

    rouge: PRF | None
    """None if the page has no Main-HTML from annotators."""
    fine: Mapping[str, float | None]
    """The scores of :data:`FINE` and :data:`TREES`. A score is None if neither text has that part.

    Empty if the page has no Markdown from annotators.
    """

    @property
    def overall(self) -> float | None:
        """The mean of the metrics of :data:`FINE` that apply, which the toolkit calls the page's overall score."""
        scores = [score for name in FINE if (score := self.fine.get(name)) is not None]
        return sum(scores) / len(scores) if scores else None


def score(page: BenchPage, canonical: str, markdown: str, cut: Cut) -> BenchScores:
    """Return the scores of an extraction: its Markdown by html2text, and its own Markdown."""
    return BenchScores(
        rouge=None if page.converted is None else rouge(canonical, page.converted, cut),
        fine={} if page.truth is None else fine_scores(markdown, page.truth),
    )


def fine_scores(prediction: str, truth: str) -> dict[str, float | None]:
    """Return the edit similarities of a Markdown with the true one. A value is None if neither has that part.

    As in the toolkit, the text is all of the Markdown, and only the first of several HTML tables is compared. Formulas
    are those that regular expressions find. (The toolkit can also ask a language model which of them are prices.)
    """
    found, wanted = tables(prediction), tables(truth)
    one, other = first_table(found), first_table(wanted)
    table_edit = _similarity(table_text(one), table_text(other))
    return {
        "text_edit": _similarity(prediction, truth),
        "code_edit": _similarity(code(prediction), code(truth)),
        "formula_edit": _similarity(formulas(prediction), formulas(truth)),
        "table_edit": table_edit,
        "table_TEDS": None if table_edit is None else toolkit_teds(one, other),
        TREES: teds(_elements(found), _elements(wanted)) if found or wanted else None,
    }


def toolkit_teds(one: Tag | None, other: Tag | None) -> float | None:
    """Return what the toolkit calls TEDS, or None for tables that are nested too deeply for it.

    It writes each table as a string of brackets and passes it to APTED, which expects a tree and sees a single leaf. So
    the distance is that of two strings, which is never more than 2, but it is divided by the number of elements of the
    larger table. The score is therefore nearly 1 whenever both texts have a table.
    """
    if one is None or other is None:
        return float(one is other)
    try:
        first, second = _brackets(one), _brackets(other)
    except RecursionError:
        return None
    distance = min(_change(first[0], second[0]), 2.0)  # A deletion and an insertion cost 2.
    return max(0.0, 1.0 - distance / max(first[1], second[1]))


def _change(one: str, other: str) -> float:
    (tag, _, text), (other_tag, _, other_text) = one.partition(":"), other.partition(":")
    if tag != other_tag:
        return 1.0
    if not text or not other_text:
        return float(len(text or other_text))
    return float(Levenshtein.normalized_distance(text, other_text))


def _brackets(element: Tag) -> tuple[str, int]:
    """Return the toolkit's notation of an element and the number of its nodes. Groups of rows lose their rows."""
    label, nodes, inside = element.name, 1, []
    if text := element.get_text(strip=True):
        label += ":" + text.replace("(", "[").replace(")", "]").replace(",", ";")
    below = [child for child in element.children if isinstance(child, Tag)]
    if element.name in ("tbody", "thead", "tfoot"):
        below = [cell for row in below for cell in _cells(row)]
    for child in below:
        written, count = _brackets(child)
        inside.append(written)
        nodes += count
    return (f"{label}({','.join(inside)})" if inside else label), nodes


def _cells(row: Tag) -> list[Tag]:
    below = [child for child in row.children if isinstance(child, Tag)]
    if row.name in ("tbody", "thead", "tfoot"):
        return [cell for inner in below for cell in _cells(inner)]
    return below


def _elements(written: list[str]) -> list[lxml.html.HtmlElement]:
    """Return tables of HTML or Markdown as elements."""
    html = (one if "<table" in one.lower() else html_of_rows(one) for one in written)
    return [table for one in html if one for table in lxml.html.fragment_fromstring(one, "div").iterchildren("table")]


def _similarity(one: str, other: str) -> float | None:
    return edit_similarity(one, other) if one or other else None
