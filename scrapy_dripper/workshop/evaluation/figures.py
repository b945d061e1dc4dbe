"""The figures of an evaluation as tables: means with intervals, paired differences, block scores, calibration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrapy_dripper.characters import printable
from scrapy_dripper.workshop.dataset.metrics import (
    ALL,
    PAGE_TYPES,
    POOR,
    SUMMARY,
    ScoreRow,
    cells_of,
    mean,
    mean_interval,
    mean_prf,
    paired_interval,
    summarize,
    words,
)
from scrapy_dripper.workshop.dataset.sets import Sample
from scrapy_dripper.workshop.dataset.tables import ReportTable
from scrapy_dripper.workshop.evaluation.blocks import BlockResult, block_prf, pooled, reliability
from scrapy_dripper.workshop.evaluation.complexity import LEVELS, levels
from scrapy_dripper.workshop.evaluation.measure import PageResults, Result
from scrapy_dripper.workshop.evaluation.text_measures import SCALE, Study

TIE = 1e-9
BINS = 10
"""Number of bins of the distribution of word F1."""


@dataclass(frozen=True, slots=True)
class SystemResults:
    """The results of a system by page."""

    name: str
    label: str
    results: Mapping[str, Result]

    def of(self, ids: Iterable[str]) -> list[Result]:
        """Return the results for some pages."""
        return [self.results[name] for name in ids]

    @property
    def f1(self) -> list[float]:
        """The word F1 of each page."""
        return [one.row.word.f1 for one in self.results.values()]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of a run."""

    data: str
    """The names of the sets."""
    data_sha256: str
    samples: Sequence[Sample]
    levels: Mapping[str, str]
    systems: Sequence[SystemResults]
    """The systems, ours first."""
    notes: Sequence[str]
    """Caveats that readers must know."""
    resamples: int

    @property
    def ours(self) -> SystemResults:
        """Our own system."""
        return self.systems[0]

    def worst(self, n: int) -> list[Sample]:
        """Return the n pages with our lowest word F1. Among equals, longer true texts come first."""
        rows = self.ours.results
        return sorted(self.samples, key=lambda s: (rows[s.id].row.word.f1, -len(s.truth), s.id))[:n]

    def tables(self) -> Iterator[ReportTable]:
        """Yield all tables."""
        types = _members(self.samples, lambda s: s.page_type, PAGE_TYPES)
        yield self._systems()
        yield from self._papers()
        yield self._distribution()
        yield self._groups("page type", types)
        yield self._groups("difficulty", _members(self.samples, lambda s: self.levels[s.id], LEVELS))
        if len(self.systems) > 1:
            yield self._differences(types)
        yield from self._blocks(types)
        scores = {system.name: {i: one.row for i, one in system.results.items()} for system in self.systems}
        yield from set_tables(self.samples, scores, self.resamples)

    def text(self) -> str:
        """Return the tables as text, without control characters, which names of files and pages may contain."""
        head = f"{len(self.samples):,} pages of {self.data}"
        return printable("\n\n".join([head, *(table.text() for table in self.tables())]))

    def to_json(self) -> dict[str, Any]:
        """Return the tables, and the word F1 of each page, as JSON values."""
        pages = [
            {
                "id": sample.id,
                "type": sample.page_type,
                "level": self.levels[sample.id],
                "source": self.ours.results[sample.id].source,
                "f1": {system.name: round(system.results[sample.id].row.word.f1, 6) for system in self.systems},
            }
            for sample in self.samples
        ]
        return {
            "data": {"folder": self.data, "sha256": self.data_sha256, "pages": len(self.samples)},
            "notes": list(self.notes),
            "tables": {table.title: table.records() for table in self.tables()},
            "pages": pages,
        }

    def _systems(self) -> ReportTable:
        rouge = {"ROUGE-5": ".4f", "R-5 P": ".4f", "R-5 R": ".4f"} if self.ours.of(self.levels)[0].rouge else {}
        columns = {"system": "", **SUMMARY, "low": ".4f", "high": ".4f", **rouge, "errors": ",d"}
        rows = []
        for system in self.systems:
            results = list(system.results.values())
            grams = mean_prf([one.rouge for one in results if one.rouge])
            rows.append([
                system.label,
                *cells_of(summarize([one.row for one in results])),
                *mean_interval(system.f1, self.resamples)[1:],
                *([grams.f1, grams.precision, grams.recall] if rouge else []),
                sum(one.error is not None for one in results),
            ])  # fmt: skip
        note = (
            "Means over pages. Word F1, P and R compare the words of the extracted and of the true text as bags, with "
            "a 95 % interval from low to high. With and without: share of the required snippets, and of the forbidden "
            "ones, that are in the text. Empty: pages without a word, and how many of them wrongly. Errors: pages on "
            "which the system raised an exception; they count as empty."
        )
        return ReportTable("Systems", columns, rows, note)

    def _papers(self) -> Iterator[ReportTable]:
        """Yield the tables of measures that were asked for."""
        by_system = [(system.label, list(system.results.values())) for system in self.systems]
        if by_system[0][1][0].nodes:
            scores = [(label, mean_prf([one.nodes for one in some if one.nodes])) for label, some in by_system]
            columns = {"system": "", "F1": ".4f", "R": ".4f", "P": ".4f"}
            yield ReportTable(
                "DOM nodes, as Alarte and Silva count them", columns, [[label, *prf[::-1]] for label, prf in scores]
            )
        if by_system[0][1][0].study:
            names = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "content-noise", "coherence", "completeness")
            columns = {"system": "", **dict.fromkeys(names, ".2f"), "ms": ",.1f", "tokens": ",.0f", "cost": ".6f"}
            rows = []
            for label, some in by_system:
                studies = [one.study for one in some if one.study]
                values = [SCALE * mean([study[k] for study in studies]) for k in range(len(Study._fields))]
                taken = (_known_mean([getattr(one, name) for one in some]) for name in ("seconds", "tokens", "cost"))
                seconds, used, cost = taken
                rows.append([label, *values, 1000 * seconds, used, cost])
            yield ReportTable(f"Measures of Yadav's study, 0 to {SCALE}", columns, rows)

    def _distribution(self) -> ReportTable:
        counts = {
            system.name: [min(int(f1 * BINS), BINS - 1) for f1 in system.f1] for system in self.systems
        }  # fmt: skip
        rows = [
            [f"{k / BINS:.1f} to {(k + 1) / BINS:.1f}", *(mean([at == k for at in some]) for some in counts.values())]
            for k in range(BINS)
        ]
        columns = {"word F1": "", **dict.fromkeys(counts, ".1%")}
        return ReportTable("Share of pages by word F1", columns, rows)

    def _groups(self, kind: str, groups: Mapping[str, Sequence[str]]) -> ReportTable:
        columns = {kind: "", "pages": ",", **{system.name: ".4f" for system in self.systems}}
        rows = []
        for name, ids in groups.items():
            found = [summarize([one.row for one in system.of(ids)]) for system in self.systems]
            ours = found[0]
            rows.append(
                [name, len(ids), *(one.word.f1 for one in found), ours.word.precision, ours.word.recall, ours.poor]
            )
        note = "The complexity score of the Dripper paper over these pages, cut at its 30th and 70th percentiles."
        return ReportTable(
            f"Word F1 by {kind}",
            {**columns, "our P": ".4f", "our R": ".4f", f"ours < {POOR}": ".1%"},
            rows,
            note if kind == "difficulty" else "",
        )

    def _differences(self, types: Mapping[str, Sequence[str]]) -> ReportTable:
        metrics: dict[str, Callable[[Result], float]] = {
            "word F1": lambda one: one.row.word.f1,
            "P": lambda one: one.row.word.precision,
            "R": lambda one: one.row.word.recall,
        }
        if any(one.rouge for one in self.ours.results.values()):
            metrics["ROUGE-5"] = lambda one: one.rouge.f1 if one.rouge else 0.0
        every = list(self.ours.results)
        plan = [(ALL, name, every) for name in metrics] + [(kind, "word F1", ids) for kind, ids in types.items()]
        rows = []
        for peer in self.systems[1:]:
            for group, name, ids in plan:
                value = metrics[name]
                pairs = zip(self.ours.of(ids), peer.of(ids), strict=True)
                deltas = [value(ours) - value(theirs) for ours, theirs in pairs]
                better, worse = sum(d > TIE for d in deltas), sum(d < -TIE for d in deltas)
                interval = paired_interval(deltas, self.resamples)
                star = "*" if interval.excludes_zero else ""
                rows.append(
                    [peer.name, name, group, len(ids), *interval, star, better, worse, len(ids) - better - worse]
                )
        columns = {"peer": "", "metric": "", "pages of": "", "n": ",", **dict.fromkeys(("mean", "low", "high"), "+.4f")}
        note = "On the same pages, with 95 % bootstrap intervals over pages. *: the interval does not include 0."
        return ReportTable(
            "Ours minus each peer, paired by page",
            {**columns, "*": "", "better": ",", "worse": ",", "tied": ","},
            rows,
            note,
        )

    def _blocks(self, types: Mapping[str, Sequence[str]]) -> Iterator[ReportTable]:
        known = {i: one.blocks for i, one in self.ours.results.items() if one.blocks is not None}
        if not known:
            return
        rows: list[list[Any]] = []
        for name, ids in {ALL: list(known), **types}.items():
            if some := [known[i].prf() for i in ids if i in known]:
                prf = mean_prf(some)
                rows.append([name, len(some), prf.f1, prf.precision, prf.recall])
        counts = [blocks.counts() for blocks in known.values()]
        whole = block_prf(*(sum(column) for column in zip(*counts, strict=True)))
        rows.append(["all blocks together", None, whole.f1, whole.precision, whole.recall])
        inferred = sum(blocks.inferred for blocks in known.values())
        note = (
            "Our labels against those that aligning the page with its true text gives. Copies of a main block do not "
            f"count: either could have been chosen. Pages whose labels were inferred from the text: {inferred}."
        )
        yield ReportTable("Blocks", {"type": "", "pages": ",", "F1": ".4f", "P": ".4f", "R": ".4f"}, rows, note)
        if any(blocks.probabilities is not None for blocks in known.values()):
            yield _calibration(list(known.values()))


