"""Run the systems on a page and score their output. The results are plain values, which can be cached."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.workshop.dataset.alignment import align, tokens
from scrapy_dripper.workshop.dataset.metrics import ScoreRow, score
from scrapy_dripper.workshop.dataset.neutral import page_title
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.prf import PRF
from scrapy_dripper.workshop.evaluation.blocks import BlockResult, block_prf
from scrapy_dripper.workshop.evaluation.complexity import Complexity, complexity
from scrapy_dripper.workshop.evaluation.dom_nodes import node_prf
from scrapy_dripper.workshop.evaluation.language_model import NAME as ENDPOINT
from scrapy_dripper.workshop.evaluation.language_model import LanguageModel, ModelOptions
from scrapy_dripper.workshop.evaluation.peers import PEERS, quiet
from scrapy_dripper.workshop.evaluation.rouge import Cut, load_cut, rouge
from scrapy_dripper.workshop.evaluation.study import Study, study

if TYPE_CHECKING:
    from scrapy_dripper.extractor import Extractor

Bools = npt.NDArray[np.bool_]

OURS = "ours"
_PLAIN = ("seconds", "tokens", "cost", "error", "source")
PAGE = "page"
"""Cache key for the properties of a page that do not depend on a system."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a system on a page."""

    row: ScoreRow
    rouge: PRF | None = None
    nodes: PRF | None = None
    """Score of the main DOM nodes (:mod:`scrapy_dripper.workshop.evaluation.dom_nodes`)."""
    study: Study | None = None
    """Measures of the business study (:mod:`scrapy_dripper.workshop.evaluation.study`)."""
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
    blocks: BlockResult | None = None
    """The block labels of our own extraction; None for a page without blocks."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored extraction: the text, and the labels and probabilities if they were stored as well."""

    text: str
    labels: tuple[bool, ...] = ()
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """The measurements to make on a page."""

    sample: Sample
    systems: tuple[str, ...]
    stored: Stored | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """The configuration for measuring pages in a process."""

    config: Config
    model: bool
    """True to run our model, False to use stored texts instead."""
    rouge: bool = False
    nodes: bool = False
    study: bool = False
    endpoint: ModelOptions | None = None
    """The language model that is measured as a peer."""

    def measured(self, result: Result) -> bool:
        """Return True if a result has everything that this run measures."""
        return not any(getattr(self, name) and getattr(result, name) is None for name in ("rouge", "nodes", "study"))


class Measurer:
    """Measures pages. Models and peers are loaded on first use."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._extractor: Extractor | None = None
        self._peers: dict[str, Callable[[bytes], str]] = {}
        self._cut: Cut | None = load_cut() if setup.rouge else None
        self._model: LanguageModel | None = None
        self._truth: tuple[str, Page | None, Bools] | None = None
        quiet()

    def __call__(self, task: Task) -> dict[str, Result | Complexity]:
        """Return the result of each system in a task. Errors of systems do not make this raise."""
        html = task.sample.path.read_bytes()
        found: dict[str, Result | Complexity] = {}
        for name in task.systems:
            if name == PAGE:
                found[name] = self._complexity(html)
            elif name == OURS:
                found[name] = self._ours(task, html)
            elif name == ENDPOINT:
                found[name] = self._language_model(task.sample, html)
            else:
                found[name] = self._peer(name, task.sample, html)
        return found

    def close(self) -> None:
        """Close the model."""
        if self._extractor is not None:
            self._extractor.close()

    def _complexity(self, html: bytes) -> Complexity:
        from scrapy_dripper.page.charset import decode_html
        from scrapy_dripper.page.parse import parse

        try:
            return complexity(parse(decode_html(html, None)))
        except PageError:
            return Complexity(0.0, 0.0, 0.0, 0.0)

    def _ours(self, task: Task, html: bytes) -> Result:
        sample, stored = task.sample, task.stored
        document = Document(html, sample.url)
        source, seconds = "stored", None
        if self.setup.model:
            if self._extractor is None:
                from scrapy_dripper.extractor import Extractor

                self._extractor = Extractor(self.setup.config)
            start = time.process_time()
            (extraction,) = self._extractor.extract([document])
            seconds = self._since(start)
            stored = Stored(extraction.text or "", extraction.labels, extraction.probabilities)
            source = _source(extraction)
        stored = stored or Stored("")
        blocks = block_result(document, self.setup.config, sample, stored)
        labels = None if blocks is None or blocks.inferred else np.array(blocks.main)
        return replace(self._scored(sample, html, stored.text, labels), source=source, blocks=blocks, seconds=seconds)

    def _peer(self, name: str, sample: Sample, html: bytes) -> Result:
        try:
            if name not in self._peers:
                self._peers[name] = PEERS[name].load()
            start = time.process_time()
            text = self._peers[name](html)
            seconds = self._since(start)
        except Exception as error:  # errors of a peer are part of its result
            return replace(self._scored(sample, html, ""), error=f"{type(error).__name__}: {error}"[:300])
        return replace(self._scored(sample, html, text), seconds=seconds)

    def _language_model(self, sample: Sample, html: bytes) -> Result:
        assert self.setup.endpoint is not None
        try:
            self._model = self._model or LanguageModel(self.setup.endpoint)
            reply = self._model(html)
        except Exception as error:  # includes a spent budget
            return replace(self._scored(sample, html, ""), error=f"{type(error).__name__}: {error}"[:300])
        _, seconds, tokens, cost = reply
        return replace(self._scored(sample, html, reply.text), seconds=seconds, tokens=tokens, cost=cost)

    def _since(self, start: float) -> float | None:
        """Return the CPU time since ``start``, or None if this run does not measure it. It is optional, because unlike
        all other results it differs from run to run.
        """
        return time.process_time() - start if self.setup.study else None

    def _scored(self, sample: Sample, html: bytes, text: str, labels: Bools | None = None) -> Result:
        """Return the score of a text. ``labels`` are those of the page's blocks, if they are known."""
        return Result(
            scored(sample, text, html),
            rouge=rouge(text, sample.truth, self._cut) if self._cut else None,
            nodes=self._nodes(sample, html, text, labels) if self.setup.nodes else None,
            study=study(text, sample.truth) if self.setup.study else None,
        )

    def _nodes(self, sample: Sample, html: bytes, text: str, labels: Bools | None) -> PRF:
        """Return the score of the main DOM nodes. Labels that are not known are inferred from the text."""
        if self._truth is None or self._truth[0] != sample.id:
            try:
                page = read(Document(html, sample.url), self.setup.config)
                self._truth = sample.id, page, align(page.blocks.text, sample.truth).main
            except PageError:
                self._truth = sample.id, None, np.zeros(0, dtype=np.bool_)
        _, known, truth = self._truth
        if known is None:
            return block_prf(0, 0, int(bool(sample.truth.strip())))
        return node_prf(known, align(known.blocks.text, text).main if labels is None else labels, truth)


