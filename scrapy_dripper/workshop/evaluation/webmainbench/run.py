"""Measure all pages of a WebMainBench file in several processes, and format the means."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.workshop.dataset.pages import DataError
from scrapy_dripper.workshop.dataset.text_table import aligned
from scrapy_dripper.workshop.evaluation.measure import OURS, Stored
from scrapy_dripper.workshop.evaluation.peers import PEERS, quiet
from scrapy_dripper.workshop.evaluation.rouge import load_cut
from scrapy_dripper.workshop.evaluation.run import RunError
from scrapy_dripper.workshop.evaluation.webmainbench.metrics import (
    ALL,
    FINE,
    TREES,
    BenchPage,
    BenchScores,
    canonical_markdown,
    read_lines,
    read_page,
    score,
)

if TYPE_CHECKING:
    from scrapy_dripper.extractor import Extractor

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
    """What to measure."""

    config: Config
    peers: tuple[str, ...] = ()
    stored: Mapping[str, Stored] | None = None
    """Texts by id that are scored in place of our output; None to run the model."""


class BenchMeasurer:
    """Measures pages. The model and the peers are loaded on first use."""

    def __init__(self, setup: BenchSetup) -> None:
        self._setup, self._cut = setup, load_cut()
        self._extractor: Extractor | None = None
        self._peers: dict[str, Callable[[bytes], str]] = {}
        quiet()

    def __call__(self, number: int, line: str) -> BenchResult:
        """Return the scores of a line. Raise :exc:`DataError` if the line is not a page."""
        try:
            page = read_page(line)
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"line {number} is no page of WebMainBench: {error}") from None
        scores, errors = {}, {}
        for name in (OURS, *self._setup.peers):
            try:
                canonical, markdown = self._ours(page) if name == OURS else self._peer(name, page)
            except Exception as error:  # errors of a peer, or of html2text, are part of the result
                errors[name] = f"{type(error).__name__}: {error}"[:300]
                canonical = markdown = ""
            scores[name] = score(page, canonical, markdown, self._cut)
        return BenchResult(page.id or f"line {number}", page.groups, scores, errors)

    def _ours(self, page: BenchPage) -> tuple[str, str]:
        if self._setup.stored is not None:
            stored = self._setup.stored.get(page.id, Stored("")).text
            return stored, stored
        if self._extractor is None:
            from scrapy_dripper.extractor import Extractor

            self._extractor = Extractor(self._setup.config)
        (extraction,) = self._extractor.extract([Document(page.html, page.url)])
        markdown = extraction.markdown or ""
        return canonical_markdown(extraction.main_html) if extraction.main_html else markdown, markdown

    def _peer(self, name: str, page: BenchPage) -> tuple[str, str]:
        if name not in self._peers:
            self._peers[name] = PEERS[name].load()
        text = self._peers[name](page.html.encode("utf-8", "replace"))
        return text, text


def measure(path: Path, setup: BenchSetup, jobs: int) -> Iterator[BenchResult]:
    """Yield the result of each page of a file, in its order.

    Raise :exc:`DataError` if the file or a line is invalid, and :exc:`RunError` if a process dies.
    """
    lines = tqdm(read_lines(path), unit="page", desc="evaluate", disable=None)
    if jobs <= 1:
        measurer = BenchMeasurer(setup)
        yield from (measurer(number, line) for number, line in lines)
        return
    # Spawned, because the threads of the model's runtime do not survive a fork.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (setup,))
    try:
        yield from _ahead(pool, lines, 4 * jobs)
    except BrokenProcessPool:
        raise RunError(
            "a process died, out of memory or in the code of a peer: try a smaller --jobs or fewer --peers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _ahead(pool: ProcessPoolExecutor, lines: Iterable[tuple[int, str]], most: int) -> Iterator[BenchResult]:
    """Yield the results in order. The number of lines in memory is bounded, because a file can have gigabytes."""
    waiting: deque[Future[BenchResult]] = deque()
    for number, line in lines:
        waiting.append(pool.submit(_measure, number, line))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


_measurer: BenchMeasurer | None = None


def _start(setup: BenchSetup) -> None:
    global _measurer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C.
    _measurer = BenchMeasurer(setup)


def _measure(number: int, line: str) -> BenchResult:
    assert _measurer is not None
    return _measurer(number, line)


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

    def text(self) -> str:
        """Return the tables as text."""
        count = sum(bool(one.scores[OURS].fine) for one in self.results)
        parts = [f"{len(self.results):,} pages of {self.name}, {count:,} with Markdown by annotators"]
        groups = self.groups
        body = [[label, *(_cell(self.rouge(system, one)) for one in groups)] for system, label in self.labels.items()]
        if self.rouge(OURS) is not None:
            pages = ["pages", *(f"{number:,}" for number in groups.values())]
            parts.append("ROUGE-5 F1 on html2text's Markdown\n" + aligned(["", *groups], [pages, *body]))
        if count:
            head = ["", "overall", *FINE, TREES]
            fine = {system: self.fine(system) for system in self.labels}
            body = [[label, *(_cell(fine[system][one]) for one in head[1:])] for system, label in self.labels.items()]
            parts.append("Parts of the Markdown, over the pages where either text has them\n" + aligned(head, body))
        errors = {label: sum(system in one.errors for one in self.results) for system, label in self.labels.items()}
        parts += [
            f"{label} raised on {number:,} pages, which count as empty" for label, number in errors.items() if number
        ]
        return "\n\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the means and the scores of all pages as JSON values."""
        systems = [
            {
                "name": system,
                "label": label,
                "rouge": {group: self.rouge(system, group) for group in self.groups},
                "fine": self.fine(system),
            }
            for system, label in self.labels.items()
        ]
        pages = [
            {
                "id": one.id,
                "groups": list(one.groups),
                "errors": dict(one.errors),
                "scores": {name: {**asdict(found), "overall": found.overall} for name, found in one.scores.items()},
            }
            for one in self.results
        ]
        return {
            "data": {"file": self.name, "pages": len(self.results)},
            "groups": self.groups,
            "notes": list(self.notes),
            "systems": systems,
            "pages": pages,
        }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