def evaluate(
    data: str,
    data_sha256: str,
    samples: Sequence[Sample],
    found: Iterable[PageResults],
    labels: Mapping[str, str],
    notes: Sequence[str],
    resamples: int,
) -> Evaluation:
    """Return the evaluation of pages. ``labels`` are the display names of the systems, ours first."""
    pages = list(found)
    level = dict(zip((page.id for page in pages), levels([page.complexity for page in pages]), strict=True))
    systems = [SystemResults(name, label, {p.id: p.results[name] for p in pages}) for name, label in labels.items()]
    return Evaluation(data, data_sha256, samples, level, systems, notes, resamples)


def _members(samples: Sequence[Sample], kind: Callable[[Sample], str], order: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of each kind: first the kinds in ``order``, then others. Empty kinds are left out."""
    found: dict[str, list[str]] = {}
    for sample in samples:
        found.setdefault(kind(sample), []).append(sample.id)
    names = [name for name in order if name in found] + sorted(set(found) - set(order))
    return {name: found[name] for name in names}


def _known_mean(values: Sequence[float | None]) -> float:
    """Return the mean of the values that are known, or NaN if none is."""
    return mean([value for value in values if value is not None])


def _calibration(results: Sequence[BlockResult]) -> ReportTable:
    p, truth, words = pooled(results)
    by_block, by_word = reliability(p, truth), reliability(p, truth, words)
    n = len(by_block.weight)
    rows = [
        [
            f"{k / n:.1f} to {(k + 1) / n:.1f}",
            *(column for one in (by_block, by_word) for column in (one.weight[k], one.probability[k], one.share[k])),
        ]
        for k in range(n)
    ]
    columns = {"probability": "", "blocks": ",.0f", "mean p": ".3f", "main": ".3f"}
    columns |= {"words": ",.0f", "mean p of words": ".3f", "main words": ".3f"}
    note = (
        f"Expected calibration error: {by_block.error:.4f} by blocks, {by_word.error:.4f} by words. Ideally, the share "
        "of main blocks equals the mean probability."
    )
    return ReportTable("Calibration", columns, rows, note)


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