def scored(sample: Sample, text: str, html: bytes) -> ScoreRow:
    """Return the score of a text for a sample, whose page is ``html``."""
    snippets = sample.with_snippets, sample.without_snippets
    titles = sample.title, page_title(html)
    return score(sample.id, sample.page_type, text, sample.truth, *snippets, titles=titles)


def block_result(document: Document, config: Config, sample: Sample, stored: Stored) -> BlockResult | None:
    """Return the labels and the truth of a page's blocks, or None for a page without blocks.

    Labels that are missing, or do not fit the page's blocks, are inferred from the text.
    """
    try:
        page = read(document, config)
    except PageError:
        return None
    truth = align(page.blocks.text, sample.truth)
    inferred = len(stored.labels) != len(page.blocks)
    main = tuple(align(page.blocks.text, stored.text).main.tolist()) if inferred else stored.labels
    scored = not inferred and len(stored.probabilities) == len(main)
    return BlockResult(
        main=main,
        truth=tuple(truth.main.tolist()),
        copies=tuple(truth.duplicate.tolist()),
        words=tuple(truth.words.tolist()),
        probabilities=tuple(round(p, 4) for p in stored.probabilities) if scored else None,
        inferred=inferred,
    )


def truth_words(sample: Sample) -> int:
    """Return the number of words in the true text. Each character of a script without spaces counts as a word."""
    return len(tokens(sample.truth))


def to_json(result: Result | Complexity) -> dict[str, Any]:
    """Return a result as JSON values. Masks become strings of 0 and 1."""
    if isinstance(result, Complexity):
        return {name: getattr(result, name) for name in Complexity.__slots__}
    values: dict[str, Any] = {name: getattr(result.row, name) for name in ScoreRow.__slots__}
    values |= {name: getattr(result, name) for name in ("rouge", "nodes", "study", *_PLAIN)}
    if (blocks := result.blocks) is not None:
        values["blocks"] = {
            **{name: _mask(getattr(blocks, name)) for name in ("main", "truth", "copies")},
            "words": blocks.words,
            "probabilities": blocks.probabilities,
            "inferred": blocks.inferred,
        }
    return values


def from_json(system: str, values: Mapping[str, Any]) -> Result | Complexity:
    """Return the result for the values of :func:`to_json`. Raise KeyError, TypeError or ValueError if they are
    invalid."""
    if system == PAGE:
        return Complexity(**values)
    blocks = values.get("blocks")
    return Result(
        ScoreRow(**{name: values[name] for name in ScoreRow.__slots__} | {"neutral": PRF(*values["neutral"])}),
        rouge=PRF(*values["rouge"]) if values["rouge"] else None,
        nodes=PRF(*values["nodes"]) if values["nodes"] else None,
        study=Study(*values["study"]) if values["study"] else None,
        **{name: values[name] for name in _PLAIN},
        blocks=blocks
        and BlockResult(
            **{name: tuple(mark == "1" for mark in blocks[name]) for name in ("main", "truth", "copies")},
            words=tuple(blocks["words"]),
            probabilities=None if blocks["probabilities"] is None else tuple(blocks["probabilities"]),
            inferred=blocks["inferred"],
        ),
    )


def _mask(values: Sequence[bool]) -> str:
    return "".join("1" if value else "0" for value in values)


def _source(extraction: Extraction) -> str:
    return ", ".join(filter(None, [extraction.source, str(extraction.fallback_reason or "")]))
