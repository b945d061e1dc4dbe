"""The scores of extractions: word F1 and that of WCXB, the facts that a text keeps, and the tables of a report.

Of some pages, only facts are known. A fact counts if its words stand in the visible text of the page, and is kept if
they stand one after the other in the extraction. A page counts for a kind of facts if at least :data:`VISIBLE` of them
are visible.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from scrapy_dripper.learning.metrics import PRF, aligned, bag_prf, neutral_prf, words
from scrapy_dripper.page.charset import decode_html

POOR = 0.5
"""A page with a lower word F1 counts as poor."""
_wcxb_words = re.compile(r"\w+").findall
_title = re.compile(r"<title\b[^>]{0,500}>(.{0,900}?)</title", re.I | re.S).search


def page_title(html: bytes) -> str:
    """Return the text of the ``title`` element of a page, or an empty string."""
    match = _title(decode_html(html, None))
    return " ".join(unescape(match[1]).split()) if match else ""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of one page."""

    word: PRF
    """Score with a neutral title, and with characters of scripts without spaces as words."""
    wcxb: PRF
    """Score as in WCXB's own evaluation."""
    with_rate: float
    """Share of the wanted snippets that were found. As in WCXB, a page without snippets counts as 1."""
    without_rate: float
    """Share of the unwanted snippets that were found. As in WCXB, a page without snippets counts as 1, although 1 is
    the worst value here.
    """
    empty: bool
    """True if the prediction has no words."""
    wrongly_empty: bool
    """True if the prediction has no words, and the ground truth has some."""


def word_prf(prediction: str, truth: str) -> PRF:
    """Compare the bags of lower-case words as WCXB does: all three values are 1 if both texts are empty, and 0 if one
    of them is.
    """
    return bag_prf(Counter(_wcxb_words(prediction.lower())), Counter(_wcxb_words(truth.lower())))


def snippet_rate(prediction: str, snippets: Sequence[str]) -> float:
    """Return the share of snippets found in a text, ignoring case but not white space; 1 without snippets."""
    text = prediction.lower()
    return mean([snippet.lower() in text for snippet in snippets]) if snippets else 1.0


def score(
    prediction: str,
    truth: str,
    with_snippets: Sequence[str] = (),
    without_snippets: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> ScoreRow:
    """Return the score of one page. ``titles`` are the titles that do not count in the word F1."""
    empty = not _wcxb_words(prediction)
    return ScoreRow(
        neutral_prf(prediction, truth, titles),
        word_prf(prediction, truth),
        with_rate=snippet_rate(prediction, with_snippets),
        without_rate=snippet_rate(prediction, without_snippets),
        empty=empty,
        wrongly_empty=empty and bool(_wcxb_words(truth)),
    )


def summarize(rows: Sequence[ScoreRow]) -> dict[str, float]:
    """Return the number of pages, means over pages, or NaN without pages, and the numbers of empty predictions, by the
    names that they have in tables. The means are unweighted, so an F1 is not the harmonic mean of precision and recall.
    """
    word = mean_prf([row.word for row in rows])
    return {
        "pages": len(rows),
        "word F1": word.f1,
        "P": word.precision,
        "R": word.recall,
        f"< {POOR}": mean([row.word.f1 < POOR for row in rows]),
        "WCXB F1": mean([row.wcxb.f1 for row in rows]),
        "with": mean([row.with_rate for row in rows]),
        "without": mean([row.without_rate for row in rows]),
        "empty": sum(row.empty for row in rows),
        "wrongly": sum(row.wrongly_empty for row in rows),
    }


def mean(values: Sequence[float]) -> float:
    """Return the mean, or NaN without values."""
    return sum(values) / len(values) if values else float("nan")


def mean_prf(values: Sequence[PRF]) -> PRF:
    """Return the means of precision, recall and F1."""
    return PRF(*(mean([value[k] for value in values]) for k in range(3)))


VISIBLE = 0.6
_unseen = re.compile(r"<(script|style|noscript|template)\b(?:.*?</\1\s*>|.*)|<!--(?:.*?-->|.*)", re.I | re.S)
"""As in a browser, an element or a comment without an end takes the rest of the page."""
_tag = re.compile(r"<[^<>]+>")


def visible(html: str) -> str:
    """Return the words of a page's visible text, with a space before and after each."""
    return spaced(_tag.sub(" ", _unseen.sub(" ", html)))


def spaced(text: str) -> str:
    """Return the words of a text in lower case, with a space before and after each."""
    return f" {' '.join(words(_tag.sub(' ', unescape(unescape(text)))))} "


def kept(facts: Mapping[str, Sequence[str]], page: str, text: str) -> dict[str, float]:
    """Return the share of the facts of each kind that a text keeps, for the kinds that count on this page.

    ``page`` is the :func:`visible` text, and ``text`` that of the extraction.
    """
    own = spaced(text)
    shares = {}
    for name, texts in facts.items():
        wanted = {one for one in map(spaced, texts) if one.strip()}
        there = [one for one in wanted if one in page]
        if there and len(there) >= VISIBLE * len(wanted):
            shares[name] = sum(one in own for one in there) / len(there)
    return shares


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned."""
    rule = "|".join(["---"] + ["---:"] * (len(head) - 1))
    first, *rest = (f"| {' | '.join(line)} |" for line in [head, *body])
    return "\n".join([first, f"|{rule}|", *rest])


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of values. Each column has a name and a format, such as ``.4f``. None and NaN become empty cells."""

    title: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    """What a reader has to know about the figures."""

    def cells(self) -> list[list[str]]:
        """Return the rows as text."""
        return [
            ["" if _unknown(value) else format(value, form) for value, form in zip(row, forms, strict=True)]
            for forms in [list(self.columns.values())]
            for row in self.rows
        ]

    def text(self) -> str:
        """Return the title, the table as aligned text, and the note."""
        return "\n".join(filter(None, [self.title, aligned(list(self.columns), self.cells()), self.note]))

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return markdown_table(list(self.columns), self.cells())

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as JSON values, by the name of the column."""
        return [
            {name: None if _unknown(value) else value for name, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
