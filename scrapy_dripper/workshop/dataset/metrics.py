"""Compare extracted text with the ground truth, as defined by WCXB's own evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrapy_dripper.workshop.dataset.neutral import neutral_prf
from scrapy_dripper.workshop.dataset.prf import PRF, bag_prf
from scrapy_dripper.workshop.dataset.text_table import aligned, markdown_table

ALL = "ALL"
"""Name of the summary over all pages."""
PAGE_TYPES = ("article", "forum", "product", "collection", "listing", "documentation", "service")
"""The page types of WCXB in its own order."""
POOR = 0.5
"""A page with a lower F1 counts as poor."""

_words = re.compile(r"\w+").findall


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of one page."""

    id: str
    page_type: str
    precision: float
    recall: float
    f1: float
    with_rate: float | None
    """Share of the wanted snippets that were found, or None if there are none."""
    without_rate: float | None
    """Share of the unwanted snippets that were found, or None if there are none."""
    empty: bool
    """True if the prediction has no words."""
    empty_truth: bool
    """True if the ground truth has no words."""
    neutral: PRF
    """Score with a neutral title, and with characters of scripts without spaces as words."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Unweighted means over pages. ``f1`` is therefore not the harmonic mean of ``precision`` and ``recall``."""

    pages: int
    precision: float
    recall: float
    f1: float
    with_rate: float
    """As defined by WCXB: a page without snippets counts as 1."""
    without_rate: float
    """As defined by WCXB: a page without snippets counts as 1, although 1 is the worst value here."""
    named_with_rate: float
    """Mean over the pages with snippets; NaN if there are none."""
    named_without_rate: float
    """Mean over the pages with snippets; NaN if there are none."""
    poor: float
    """Share of pages with an F1 below :data:`POOR`."""
    empty: int
    """Number of pages with an empty prediction."""
    wrongly_empty: int
    """Number of pages with an empty prediction whose ground truth is not empty."""


def word_prf(prediction: str, truth: str) -> PRF:
    """Compare the bags of lower-case words.

    All three values are 1 if both texts are empty, and 0 if one of them is.
    """
    return bag_prf(Counter(_words(prediction.lower())), Counter(_words(truth.lower())))


def snippet_rate(prediction: str, snippets: Sequence[str]) -> float | None:
    """Return the share of snippets found in a text, ignoring case but not white space; None without snippets."""
    if not snippets:
        return None
    text = prediction.lower()
    return sum(snippet.lower() in text for snippet in snippets) / len(snippets)


def score(
    id: str,  # noqa: A002
    page_type: str,
    prediction: str,
    truth: str,
    with_snippets: Sequence[str] = (),
    without_snippets: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> ScoreRow:
    """Return the score of one page. ``titles`` are the titles that do not count in the neutral score."""
    return ScoreRow(
        id,
        page_type,
        *word_prf(prediction, truth),
        with_rate=snippet_rate(prediction, with_snippets),
        without_rate=snippet_rate(prediction, without_snippets),
        empty=not _words(prediction),
        empty_truth=not _words(truth),
        neutral=neutral_prf(prediction, truth, titles),
    )


def summarize(rows: Sequence[ScoreRow]) -> Summary:
    """Return the means over pages, or NaN without pages."""
    return Summary(
        pages=len(rows),
        precision=_mean(row.precision for row in rows),
        recall=_mean(row.recall for row in rows),
        f1=_mean(row.f1 for row in rows),
        with_rate=_mean(1.0 if row.with_rate is None else row.with_rate for row in rows),
        without_rate=_mean(1.0 if row.without_rate is None else row.without_rate for row in rows),
        named_with_rate=_mean(row.with_rate for row in rows if row.with_rate is not None),
        named_without_rate=_mean(row.without_rate for row in rows if row.without_rate is not None),
        poor=_mean(float(row.f1 < POOR) for row in rows),
        empty=sum(row.empty for row in rows),
        wrongly_empty=sum(row.empty and not row.empty_truth for row in rows),
    )


def summaries(rows: Sequence[ScoreRow]) -> dict[str, Summary]:
    """Return the summary of all pages as :data:`ALL`, and those of the page types: first WCXB's in order, then
    others."""
    by_type: dict[str, list[ScoreRow]] = {}
    for row in rows:
        by_type.setdefault(row.page_type, []).append(row)
    order = [name for name in PAGE_TYPES if name in by_type] + sorted(set(by_type) - set(PAGE_TYPES))
    return {ALL: summarize(rows)} | {name: summarize(by_type[name]) for name in order}


def format_table(table: Mapping[str, Summary], *, markdown: bool = False) -> str:
    """Return summaries as lines of aligned text, or as a Markdown table."""
    head = ["type", "pages", "F1", "P", "R", "with", "without", f"F1 < {POOR}", "empty"]
    body = [
        [
            name,
            str(row.pages),
            *(f"{value:.4f}" for value in (row.f1, row.precision, row.recall)),
            *(f"{value:.1%}" for value in (row.with_rate, row.without_rate, row.poor)),
            f"{row.empty} ({row.wrongly_empty})",
        ]
        for name, row in table.items()
    ]
    return markdown_table(head, body) if markdown else aligned(head, body)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else float("nan")
