"""Run the systems on pages, in several processes, and score their texts."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.workshop.dataset.alignment import align
from scrapy_dripper.workshop.dataset.metrics import PRF, ReportTable, ScoreRow, page_title, score
from scrapy_dripper.workshop.dataset.sets import AnnotatedPage, DataError
from scrapy_dripper.workshop.evaluation.blocks import count_prf, node_prf
from scrapy_dripper.workshop.evaluation.complexity import complexity
from scrapy_dripper.workshop.evaluation.language_models import (
    ENDPOINT,
    Judge,
    LanguageModel,
    ModelOptions,
    ModelReply,
    Verdict,
)
from scrapy_dripper.workshop.evaluation.peers import PEERS, quiet
from scrapy_dripper.workshop.evaluation.text_measures import Study, load_cut, rouge, study

if TYPE_CHECKING:
    from scrapy_dripper.extractor import Extractor


Bools = npt.NDArray[np.bool_]

OURS, FREE, STORED = "ours", "free", "stored"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a system on a page."""

    row: ScoreRow
    rouge: PRF | None = None
    nodes: PRF | None = None
    """Score of the main DOM nodes (:mod:`scrapy_dripper.workshop.evaluation.blocks`)."""
    blocks: PRF | None = None
    """Score of the block labels; None for a page without blocks, and for a peer."""
    study: Study | None = None
    """Measures of the business study (:mod:`scrapy_dripper.workshop.evaluation.text_measures`)."""
    seconds: float | None = None
    """CPU time of the extraction, in seconds, which is one of the measures of the study. For a language model, it is
    the time until its answer arrives. None for a stored text.
    """
    tokens: int | None = None
    """Number of tokens in a language model's request and answer."""
    cost: float | None = None
    """Price of these tokens."""
    error: str | None = None
    """The exception that the system raised. The text then counts as empty."""
    source: str | None = None
    """The source of our own extraction, with the fallback reason if there is one."""
    verdict: Verdict | None = None
    """Whether a judge preferred our text or this one; None if it was not asked, or gave no valid answer."""
    removed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How many blocks the method ``sore`` has removed from our own extraction, and how many of these are not main, by
    reason."""


@dataclass(frozen=True, slots=True)
class PageResults:
    """The difficulty of a page, and the results of all systems on it, ours first."""

    id: str
    complexity: float
    results: Mapping[str, Result]


class Systems:
    """Our own extraction and the peers, which are loaded on first use."""

    def __init__(self, config: Config, checkpoint: Path | None = None) -> None:
        """``checkpoint`` is that of the configured model, decoded without a grammar by :data:`FREE`."""
        self._config, self._checkpoint = config, checkpoint
        self._extractors: dict[str, Extractor] = {}
        self._peers: dict[str, Callable[[bytes], str | ModelReply]] = {}
        quiet()

    def extracted(self, name: str, document: Document) -> Extraction:
        """Return our own extraction: :data:`OURS`, or :data:`FREE`."""
        if name not in self._extractors:
            from scrapy_dripper.extractor import Extractor

            engine = None
            if name == FREE:
                from scrapy_dripper.workshop.export.reference import free_engine

                assert self._checkpoint is not None
                engine = free_engine(self._config, self._checkpoint)
            self._extractors[name] = Extractor(self._config, engine)
        (extraction,) = self._extractors[name].extract([document])
        return extraction

    def peer(self, name: str, make: Callable[[], Callable[[bytes], str | ModelReply]] | None = None) -> Any:
        """Return the function of a peer, which ``make`` or the table of peers loads."""
        if name not in self._peers:
            self._peers[name] = (make or PEERS[name].load)()
        return self._peers[name]

    def close(self) -> None:
        """Close the models."""
        for extractor in self._extractors.values():
            extractor.close()


class Figures(ABC):
    """The figures of a run: tables, caveats, and a row for each page and system."""

    about: Mapping[str, Any]
    """What was measured, as JSON values."""
    head: str
    """What was measured, in a line."""
    notes: Sequence[str]
    """Caveats that readers must know."""

    @abstractmethod
    def tables(self) -> Iterable[ReportTable]:
        """Return all tables."""

    @abstractmethod
    def pages(self) -> list[dict[str, Any]]:
        """Return the figures of each page and system, all with the same keys."""

    def text(self) -> str:
        """Return the tables as text."""
        return "\n\n".join([self.head, *(table.text() for table in self.tables())])

    def to_json(self) -> dict[str, Any]:
        """Return the tables, and the figures of each page, as JSON values."""
        tables = {table.title: table.records() for table in self.tables()}
        return {"data": dict(self.about), "notes": list(self.notes), "tables": tables, "pages": self.pages()}


def fields_of(prefix: str, values: Sequence[float] | None, kind: type[PRF] | type[Study]) -> dict[str, float | None]:
    """Return the fields of a score by name, with a prefix; None without a score."""
    return {f"{prefix}{name}": values[k] if values else None for k, name in enumerate(kind._fields)}


def source_of(extraction: Extraction) -> str:
    """Return who made an extraction, and the fallback reason if there is one."""
    return ", ".join(filter(None, [extraction.source, extraction.fallback_reason]))


def answered(sources: Mapping[str, Iterable[str | None]]) -> list[ReportTable]:
    """Return a table of who answered for our own extractions, on how many pages; none if no model was run."""
    rows = [
        [label, source, pages]
        for label, some in sources.items()
        for source, pages in Counter(source for source in some if source not in (STORED, None)).most_common()
    ]
    return [ReportTable("Who answered", {"system": "", "source": "", "pages": ","}, rows)] if rows else []


def named(label: str, sources: Iterable[str | None]) -> str:
    """Return our label with the name of the fallback, if that answered on all pages."""
    found = {(source or "").split(", ")[0] for source in sources}
    only = found.pop() if len(found) == 1 else ""
    return f"{label}, but {only} on all pages" if only.startswith("fallback:") else label


@dataclass(frozen=True, slots=True)
class Setup:
    """What to measure. A call returns the function that measures pages."""

    config: Config
    peers: tuple[str, ...] = ()
    stored: Mapping[str, Stored] | None = None
    """Texts by id that are scored in place of our output; None to run the model."""
    rouge: bool = False
    nodes: bool = False
    study: bool = False
    endpoint: ModelOptions | None = None
    """The language model that is measured as a peer, or is the judge."""
    judged: str | None = None
    """The peer whose text a judge compares with ours."""
    checkpoint: Path | None = None
    """The checkpoint of the configured model, to decode it without a grammar as well."""

    def __call__(self) -> Measurer:
        return Measurer(self)


class Measurer:
    """Measures pages."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self._systems = setup, Systems(setup.config, setup.checkpoint)
        self._cut = load_cut() if setup.rouge else None
        self._judge = Judge(setup.endpoint) if setup.endpoint and setup.judged else None
        self.close = self._systems.close

    def __call__(self, sample: AnnotatedPage) -> PageResults:
        """Return the result of each system on a page. Errors of systems do not make this raise."""
        html = sample.path.read_bytes()
        try:
            difficulty = complexity(parse(decode_html(html, None)))
        except PageError:
            difficulty = 0.0
        page = _TruePage.of(sample, html, self.setup.config)
        results, markdown = {}, ""
        for name in (OURS, *([FREE] if self.setup.checkpoint else [])):
            results[name], text = self._ours(page, name)
            markdown = text if name == OURS else markdown
        for name in self.setup.peers:
            results[name] = self._peer(name, page, PEERS[name].load, markdown)
        if (model := self.setup.endpoint) and not self._judge:
            results[ENDPOINT] = self._peer(ENDPOINT, page, partial(LanguageModel, model), markdown)
        return PageResults(sample.id, difficulty, results)

    def _ours(self, page: _TruePage, name: str) -> tuple[Result, str]:
        """Return the result of our own extraction, and its Markdown."""
        removed: dict[str, tuple[int, int]] = {}
        if name == OURS and self.setup.stored is not None:
            stored = self.setup.stored.get(page.sample.id, Stored(""))
            source, seconds, markdown = STORED, None, stored.text
        else:
            start = time.process_time()
            extraction = self._systems.extracted(name, Document(page.html, page.sample.url))
            seconds = time.process_time() - start
            stored = Stored(extraction.text or "", extraction.labels)
            source, markdown = source_of(extraction), extraction.markdown or ""
            if page.labels_of(stored) is not None:  # or the method, which has other limits, has seen other blocks
                for reason, numbers in extraction.details.get("removed", {}).items():
                    removed[reason] = len(numbers), int((~page.main[list(numbers)]).sum())
        labels = page.labels_of(stored)
        result = self._scored(page, stored.text, labels)
        blocks = None if page.page is None else page.block_prf(stored.text, labels)
        return replace(result, source=source, removed=removed, blocks=blocks, seconds=seconds), markdown

    def _peer(self, name: str, page: _TruePage, make: Callable[[], Any], markdown: str) -> Result:
        try:
            extract = self._systems.peer(name, make)
            start = time.process_time()
            answer = extract(page.html)
            seconds = time.process_time() - start
        except Exception as error:  # errors of a peer are part of its result
            return replace(self._scored(page, ""), error=f"{type(error).__name__}: {error}"[:300])
        if isinstance(answer, str):
            verdict = self._judge(page.html, markdown, answer) if self._judge and name == self.setup.judged else None
            return replace(self._scored(page, answer), seconds=seconds, verdict=verdict)
        return replace(self._scored(page, answer.text), seconds=answer.seconds, tokens=answer.tokens, cost=answer.cost)

    def _scored(self, page: _TruePage, text: str, labels: Bools | None = None) -> Result:
        """Return the score of a text. ``labels`` are those of the page's blocks, if they are known."""
        truth = page.sample.truth
        return Result(
            scored(page.sample, text, page.html),
            rouge=rouge(text, truth, self._cut) if self._cut else None,
            nodes=page.nodes_of(text, labels) if self.setup.nodes else None,
            study=study(text, truth) if self.setup.study else None,
        )


