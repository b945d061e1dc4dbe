"""The figures of an evaluation as tables: means with intervals, paired differences, block scores."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import stdev
from typing import Any

from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.learning.metrics import PRF, mean_interval, words
from scrapy_dripper_lab.evaluation.complexity import LEVELS, levels
from scrapy_dripper_lab.evaluation.language_models import judged_table
from scrapy_dripper_lab.evaluation.measure import OURS, STORED, PageResults, Result
from scrapy_dripper_lab.evaluation.text_measures import SCALE, Study
from scrapy_dripper_lab.scores import POOR, ReportTable, ScoreRow, mean, mean_prf, summarize
from scrapy_dripper_lab.sets import AnnotatedPage

TIE = 1e-9
RESAMPLES = 2_000
"""Number of resamples for each interval."""
LENGTHS = {"under 150 words": 150, "150 to 299": 300, "300 to 599": 600, "600 words or more": float("inf")}
"""The groups of pages by the number of words of their true text, with the end of each."""
FEW_PAGES = 10
"""Languages with fewer pages than this share a row."""
OF_GROUPS = ("word F1", "P", "R", f"< {POOR}", "WCXB F1")
"""The figures of groups of pages."""
MEAN_OF_SETS, OTHER_LANGUAGES, NOT_DECLARED = "mean of sets", "other languages", "not declared"

_HEAD_BYTES = 20_000
_lang = re.compile(rb"<html\b[^<>]{0,900}?\blang\s{0,9}=\s{0,9}[\"']?([a-zA-Z]{2,3})\b", re.I).search

Scores = Mapping[str, Mapping[str, ScoreRow]]
"""Scores by system, ours first, and then by the page's id."""


@dataclass(frozen=True)
class Figures(ABC):
    """The figures of a run: tables, caveats, and a row for each page and system."""

    about: Mapping[str, Any]
    """What was measured, as JSON values."""
    found: Sequence[PageResults]
    labels: Mapping[str, str]
    """The display names of the systems, ours first."""
    notes: Sequence[str]
    """Caveats that readers must know."""
    judged: str | None
    """The peer whose text a judge has compared with ours."""

    @property
    @abstractmethod
    def head(self) -> str:
        """What was measured, in a line."""

    @abstractmethod
    def tables(self) -> Iterator[ReportTable]:
        """Yield all tables."""

    def about_page(self, page: PageResults) -> dict[str, Any]:
        """Return what is known of a page before it is measured."""
        return {"groups": ", ".join(page.groups)}

    def results(self, system: str) -> list[Result]:
        """Return the results of a system."""
        return [page.results[system] for page in self.found]

    def answered(self) -> Iterator[ReportTable]:
        """Yield a table of who answered for our own extractions if a model was run, and the judge's table."""
        rows = [
            [label, source, pages]
            for name, label in self.labels.items()
            for source, pages in Counter(one.run.source for one in self.results(name)).most_common()
            if source not in (STORED, None)
        ]
        if rows:
            yield ReportTable("Who answered", {"system": "", "source": "", "pages": ","}, rows)
        if self.judged:
            yield judged_table([one.run.verdict for one in self.results(self.judged)], self.judged)

    def pages(self) -> list[dict[str, Any]]:
        """Return the figures of each page and system, all with the same keys."""
        every = [one for page in self.found for one in page.results.values()]
        kinds: dict[str, type[PRF] | type[Study]] = {"rouge": PRF, "nodes": PRF, "blocks": PRF, "study": Study}
        kinds = {kind: fields for kind, fields in kinds.items() if any(getattr(one, kind) for one in every)}
        parts = dict.fromkeys(part for one in every for part in one.parts)
        rows = []
        for page in self.found:
            for name, one in page.results.items():
                row: dict[str, Any] = {"id": page.id, **self.about_page(page), "system": name}
                row["source"] = one.run.source or name
                row |= one.row.word._asdict() if one.row else {}
                for kind, fields in kinds.items():
                    values = getattr(one, kind)
                    scale = SCALE if fields is Study else 1  # as in the CSV of the study (4.4)
                    row |= {
                        f"{kind}_{key}": scale * values[k] if values else None for k, key in enumerate(fields._fields)
                    }
                row |= {part: one.parts.get(part) for part in parts}
                row |= {key: getattr(one.run, key) for key in ("seconds", "tokens", "cost", "error")}
                rows.append({**row, "preferred": one.run.verdict.ours if one.run.verdict else None})
        return rows

    def text(self) -> str:
        """Return the tables as text."""
        return "\n\n".join([self.head, *(table.text() for table in self.tables())])

    def to_json(self) -> dict[str, Any]:
        """Return the tables, and the figures of each page, as JSON values."""
        tables = {table.title: table.records() for table in self.tables()}
        return {"data": dict(self.about), "notes": list(self.notes), "tables": tables, "pages": self.pages()}


