"""Compare extracted text with the ground truth, and give means over pages their confidence intervals.

There are two measures. The *word F1* is for sets with different conventions and languages: some ground truths begin
with the headline and some leave it out, so a headline is neutral, and each Han character or kana is a word. The other
is that of WCXB's own evaluation, where words are ``\\w+`` and titles count as the ground truth has them.

Of some pages, only facts are known. A fact counts if its words stand in the visible text of the page, and is kept if
they stand one after the other in the extraction. A page counts for a kind of facts if at least :data:`VISIBLE` of them
are visible.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.page.charset import decode_html

POOR = 0.5
"""A page with a lower word F1 counts as poor."""

TITLE_LINES = 3
"""Number of lines at the beginning of a text in which to search for the title."""
TITLE_SHARE = 0.6
"""A line with at least this share of the title's words, and no others, is the title. Sites add their name to titles."""

T = TypeVar("T")

_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall
_wcxb_words = re.compile(r"\w+").findall
_title = re.compile(r"<title\b[^>]{0,500}>(.{0,900}?)</title", re.I | re.S).search


class PRF(NamedTuple):
    """Precision, recall and their harmonic mean, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def count_prf(hits: int, predicted: int, wanted: int) -> PRF:
    """Return precision, recall and F1 from counts. All are 1 if there is nothing to find and nothing was found, and 0
    if only one of these is true.
    """
    if not predicted or not wanted:
        same = float(not predicted and not wanted)
        return PRF(same, same, same)
    precision, recall = hits / predicted, hits / wanted
    return PRF(precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0)


def bag_prf(predicted: Counter[T], wanted: Counter[T]) -> PRF:
    """Compare two bags of words. All three values are 1 if both are empty, and 0 if one of them is."""
    return count_prf((predicted & wanted).total(), predicted.total(), wanted.total())


def words(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return _words(text.lower())


def neutral_prf(prediction: str, truth: str, titles: Iterable[str] = ()) -> PRF:
    """Compare the bags of words, and return the best score over the prediction with and without a title.

    ``titles`` are those of the annotation and of the page itself. The truth is also tried with the first title in
    front. If the truth has a headline, a prediction without it loses recall. All three values are 1 if both texts are
    empty, and 0 if one of them is.
    """
    names = [title for title in titles if title]
    predictions = {prediction, *(without_title(prediction, name) for name in names)}
    truths = [truth, *(f"{name}\n{truth}" for name in names[:1])]
    bags = [Counter(words(text)) for text in truths]
    return max((bag_prf(Counter(words(text)), bag) for text in predictions for bag in bags), key=lambda prf: prf.f1)


def without_title(text: str, title: str) -> str:
    """Return a text without the first of its leading lines that is the title, or most of it."""
    lines, want = text.split("\n"), Counter(words(title))
    for i, line in enumerate(lines[:TITLE_LINES]):
        if is_title(Counter(words(line)), want):
            return "\n".join(lines[:i] + lines[i + 1 :])
    return text


def is_title(have: Counter[str], want: Counter[str], share: float = TITLE_SHARE) -> bool:
    """Return True if words are those of the title, or at least a share of them, and no others."""
    return bool(have) and have.total() >= share * want.total() and have <= want


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


_CHUNK = 4_000_000  # numbers drawn at a time


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True if the whole interval is on one side of zero."""
        return self.low > 0 or self.high < 0


def mean_interval(values: Sequence[float] | npt.NDArray[np.float64], n: int = 10_000) -> Interval:
    """Return the mean of one number per page, of which there is at least one, and its interval from n resamples."""
    data = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(0)
    rows = max(1, _CHUNK // len(data))
    means = np.concatenate(
        [
            data[rng.integers(len(data), size=(min(rows, n - done), len(data)))].mean(axis=1)
            for done in range(0, n, rows)
        ]
    )
    means.sort()
    low, high = means[int(np.floor(0.025 * (n - 1)))], means[int(np.ceil(0.975 * (n - 1)))]
    return Interval(float(data.mean()), float(low), float(high))


def aligned(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned, without control characters."""
    lines = [list(map(on_one_line, line)) for line in (head, *body)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


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
