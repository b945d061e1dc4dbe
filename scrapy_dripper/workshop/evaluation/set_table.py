"""A table that compares all systems on several sets of pages: by set, by language, and by length of the truth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scrapy_dripper.workshop.dataset.bootstrap import Interval, paired_interval
from scrapy_dripper.workshop.dataset.metrics import POOR, ScoreRow
from scrapy_dripper.workshop.dataset.neutral import words
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.prf import PRF
from scrapy_dripper.workshop.dataset.text_table import aligned, markdown_table

LENGTHS = ((150, "under 150 words"), (300, "150 to 299"), (600, "300 to 599"))
LONGEST = "600 words or more"
FEW = 10
"""Languages with fewer pages than this share a row."""
MEAN = "mean of sets"
OTHERS, UNKNOWN = "other languages", "not declared"

_HEAD = 20_000
_lang = re.compile(rb"<html\b[^<>]{0,900}?\blang\s{0,9}=\s{0,9}[\"']?([a-zA-Z]{2,3})\b", re.I).search


@dataclass(frozen=True, slots=True)
class Line:
    """The means of a system over a group of pages, 0 to 1."""

    neutral: PRF
    """Score with a neutral title, and with characters of scripts without spaces as words."""
    word_f1: float
    """Word F1 as in WCXB's own evaluation."""
    poor: float
    """Share of pages with a neutral F1 below :data:`POOR`."""


@dataclass(frozen=True, slots=True)
class Row:
    """A group of pages."""

    name: str
    pages: int
    systems: Mapping[str, Line]
    difference: Interval | None
    """Paired difference in neutral F1 between ours and the first peer; None without peers."""


@dataclass(frozen=True, slots=True)
class SetTable:
    """The rows of each grouping: ``set``, ``language`` and ``true text``."""

    groupings: Mapping[str, Sequence[Row]]

    def text(self, *, markdown: bool = False) -> str:
        """Return the rows as aligned text, or as Markdown tables."""
        return "\n\n".join(_text(kind, rows, markdown) for kind, rows in self.groupings.items())


Scores = Mapping[str, Mapping[str, ScoreRow]]
"""Scores by system, ours first, and then by the page's id."""


def set_table(samples: Sequence[Sample], scores: Scores, resamples: int = 2_000) -> SetTable:
    """Return the table over the pages for which every system has a score."""
    languages = {sample.id: sample.language or declared_language(sample) for sample in samples}
    counts = Counter(languages.values())

    def language(sample: Sample) -> str:
        name = languages[sample.id]
        return name if counts[name] >= FEW or name == UNKNOWN else OTHERS

    sets = _rows(samples, scores, lambda sample: sample.part, resamples)
    by_language = _rows(samples, scores, language, resamples)
    by_language.sort(key=lambda row: (row.name in (OTHERS, UNKNOWN), -row.pages, row.name))
    by_length = _rows(samples, scores, lambda sample: length_of(len(words(sample.truth))), resamples)
    order = [*(name for _, name in LENGTHS), LONGEST]
    by_length.sort(key=lambda row: order.index(row.name))
    return SetTable({"set": [*sets, _mean(sets)], "language": by_language, "true text": by_length})


def declared_language(sample: Sample) -> str:
    """Return the language declared by the page's ``html`` element."""
    with sample.path.open("rb") as file:
        match = _lang(file.read(_HEAD))
    return match[1].decode().lower() if match else UNKNOWN


def length_of(n: int) -> str:
    """Return the name of the group for a page with this number of true words."""
    return next((name for end, name in LENGTHS if n < end), LONGEST)


def _rows(samples: Sequence[Sample], scores: Scores, kind: Callable[[Sample], str], resamples: int) -> list[Row]:
    members: dict[str, list[str]] = {}
    for sample in samples:
        members.setdefault(kind(sample), []).append(sample.id)
    return [_row(name, ids, scores, resamples) for name, ids in members.items()]


def _row(name: str, ids: Sequence[str], scores: Scores, resamples: int) -> Row:
    systems = {}
    for system, rows in scores.items():
        some = [rows[i] for i in ids]
        systems[system] = Line(
            PRF(*(sum(column) / len(ids) for column in zip(*(row.neutral for row in some), strict=True))),
            sum(row.f1 for row in some) / len(ids),
            sum(row.neutral.f1 < POOR for row in some) / len(ids),
        )
    ours, *peers = scores.values()
    difference = None
    if peers:
        difference = paired_interval([ours[i].neutral.f1 - peers[0][i].neutral.f1 for i in ids], resamples)
    return Row(name, len(ids), systems, difference)


def _mean(rows: Sequence[Row]) -> Row:
    """Return the mean row, in which all sets have the same weight."""
    systems = {}
    for system in rows[0].systems:
        lines = [row.systems[system] for row in rows]
        n = len(lines)
        systems[system] = Line(
            PRF(*(sum(column) / n for column in zip(*(line.neutral for line in lines), strict=True))),
            sum(line.word_f1 for line in lines) / n,
            sum(line.poor for line in lines) / n,
        )
    return Row(MEAN, sum(row.pages for row in rows), systems, None)


def _text(kind: str, rows: Sequence[Row], markdown: bool) -> str:
    ours, *peers = rows[0].systems
    head = [kind, "pages", "F1", "P", "R", f"< {POOR}", "word F1"]
    head += [title for peer in peers for title in (peer, f"< {POOR}", "word F1")]
    body = []
    for row in rows:
        line = row.systems[ours]
        cells = [*(f"{value:.4f}" for value in (line.neutral.f1, line.neutral.precision, line.neutral.recall))]
        cells += [f"{line.poor:.1%}", f"{line.word_f1:.4f}"]
        for peer in peers:
            other = row.systems[peer]
            cells += [f"{other.neutral.f1:.4f}", f"{other.poor:.1%}", f"{other.word_f1:.4f}"]
        d = row.difference
        if peers:
            cells.append(f"{d.mean:+.4f} [{d.low:+.4f}, {d.high:+.4f}]" if d else "")
        body.append([row.name, str(row.pages), *cells])
    if peers:
        head.append(f"F1 less {peers[0]}")
    return markdown_table(head, body) if markdown else aligned(head, body)
