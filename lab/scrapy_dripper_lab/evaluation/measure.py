"""Run the systems on pages, in several processes, and score what they return."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.learning.metrics import PRF, count_prf
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.workers import spawned
from scrapy_dripper_lab.alignment import align
from scrapy_dripper_lab.endpoint import EndpointError
from scrapy_dripper_lab.evaluation.blocks import labels_prf, node_prf
from scrapy_dripper_lab.evaluation.complexity import complexity
from scrapy_dripper_lab.evaluation.language_models import (
    ENDPOINT,
    LanguageModel,
    ModelReply,
    Verdict,
    judge,
)
from scrapy_dripper_lab.evaluation.peers import PEERS, quiet
from scrapy_dripper_lab.evaluation.text_measures import Cut, Study, load_cut, rouge, study
from scrapy_dripper_lab.scores import ScoreRow, page_title, score
from scrapy_dripper_lab.sets import AnnotatedPage, json_lines

if TYPE_CHECKING:
    from scrapy_dripper.extractor import Extractor


Bools = npt.NDArray[np.bool_]

OURS, FREE, STORED = "ours", "free", "stored"


@dataclass(frozen=True, slots=True)
class Run:
    """How a system has answered."""

    source: str | None = None
    """The source of our own extraction, with the fallback reason if there is one."""
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
    verdict: Verdict | None = None
    """Whether a judge preferred our text or this one; None if it was not asked, or gave no valid answer."""


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system returns for a page."""

    run: Run
    text: str = ""
    markdown: str = ""
    html: str | None = None
    """None if it returns only text."""
    labels: tuple[bool, ...] | None = None
    """Our own labels of the blocks. They may be of other blocks, or missing; None for a peer."""
    removed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The numbers of the blocks that the method ``sore`` has removed, by reason."""


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of a system on a page. A score is None if it was not measured."""

    run: Run
    row: ScoreRow | None = None
    rouge: PRF | None = None
    nodes: PRF | None = None
    """Score of the main DOM nodes (:mod:`scrapy_dripper_lab.evaluation.blocks`)."""
    blocks: PRF | None = None
    """Score of the block labels; None for a page without blocks, and for a peer."""
    study: Study | None = None
    """Measures of the business study (:mod:`scrapy_dripper_lab.evaluation.text_measures`)."""
    parts: Mapping[str, float | None] = field(default_factory=dict)
    """Scores of the parts of a Markdown (:mod:`scrapy_dripper_lab.evaluation.webmainbench`)."""
    removed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How many blocks the method ``sore`` has removed, and how many of these are not main, by reason."""


@dataclass(frozen=True, slots=True)
class PageResults:
    """The results of all systems on a page, ours first."""

    id: str
    results: Mapping[str, Result]
    complexity: float
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth(ABC):
    """A page, and what is known of its main content."""

    id: str
    url: str
    html: bytes | str
    complexity: float = 0.0
    groups: tuple[str, ...] = ()
    """The groups of a benchmark to which the page belongs."""

    @abstractmethod
    def result(self, answer: SystemAnswer, cut: Cut | None) -> Result:
        """Return the scores of an answer. ``cut`` is the tokenizer of ROUGE-5, if that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedTruth(Truth):
    """A page of a folder with its true labels. Its blocks are None if it has none."""

    sample: AnnotatedPage
    html: bytes
    page: Page | None
    main: Bools
    copies: Bools
    """True if the block is not in the truth but another block with the same words is. Such blocks do not count."""
    setup: Setup

    @classmethod
    def of(cls, sample: AnnotatedPage, setup: Setup) -> AnnotatedTruth:
        """Read a page."""
        html, difficulty, page = sample.path.read_bytes(), 0.0, None
        with suppress(PageError):
            difficulty = complexity(parse(decode_html(html, None)))
        with suppress(PageError):
            page = read(Document(html, sample.url), setup.config)
        truth = align(page.blocks.text if page else [], sample.truth)
        return cls(
            id=sample.id,
            url=sample.url,
            html=html,
            complexity=difficulty,
            sample=sample,
            page=page,
            main=truth.main,
            copies=truth.duplicate,
            setup=setup,
        )

    def result(self, answer: SystemAnswer, cut: Cut | None) -> Result:
        """Return the scores of an answer. Labels are inferred from its text if they do not fit the blocks."""
        text, truth = answer.text, self.sample.truth
        nodes, blocks, removed = None, None, {}
        if self.page is None:
            nodes = count_prf(0, 0, int(bool(truth.strip())))
        elif answer.labels is not None or self.setup.nodes:
            known = answer.labels is not None and len(answer.labels) == len(self.page.blocks)
            found = np.array(answer.labels, np.bool_) if known else align(self.page.blocks.text, text).main
            if answer.labels is not None:  # the score of the block labels (Dripper paper, A.8)
                blocks = labels_prf(found[~self.copies], self.main[~self.copies])
            nodes = node_prf(self.page, found, self.main)
            if known:  # or the method, which has other limits, has seen other blocks
                removed = {
                    why: (len(some), int((~self.main[list(some)]).sum())) for why, some in answer.removed.items()
                }
        return Result(
            answer.run,
            scored(self.sample, text, self.html),
            rouge=rouge(text, truth, cut) if cut else None,
            nodes=nodes if self.setup.nodes else None,
            blocks=blocks,
            study=study(text, truth) if self.setup.study else None,
            removed=removed,
        )