@dataclass(frozen=True)
class Evaluation(Figures):
    """The results of a run on folders of pages."""

    samples: Sequence[AnnotatedPage]
    company: re.Pattern[str] | None = None
    """What the name of a page has of its company: the first group, or all that is matched; None for no such column."""

    @property
    def head(self) -> str:
        """What was measured, in a line."""
        return f"{len(self.samples):,} pages of {self.about['folder']}"

    @cached_property
    def levels(self) -> dict[str, str]:
        """The difficulty of each page."""
        found = levels([page.complexity for page in self.found])
        return {page.id: level for page, level in zip(self.found, found, strict=True)}

    @property
    def scores(self) -> Scores:
        """The scores by system and page."""
        return {name: {page.id: row for page in self.found if (row := page.results[name].row)} for name in self.labels}

    def tables(self) -> Iterator[ReportTable]:
        """Yield all tables."""
        yield self._systems()
        yield from self.answered()
        yield from self._papers()
        yield type_table(self.samples, self.scores)
        by_level = _grouped(self.levels, LEVELS)
        note = "The complexity score of the Dripper paper (A.5), cut at the 30th and 70th percentiles of these pages."
        yield group_table("difficulty", by_level, self.scores, note)
        if len(self.labels) > 1:
            yield self._differences()
        yield from self._blocks()
        yield from self._removed()
        yield from set_tables(self.samples, self.scores)

    def about_page(self, page: PageResults) -> dict[str, Any]:
        """Return the type and the difficulty of a page, and its company, if it is asked for."""
        about = {"type": self._types[page.id], "level": self.levels[page.id]}
        if self.company is None:
            return about
        found = self.company.search(page.id)
        return {"company": found[found.re.groups and 1] if found else None, **about}

    @cached_property
    def _types(self) -> dict[str, str]:
        return {sample.id: sample.page_type for sample in self.samples}

    def _systems(self) -> ReportTable:
        columns = {
            "system": "",
            "pages": ",",
            "word F1": ".4f",
            "P": ".4f",
            "R": ".4f",
            f"< {POOR}": ".1%",
            "WCXB F1": ".4f",
            "with": ".1%",
            "without": ".1%",
            "empty": ",d",
            "wrongly": ",d",
            "low": ".4f",
            "high": ".4f",
        }
        rouge = any(one.rouge for one in self.results(OURS))
        columns |= {"ROUGE-5": ".4f", "R-5 P": ".4f", "R-5 R": ".4f"} if rouge else {}
        rows = []
        for name, label in self.labels.items():
            results, scored = self.results(name), list(self.scores[name].values())
            grams = mean_prf([one.rouge for one in results if one.rouge])
            rows.append([
                label,
                *summarize(scored).values(),
                *mean_interval([row.word.f1 for row in scored], RESAMPLES)[1:],
                *([grams.f1, grams.precision, grams.recall] if rouge else []),
                sum(one.run.error is not None for one in results),
            ])  # fmt: skip
        note = (
            "Means over pages. Word F1, P and R compare the words of the extracted and of the true text as bags, with "
            "a 95 % interval from low to high. With and without: share of the required snippets, and of the forbidden "
            "ones, that are in the text. Empty: pages without a word, and how many of them wrongly. Errors: pages on "
            "which the system raised an exception; they count as empty."
        )
        return ReportTable("Systems", {**columns, "errors": ",d"}, rows, note)

    def _removed(self) -> Iterator[ReportTable]:
        """Yield the table of the reasons for which a method has removed blocks, if it has (SORE, table 4)."""
        right: Counter[str] = Counter()
        blocks: Counter[str] = Counter()
        for one in self.results(OURS):
            for reason, (removed, other) in one.removed.items():
                blocks[reason] += removed
                right[reason] += other
        if blocks:
            rows = [[reason, count, right[reason] / count] for reason, count in blocks.most_common()]
            note = "Right: share of the removed blocks that are not main in the truth."
            yield ReportTable("Why blocks were removed", {"reason": "", "blocks": ",d", "right": ".1%"}, rows, note)

    def _papers(self) -> Iterator[ReportTable]:
        """Yield the tables of measures that were asked for."""
        by_system = [(label, self.results(name)) for name, label in self.labels.items()]
        if by_system[0][1][0].nodes:
            scores = [(label, mean_prf([one.nodes for one in some if one.nodes])) for label, some in by_system]
            columns = {"system": "", "F1": ".4f", "R": ".4f", "P": ".4f"}
            yield ReportTable(
                "DOM nodes, as Alarte and Silva count them", columns, [[label, *prf[::-1]] for label, prf in scores]
            )
        if by_system[0][1][0].study:
            names = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "P", "R", "F1", "content-noise", "coherence")
            columns = {"system": "", "over pages": "", **dict.fromkeys(names, ".2f")}
            columns |= {"ms": ",.1f", "tokens": ",.0f", "cost": ".6f"}
            rows = []
            for label, some in by_system:
                values = [[SCALE * one.study[k] for one in some if one.study] for k in range(len(Study._fields))]
                values += [
                    [scale * value for one in some if (value := getattr(one.run, name)) is not None]
                    for name, scale in (("seconds", 1000), ("tokens", 1), ("cost", 1))
                ]
                rows.append([label, "mean", *map(mean, values)])
                rows.append([label, "deviation", *(stdev(one) if len(one) > 1 else None for one in values)])
            note = "P, R and F1 are of the sets of words. The study calls R completeness as well."
            yield ReportTable(f"Measures of Yadav's study, 0 to {SCALE}", columns, rows, note)

    def _differences(self) -> ReportTable:
        metrics = {"word F1": "row.word.f1", "P": "row.word.precision", "R": "row.word.recall"}
        if any(one.rouge for one in self.results(OURS)):
            metrics["ROUGE-5"] = "rouge.f1"
        rows = []
        for peer in list(self.labels)[1:]:
            for name, path in metrics.items():
                value = attrgetter(path)
                pairs = zip(self.results(OURS), self.results(peer), strict=True)
                deltas = [value(one) - value(other) for one, other in pairs]
                better, worse = sum(d > TIE for d in deltas), sum(d < -TIE for d in deltas)
                interval = mean_interval(deltas, RESAMPLES)
                star = "*" if interval.excludes_zero else ""
                rows.append([peer, name, *interval, star, better, worse, len(deltas) - better - worse])
        columns = {"peer": "", "metric": "", **dict.fromkeys(("mean", "low", "high"), "+.4f"), "*": ""}
        columns |= dict.fromkeys(("better", "worse", "tied"), ",")
        note = "On the same pages, with 95 % bootstrap intervals over pages. *: the interval does not include 0."
        return ReportTable("Ours minus each peer, paired by page", columns, rows, note)

    def _blocks(self) -> Iterator[ReportTable]:
        columns = {"system": "", "pages": ",", "F1": ".4f", "P": ".4f", "R": ".4f"}
        rows = []
        for name, label in self.labels.items():
            known = [one.blocks for one in self.results(name) if one.blocks]
            if known:
                prf = mean_prf(known)
                rows.append([label, len(known), prf.f1, prf.precision, prf.recall])
        note = (
            "Labels against those that aligning the page with its true text gives (Dripper paper, A.8). Copies of a "
            "main block do not count: either could have been chosen. Unknown labels are inferred from the text."
        )
        if rows:
            yield ReportTable("Blocks", columns, rows, note)