@dataclass(frozen=True, slots=True)
class _TruePage:
    """A page with its true labels. Its blocks are None if it has none."""

    sample: AnnotatedPage
    html: bytes
    page: Page | None
    main: Bools
    copies: Bools
    """True if the block is not in the truth but another block with the same words is. Such blocks do not count."""

    @classmethod
    def of(cls, sample: AnnotatedPage, html: bytes, config: Config) -> _TruePage:
        try:
            page = read(Document(html, sample.url), config)
        except PageError:
            return cls(sample, html, None, *np.zeros((2, 0), dtype=np.bool_))
        truth = align(page.blocks.text, sample.truth)
        return cls(sample, html, page, truth.main, truth.duplicate)

    def labels_of(self, stored: Stored) -> Bools | None:
        """Return the labels of the blocks, or None if they are missing, or do not fit the blocks."""
        known = self.page is not None and len(stored.labels) == len(self.page.blocks)
        return np.array(stored.labels, dtype=np.bool_) if known else None

    def found(self, text: str, labels: Bools | None) -> Bools:
        """Return the labels of the blocks, inferred from the text if they are not known."""
        assert self.page is not None
        return align(self.page.blocks.text, text).main if labels is None else labels

    def block_prf(self, text: str, labels: Bools | None) -> PRF:
        """Return the score of the block labels (Dripper paper, A.8)."""
        found, main = self.found(text, labels)[~self.copies], self.main[~self.copies]
        return count_prf(int((found & main).sum()), int((found & ~main).sum()), int((~found & main).sum()))

    def nodes_of(self, text: str, labels: Bools | None) -> PRF:
        """Return the score of the main DOM nodes."""
        if self.page is None:
            return count_prf(0, 0, int(bool(self.sample.truth.strip())))
        return node_prf(self.page, self.found(text, labels), self.main)