@dataclass(frozen=True, slots=True)
class Setup:
    """What to measure."""

    config: Config
    peers: tuple[str, ...] = ()
    stored: Mapping[str, Stored] | None = None
    """Texts by id that are scored in place of our output; None to run the model."""
    rouge: bool = False
    nodes: bool = False
    study: bool = False
    model: LanguageModel | None = None
    """The language model that is measured as a peer, or is the judge."""
    judged: str | None = None
    """The peer whose text a judge compares with ours."""
    checkpoint: Path | None = None
    """The checkpoint of the configured model, to decode it without a grammar as well."""


class Measurer:
    """Measures pages. Our own extraction and the peers are loaded on first use."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._extractors: dict[str, Extractor] = {}
        self._peers: dict[str, Callable[[bytes], str | ModelReply]] = {}
        self._cut = load_cut() if setup.rouge else None
        quiet()

    def __call__(self, task: Any) -> PageResults:
        """Return the result of each system on a page. Errors of systems do not make this raise.

        Raise :exc:`DataError` if the task is no page, and :exc:`UsageError` if the endpoint refuses all requests.
        """
        page = task if isinstance(task, Truth) else AnnotatedTruth.of(task, self.setup)
        ours = self._ours(page, OURS)
        answers = {OURS: ours}
        if self.setup.checkpoint:
            answers[FREE] = self._ours(page, FREE)
        asked = [ENDPOINT] if self.setup.model and not self.setup.judged else []
        answers |= {name: self._peer(page, name, ours.markdown) for name in (*self.setup.peers, *asked)}
        results = {name: page.result(answer, self._cut) for name, answer in answers.items()}
        return PageResults(page.id, results, page.complexity, page.groups)

    def close(self) -> None:
        """Close the models."""
        for extractor in self._extractors.values():
            extractor.close()

    def _ours(self, page: Truth, name: str) -> SystemAnswer:
        """Return our own extraction: :data:`OURS`, or :data:`FREE`."""
        if name == OURS and self.setup.stored is not None:
            stored = self.setup.stored.get(page.id, Stored(""))
            return SystemAnswer(Run(STORED), stored.text, stored.text, labels=stored.labels)
        if name not in self._extractors:
            from scrapy_dripper.extractor import Extractor

            engine = None
            if name == FREE:
                from scrapy_dripper_lab.export.reference import free_engine

                assert self.setup.checkpoint is not None
                engine = free_engine(self.setup.config, self.setup.checkpoint)
            self._extractors[name] = Extractor(self.setup.config, engine)
        start = time.process_time()
        (found,) = self._extractors[name].extract([Document(page.html, page.url)])
        seconds = time.process_time() - start
        source = ", ".join(filter(None, [found.source, found.fallback_reason]))
        removed = found.details.get("removed", {})
        return SystemAnswer(
            Run(source, seconds), found.text or "", found.markdown or "", found.main_html, found.labels, removed
        )

    def _peer(self, page: Truth, name: str, ours: str) -> SystemAnswer:
        """Return the answer of a peer. ``ours`` is our Markdown, for the judge."""
        html = page.html if isinstance(page.html, bytes) else page.html.encode("utf-8", "replace")
        try:
            model = self.setup.model
            if name not in self._peers:
                self._peers[name] = model if model and name == ENDPOINT else PEERS[name].load()
            start = time.process_time()
            answer = self._peers[name](html)
            seconds = time.process_time() - start
            if isinstance(answer, ModelReply):
                return SystemAnswer(Run(None, *answer[1:]), answer.text, answer.text)
            verdict = (
                judge(model.endpoint, html, ours, answer, model.words) if model and name == self.setup.judged else None
            )
        except EndpointError as error:
            if error.refused:
                raise UsageError(f"the endpoint refuses requests: {error}") from None
            return SystemAnswer(Run(error=said(error)))
        except Exception as error:  # errors of a peer are part of its result
            return SystemAnswer(Run(error=said(error)))
        return SystemAnswer(Run(seconds=seconds, verdict=verdict), answer, answer)


def said(error: Exception) -> str:
    """Return an exception as a short text."""
    return f"{type(error).__name__}: {error}"[:300]


def scored(sample: AnnotatedPage, text: str, html: bytes) -> ScoreRow:
    """Return the score of a text for a sample, whose page is ``html``."""
    snippets = sample.with_snippets, sample.without_snippets
    titles = sample.title, page_title(html)
    return score(text, sample.truth, *snippets, titles=titles)


AHEAD = 4
"""Maximum number of pages that wait for each process. A file of pages can have gigabytes."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored extraction: the text, and the labels of the blocks if they were stored as well."""

    text: str
    labels: tuple[bool, ...] = ()