# ---------------------------------------------------------------------------------------------- tables of all systems
def type_table(samples: Sequence[AnnotatedPage], scores: Scores) -> ReportTable:
    """Return a table by page type."""
    return group_table("page type", _grouped({s.id: s.page_type for s in samples}, PAGE_TYPES), scores)


def set_tables(samples: Sequence[AnnotatedPage], scores: Scores) -> list[ReportTable]:
    """Return a table by set, by language and by length, over pages for which every system has a score."""
    languages = {sample.id: sample.language or declared_language(sample) for sample in samples}
    counts = Counter(languages.values())
    languages = {
        name: found if counts[found] >= FEW_PAGES or found == NOT_DECLARED else OTHER_LANGUAGES
        for name, found in languages.items()
    }
    counts, last = Counter(languages.values()), (OTHER_LANGUAGES, NOT_DECLARED)
    order = sorted(counts, key=lambda one: (one in last, -counts[one], one))
    lengths = {s.id: next(name for name, end in LENGTHS.items() if len(words(s.truth)) < end) for s in samples}
    groupings = {
        "set": _grouped({s.id: s.part for s in samples}),
        "language": _grouped(languages, order),
        "true text": _grouped(lengths, list(LENGTHS)),
    }
    return [group_table(kind, groups, scores) for kind, groups in groupings.items()]


