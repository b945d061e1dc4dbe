"""Measure the pages of a WebMainBench file, and format the means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.workshop.dataset.pages import DataError
from scrapy_dripper.workshop.dataset.tables import ReportTable
from scrapy_dripper.workshop.evaluation.measure import OURS, Systems
from scrapy_dripper.workshop.evaluation.rouge import load_cut
from scrapy_dripper.workshop.evaluation.run import Stored
from scrapy_dripper.workshop.evaluation.webmainbench.metrics import (
    ALL,
    FINE,
    TREES,
    BenchPage,
    BenchScores,
    canonical_markdown,
    read_page,
    score,
)

GROUPS = (ALL, "simple", "mid", "hard", "table", "code", "equation", "conversational")
"""The columns of the paper's table 2, in its order. Other groups follow after them."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The scores of a page."""

    id: str
    groups: tuple[str, ...]
    scores: Mapping[str, BenchScores]
    """The scores by system."""
    errors: Mapping[str, str]
    """The exceptions by system. The text then counts as empty."""


@dataclass(frozen=True, slots=True)
class BenchSetup:
    """What to measure. A call returns the function that measures pages."""

    config: Config
    peers: tuple[str, ...] = ()
    stored: Mapping[str, Stored] | None = None
    """Texts by id that are scored in place of our output; None to run the model."""

    def __call__(self) -> BenchMeasurer:
        return BenchMeasurer(self)


class BenchMeasurer:
    """Measures pages, which come as lines with their numbers."""

    def __init__(self, setup: BenchSetup) -> None:
        self._setup, self._cut, self._systems = setup, load_cut(), Systems(setup.config)
        self.close = self._systems.close

    def __call__(self, numbered: tuple[int, str]) -> BenchResult:
        """Return the scores of a line. Raise :exc:`DataError` if the line is not a page."""
        number, line = numbered
        try:
            page = read_page(line)
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"line {number} is no page of WebMainBench: {error}") from None
        scores, errors = {}, {}
        for name in (OURS, *self._setup.peers):
            try:
                canonical, markdown = self._texts(name, page)
            except Exception as error:  # errors of a peer, or of html2text, are part of the result
                errors[name] = f"{type(error).__name__}: {error}"[:300]
                canonical = markdown = ""
            scores[name] = score(page, canonical, markdown, self._cut)
        return BenchResult(page.id or f"line {number}", page.groups, scores, errors)

    def _texts(self, name: str, page: BenchPage) -> tuple[str, str]:
        """Return html2text's Markdown of an extraction, and its own. Texts of peers and stored texts are both."""
        if name != OURS:
            text = self._systems.peer(name)(page.html.encode("utf-8", "replace"))
            return text, text
        if self._setup.stored is not None:
            stored = self._setup.stored.get(page.id, Stored("")).text
            return stored, stored
        extraction = self._systems.ours(Document(page.html, page.url))
        markdown = extraction.markdown or ""
        return canonical_markdown(extraction.main_html) if extraction.main_html else markdown, markdown


@dataclass(frozen=True, slots=True)
class BenchFigures:
    """The means of all systems over the pages of a file."""

    name: str
    labels: Mapping[str, str]
    """The display names of the systems, ours first."""
    results: Sequence[BenchResult]
    notes: Sequence[str] = field(default_factory=tuple)

    def rouge(self, system: str, group: str = ALL) -> float | None:
        """Return the mean ROUGE-5 F1 of a group, or None if no page has Main-HTML from annotators."""
        some = (one.scores[system].rouge for one in self.results if group in one.groups)
        return _mean([prf.f1 for prf in some if prf is not None])

    def fine(self, system: str) -> dict[str, float | None]:
        """Return the mean of each metric of parts over the pages that it applies to, and ``overall``, their mean.

        As in the toolkit, a metric that applies to no page counts as 0 in the overall score.
        """
        means: dict[str, float | None] = {}
        for name in (*FINE, TREES):
            some = [one.scores[system].fine.get(name) for one in self.results]
            means[name] = _mean([score for score in some if score is not None])
        overall = sum(means[name] or 0.0 for name in FINE) / len(FINE)
        return {"overall": None if means[FINE[0]] is None else overall, **means}

    @property
    def groups(self) -> dict[str, int]:
        """The number of pages of each group: those of the paper first, then others by name."""
        names = {name for one in self.results for name in one.groups}
        order = [*(name for name in GROUPS if name in names), *sorted(names - set(GROUPS))]
        return {name: sum(name in one.groups for one in self.results) for name in order}

    def tables(self) -> list[ReportTable]:
        """Return the tables of the metrics that apply to some page."""
        tables = []
        if self.rouge(OURS) is not None:
            columns = {"system": "", **{f"{name} ({pages:,})": ".4f" for name, pages in self.groups.items()}}
            rows = [[label, *(self.rouge(name, one) for one in self.groups)] for name, label in self.labels.items()]
            tables.append(ReportTable("ROUGE-5 F1 on html2text's Markdown, by group (pages)", columns, rows))
        if any(one.scores[OURS].fine for one in self.results):
            columns = {"system": "", **dict.fromkeys(("overall", *FINE, TREES), ".4f")}
            rows = [[label, *self.fine(name).values()] for name, label in self.labels.items()]
            title = "Parts of the Markdown, over the pages where either text has them"
            tables.append(ReportTable(title, columns, rows))
        return tables

    def text(self) -> str:
        """Return the tables as text."""
        count = sum(bool(one.scores[OURS].fine) for one in self.results)
        head = f"{len(self.results):,} pages of {self.name}, {count:,} with Markdown by annotators"
        errors = {label: sum(system in one.errors for one in self.results) for system, label in self.labels.items()}
        notes = [f"{name} raised on {n:,} pages, which count as empty" for name, n in errors.items() if n]
        return "\n\n".join([head, *(table.text() for table in self.tables()), *notes])

    def to_json(self) -> dict[str, Any]:
        """Return the tables, and the scores of all pages, as JSON values."""
        pages = [
            {
                "id": one.id,
                "groups": list(one.groups),
                "errors": dict(one.errors),
                "scores": {name: {**asdict(found), "overall": found.overall} for name, found in one.scores.items()},
            }
            for one in self.results
        ]
        tables = {table.title: table.records() for table in self.tables()}
        return {"data": self.name, "notes": list(self.notes), "tables": tables, "pages": pages}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