def read_stored(path: Path) -> dict[str, Stored]:
    """Return the texts of a JSON Lines file by id. Raise :exc:`DataError` if the file is invalid."""
    stored: dict[str, Stored] = {}

    def add(entry: Any) -> None:
        name, labels = str(entry["id"]), tuple(entry.get("labels") or ())
        if any(value not in (0, 1) for value in labels):
            raise ValueError("the labels are not true or false")
        if name in stored:
            raise ValueError(f"the id {name!r} is there twice")
        stored[name] = Stored(str(entry.get("text") or ""), tuple(map(bool, labels)))

    for _ in json_lines(path, add, '{"id": "...", "text": "..."}'):
        pass
    return stored


def measured(setup: Setup, tasks: Iterable[Any], jobs: int) -> Iterator[PageResults]:
    """Yield the results of each page, in order. Raise :exc:`UsageError` if a process dies."""
    if jobs <= 1:
        with closing(Measurer(setup)) as measurer:
            yield from map(measurer, tasks)
        return
    waiting: deque[Future[PageResults]] = deque()
    try:
        with spawned(jobs, _start, setup) as pool:
            for task in tasks:
                waiting.append(pool.submit(_measure, task))
                if len(waiting) >= AHEAD * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool:
        raise UsageError(
            "a process died, out of memory or in the code of a peer: try a smaller --jobs or fewer --peers"
        ) from None


_measurer: Measurer | None = None


def _start(setup: Setup) -> None:
    global _measurer
    _measurer = Measurer(setup)


def _measure(task: Any) -> PageResults:
    assert _measurer is not None
    return _measurer(task)
