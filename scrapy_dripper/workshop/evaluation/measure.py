"""Run the systems on pages, in several processes, and score their texts."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from scrapy_dripper.workshop.dataset.metrics import PRF, ScoreRow, page_title, score
from scrapy_dripper.workshop.dataset.sets import AnnotatedPage, DataError
from scrapy_dripper.workshop.evaluation.blocks import BlockResult, block_prf, node_prf
from scrapy_dripper.workshop.evaluation.complexity import Complexity, complexity
from scrapy_dripper.workshop.evaluation.peers import ENDPOINT, PEERS, LanguageModel, ModelOptions, ModelReply, quiet
from scrapy_dripper.workshop.evaluation.text_measures import Study, load_cut, rouge, study

if TYPE_CHECKING:
    from scrapy_dripper.extractor import Extractor


Bools = npt.NDArray[np.bool_]

OURS = "ours"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a system on a page."""

    row: ScoreRow
    rouge: PRF | None = None
    nodes: PRF | None = None
    """Score of the main DOM nodes (:mod:`scrapy_dripper.workshop.evaluation.blocks`)."""
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
    removed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The blocks that the method ``sore`` has removed from our own extraction, by reason."""
    blocks: BlockResult | None = None
    """The block labels of our own extraction; None for a page without blocks."""


@dataclass(frozen=True, slots=True)
class PageResults:
    """The difficulty of a page, and the results of all systems on it, ours first."""

    id: str
    complexity: Complexity
    results: Mapping[str, Result]


class Systems:
    """Our own extraction and the peers, which are loaded on first use."""

    def __init__(self, config: Config, endpoint: ModelOptions | None = None) -> None:
        self._config = config
        self._extractor: Extractor | None = None
        self._peers: dict[str, Callable[[bytes], str | ModelReply]] = {}
        if endpoint:
            self._peers[ENDPOINT] = LanguageModel(endpoint)
        quiet()

    def ours(self, document: Document) -> Extraction:
        """Return our own extraction."""
        if self._extractor is None:
            from scrapy_dripper.extractor import Extractor

            self._extractor = Extractor(self._config)
        (extraction,) = self._extractor.extract([document])
        return extraction

    def peer(self, name: str) -> Callable[[bytes], str | ModelReply]:
        """Return the function of a peer."""
        if name not in self._peers:
            self._peers[name] = PEERS[name].load()
        return self._peers[name]

    def close(self) -> None:
        """Close the model."""
        if self._extractor is not None:
            self._extractor.close()


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
    """The language model that is measured as a peer."""

    def __call__(self) -> Measurer:
        return Measurer(self)


class Measurer:
    """Measures pages."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self._systems = setup, Systems(setup.config, setup.endpoint)
        self._cut = load_cut() if setup.rouge else None
        self.close = self._systems.close

    def __call__(self, sample: AnnotatedPage) -> PageResults:
        """Return the result of each system on a page. Errors of systems do not make this raise."""
        html = sample.path.read_bytes()
        try:
            difficulty = complexity(parse(decode_html(html, None)))
        except PageError:
            difficulty = Complexity(0.0, 0.0, 0.0, 0.0)
        page = _TruePage.of(sample, html, self.setup.config)
        names = (*self.setup.peers, *([ENDPOINT] if self.setup.endpoint else []))
        return PageResults(
            sample.id, difficulty, {OURS: self._ours(page), **{name: self._peer(name, page) for name in names}}
        )

    def _ours(self, page: _TruePage) -> Result:
        removed: Mapping[str, Sequence[int]] = {}
        if self.setup.stored is None:
            start = time.process_time()
            extraction = self._systems.ours(Document(page.html, page.sample.url))
            seconds = time.process_time() - start
            stored = Stored(extraction.text or "", extraction.labels, extraction.probabilities)
            reason = str(extraction.fallback_reason or "")
            source = ", ".join(filter(None, [extraction.source, reason]))
            removed = extraction.details.get("removed", {})
        else:
            stored, source, seconds = self.setup.stored.get(page.sample.id, Stored("")), "stored", None
        blocks = page.blocks_of(stored)
        labels = None if blocks is None or blocks.inferred else np.array(blocks.main)
        result = self._scored(page, stored.text, labels)
        return replace(result, source=source, removed=removed, blocks=blocks, seconds=seconds)

    def _peer(self, name: str, page: _TruePage) -> Result:
        try:
            extract = self._systems.peer(name)
            start = time.process_time()
            answer = extract(page.html)
            seconds = time.process_time() - start
        except Exception as error:  # errors of a peer are part of its result
            return replace(self._scored(page, ""), error=f"{type(error).__name__}: {error}"[:300])
        if isinstance(answer, str):
            return replace(self._scored(page, answer), seconds=seconds)
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
    copies: tuple[bool, ...]
    words: tuple[int, ...]

    @classmethod
    def of(cls, sample: AnnotatedPage, html: bytes, config: Config) -> _TruePage:
        try:
            page = read(Document(html, sample.url), config)
        except PageError:
            return cls(sample, html, None, np.zeros(0, dtype=np.bool_), (), ())
        truth = align(page.blocks.text, sample.truth)
        return cls(sample, html, page, truth.main, tuple(truth.duplicate.tolist()), tuple(truth.words.tolist()))

    def blocks_of(self, stored: Stored) -> BlockResult | None:
        """Return the labels and the truth of the blocks. Labels that are missing, or do not fit the blocks, are
        inferred from the text.
        """
        if self.page is None:
            return None
        inferred = len(stored.labels) != len(self.page.blocks)
        main = tuple(align(self.page.blocks.text, stored.text).main.tolist()) if inferred else stored.labels
        known = not inferred and len(stored.probabilities) == len(main)
        probabilities = stored.probabilities if known else None
        return BlockResult(main, tuple(self.main.tolist()), self.copies, self.words, probabilities, inferred)

    def nodes_of(self, text: str, labels: Bools | None) -> PRF:
        """Return the score of the main DOM nodes. Labels that are not known are inferred from the text."""
        if self.page is None:
            return block_prf(0, 0, int(bool(self.sample.truth.strip())))
        return node_prf(self.page, align(self.page.blocks.text, text).main if labels is None else labels, self.main)


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
    """A stored extraction: the text, and the labels and probabilities if they were stored as well."""

    text: str
    labels: tuple[bool, ...] = ()
    probabilities: tuple[float, ...] = ()


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
                labels = tuple(bool(value) for value in entry.get("labels") or ())
                probabilities = tuple(float(value) for value in entry.get("probabilities") or ())
                if not all(0 <= p <= 1 for p in probabilities):
                    raise ValueError("a probability is not between 0 and 1")
                if entry["id"] in stored:
                    raise ValueError(f"the id {entry['id']!r} is there twice")
                stored[str(entry["id"])] = Stored(str(entry.get("text") or ""), labels, probabilities)
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
