"""Tables that compare all systems on several sets of pages: by set, by language, and by length of the truth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from scrapy_dripper.workshop.dataset.bootstrap import paired_interval
from scrapy_dripper.workshop.dataset.metrics import POOR, ScoreRow, mean, summarize, words
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.tables import ReportTable

LENGTHS = ((150, "under 150 words"), (300, "150 to 299"), (600, "300 to 599"))
LONGEST = "600 words or more"
FEW = 10
"""Languages with fewer pages than this share a row."""
MEAN = "mean of sets"
OTHERS, UNKNOWN = "other languages", "not declared"

_HEAD = 20_000
_lang = re.compile(rb"<html\b[^<>]{0,900}?\blang\s{0,9}=\s{0,9}[\"']?([a-zA-Z]{2,3})\b", re.I).search

Scores = Mapping[str, Mapping[str, ScoreRow]]
"""Scores by system, ours first, and then by the page's id."""


def set_tables(samples: Sequence[Sample], scores: Scores, resamples: int = 2_000) -> list[ReportTable]:
    """Return a table by set, by language and by length, over pages for which every system has a score."""
    languages = {sample.id: sample.language or declared_language(sample) for sample in samples}
    counts = Counter(languages.values())

    def language(name: str) -> str:
        return name if counts[name] >= FEW or name == UNKNOWN else OTHERS

    lengths = [*(name for _, name in LENGTHS), LONGEST]
    sets = _grouped({s.id: s.part for s in samples})
    by_language = _grouped({name: language(found) for name, found in languages.items()})
    by_length = _grouped({s.id: length_of(len(words(s.truth))) for s in samples})
    last = (OTHERS, UNKNOWN)
    groupings = {
        "set": sets,
        "language": dict(sorted(by_language.items(), key=lambda one: (one[0] in last, -len(one[1]), one[0]))),
        "true text": {name: by_length[name] for name in lengths if name in by_length},
    }
    return [_table(kind, groups, scores, resamples) for kind, groups in groupings.items()]


def declared_language(sample: Sample) -> str:
    """Return the language declared by the page's ``html`` element."""
    with sample.path.open("rb") as file:
        match = _lang(file.read(_HEAD))
    return match[1].decode().lower() if match else UNKNOWN


def length_of(n: int) -> str:
    """Return the name of the group for a page with this number of true words."""
    return next((name for end, name in LENGTHS if n < end), LONGEST)


def _grouped(kinds: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        groups.setdefault(kind, []).append(name)
    return groups


def _table(kind: str, groups: Mapping[str, Sequence[str]], scores: Scores, resamples: int) -> ReportTable:
    peers = list(scores)[1:]
    columns = {kind: "", "pages": ",", "word F1": ".4f", "P": ".4f", "R": ".4f", f"< {POOR}": ".1%", "WCXB F1": ".4f"}
    for peer in peers:
        columns |= {peer: ".4f", f"{peer} < {POOR}": ".1%", f"{peer} WCXB F1": ".4f"}
    if peers:
        columns |= dict.fromkeys((f"F1 less {peers[0]}", "low", "high"), "+.4f")
    figures = {name: _row(ids, scores, resamples) for name, ids in groups.items()}
    rows: list[list[object]] = [[name, len(groups[name]), *cells] for name, cells in figures.items()]
    if kind == "set":  # all sets have the same weight in their mean
        means: list[float | None] = [mean(column) for column in zip(*figures.values(), strict=True)]
        if peers:
            means[-3:] = [None] * 3
        rows.append([MEAN, sum(map(len, groups.values())), *means])
    return ReportTable(f"By {kind}", columns, rows)


def _row(ids: Sequence[str], scores: Scores, resamples: int) -> list[float]:
    ours, *peers = (summarize([rows[name] for name in ids]) for rows in scores.values())
    cells = [ours.word.f1, ours.word.precision, ours.word.recall, ours.poor, ours.wcxb.f1]
    for peer in peers:
        cells += [peer.word.f1, peer.poor, peer.wcxb.f1]
    if peers:
        mine, theirs, *_ = scores.values()
        cells += paired_interval([mine[name].word.f1 - theirs[name].word.f1 for name in ids], resamples)
    return cells