def scored(sample: AnnotatedPage, text: str, html: bytes) -> ScoreRow:
    """Return the score of a text for a sample, whose page is ``html``."""
    snippets = sample.with_snippets, sample.without_snippets
    titles = sample.title, page_title(html)
    return score(text, sample.truth, *snippets, titles=titles)


AHEAD = 4
"""Maximum number of pages that wait for each process. A file of pages can have gigabytes."""

T = TypeVar("T")
R = TypeVar("R")


class RunError(Exception):
    """The run cannot continue. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored extraction: the text, and the labels of the blocks if they were stored as well."""

    text: str
    labels: tuple[bool, ...] = ()


def read_stored(path: Path) -> dict[str, Stored]:
    """Return the texts of a JSON Lines file by id. Raise :exc:`DataError` if the file is invalid."""
    stored: dict[str, Stored] = {}
    number = 0
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 (the error names it)
                if not line.strip():
                    continue
                entry = json.loads(line)
                name, labels = str(entry["id"]), tuple(entry.get("labels") or ())
                if any(value not in (0, 1) for value in labels):
                    raise ValueError("the labels are not true or false")
                if name in stored:
                    raise ValueError(f"the id {name!r} is there twice")
                stored[name] = Stored(str(entry.get("text") or ""), tuple(map(bool, labels)))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f'{path}, line {number}: expected {{"id": "...", "text": "..."}} ({what})') from None
    return stored


def measured(make: Callable[[], Any], tasks: Iterable[T], jobs: int) -> Iterator[Any]:
    """Yield the result of each task, in order.

    Each process calls ``make`` once, which returns a function of a task that can also be closed. Raise :exc:`RunError`
    if a process dies.
    """
    if jobs <= 1:
        with closing(make()) as measurer:
            yield from map(measurer, tasks)
        return
    # Spawned, because the threads of the model's runtime do not survive a fork.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (make,))
    waiting: deque[Future[Any]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(_measure, task))
            if len(waiting) >= AHEAD * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise RunError(
            "a process died, out of memory or in the code of a peer: try a smaller --jobs or fewer --peers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_measurer: Callable[[Any], Any] | None = None


def _start(make: Callable[[], Any]) -> None:
    global _measurer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C and lets this process finish its page.
    _measurer = make()


def _measure(task: Any) -> Any:
    assert _measurer is not None
    return _measurer(task)