def declared_language(sample: AnnotatedPage) -> str:
    """Return the language declared by the page's ``html`` element."""
    with sample.path.open("rb") as file:
        match = _lang(file.read(_HEAD_BYTES))
    return match[1].decode().lower() if match else NOT_DECLARED


def _grouped(kinds: Mapping[str, str], order: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the ids of each kind: first the kinds in ``order``, then others. Empty kinds are left out."""
    groups: dict[str, list[str]] = {name: [] for name in order}
    for name, kind in kinds.items():
        groups.setdefault(kind, []).append(name)
    return {kind: ids for kind, ids in groups.items() if ids}


def group_table(kind: str, groups: Mapping[str, Sequence[str]], scores: Scores, note: str = "") -> ReportTable:
    """Return the figures of all systems with a row for each group of pages."""
    peers = list(scores)[1:]
    columns = {kind: "", "pages": ",", **dict.fromkeys(OF_GROUPS, ".4f"), f"< {POOR}": ".1%"}
    for peer in peers:
        columns |= {peer: ".4f", f"{peer} < {POOR}": ".1%", f"{peer} WCXB F1": ".4f"}
    if peers:
        columns |= dict.fromkeys((f"F1 less {peers[0]}", "low", "high"), "+.4f")
    figures = {name: _row(ids, scores) for name, ids in groups.items()}
    rows: list[list[object]] = [[name, len(groups[name]), *cells] for name, cells in figures.items()]
    if kind == "set":  # all sets have the same weight in their mean
        means: list[float | None] = [mean(column) for column in zip(*figures.values(), strict=True)]
        if peers:
            means[-3:] = [None] * 3
        rows.append([MEAN_OF_SETS, sum(map(len, groups.values())), *means])
    return ReportTable(f"By {kind}", columns, rows, note)


def _row(ids: Sequence[str], scores: Scores) -> list[float]:
    ours, *peers = (summarize([rows[name] for name in ids]) for rows in scores.values())
    cells = [ours[name] for name in OF_GROUPS]
    for peer in peers:
        cells += [peer["word F1"], peer[f"< {POOR}"], peer["WCXB F1"]]
    if peers:
        mine, theirs, *_ = scores.values()
        cells += mean_interval([mine[name].word.f1 - theirs[name].word.f1 for name in ids], RESAMPLES)
    return cells
