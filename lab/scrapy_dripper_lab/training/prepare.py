"""Prepare samples for training: compute the features, labels and weights of their blocks.

Of some pages, only some facts are known, such as the ingredients of a recipe. Blocks with a known or a declared fact
are main, and what is surely boilerplate is not. The rest has the labels of trees that were fitted on other pages, with
a low weight. Without them, a model that has only seen the facts of such a page takes all of it for main content; with
them, it keeps the facts and drops what it would drop anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.declared.schema_org import DETAILS, Fact, FactIndex
from scrapy_dripper.declared.schema_org import tokens as fact_tokens
from scrapy_dripper.engines.tagger.features import ABSENT, MOSTLY, Features, features
from scrapy_dripper.learning import block_weights
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.workers import spawned
from scrapy_dripper_lab.alignment import Bools, align, headlines, tokens
from scrapy_dripper_lab.sets import AnnotatedPage

HELD = 0.25
"""A block holds facts if they cover this share of its words, or :data:`HELD_WORDS` of them."""
HELD_WORDS = 6
HELD_WHOLE = 0.7
"""The same share for facts that are sentences and paragraphs."""
SHORT_FACTS = frozenset({"name", "price", "author", "label"})
"""Names of facts that are a few words each, such as the price of a flat."""
PLACED = SHORT_FACTS | {"text"}
"""Names of facts that may be on the page more than once if they are short."""
SHORT_WORDS = 12
"""Maximum number of words of a short fact. A block with one counts for at least as many, because readers miss it like a
sentence."""
MENTIONED = frozenset({*DETAILS, "description"})
"""Kinds of declared facts that are no main content on many pages."""
BOILERPLATE = ("related", "share", "newsletter", "consent", "nav", "footer", "account", "sidebar", "comment")
"""Groups of class names of boilerplate that holds links."""
GUESSED = 0.3
"""Weight of the labels of the rest of a page."""

T = TypeVar("T")
R = TypeVar("R")


def in_processes(work: Callable[[T], R], items: Sequence[T], jobs: int, what: str) -> Iterator[R]:
    """Yield the result for each item, in order, with a progress bar. For a single job, no process is started. Raise
    UsageError if a process dies.
    """
    with spawned(jobs) as pool:
        found = map(work, items) if jobs <= 1 else pool.map(work, items, chunksize=8)
        try:
            yield from tqdm(found, total=len(items), desc=what, unit="page")
        except BrokenProcessPool:
            raise UsageError(f"{what}: a process died, for want of memory or in a peer: use fewer --jobs") from None


def without_declarations(batch: Features) -> Features:
    """Return the features of pages as if they declared no facts."""
    matrix = batch.matrix.copy()
    for i, name in enumerate(batch.names):
        if name in ABSENT:
            matrix[:, i] = ABSENT[name]
    return replace(batch, matrix=matrix)


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """The n blocks of a page."""

    id: str
    features: Features
    main: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float32]
    words: npt.NDArray[np.float32]
    """Words of each block, reduced if its label is doubtful."""
    share: float = 1.0
    """Weight of the page. The weights of the blocks already include it."""
    page_type: str = ""
    copy: bool = False
    """True for a changed copy of a page."""
    partial: bool = False
    """True if only some of the main content is known. Blocks of which nothing is known have no weight."""
    texts: tuple[str, ...] = ()
    """The texts of the blocks."""
    truth: str = ""
    title: str = ""

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The features, shape (n, features)."""
        return self.features.matrix


def example(sample: AnnotatedPage) -> Example | None:
    """Return the example of a sample, or None for a page without blocks.

    The weight of a block is its possible contribution to the word F1 of its page (its words divided by those of the
    ground truth), plus a constant, so that short blocks and pages without main content count as well, multiplied by the
    weight of the sample. If the truth leaves out the headline by convention, its weight is 0. Of a page of which only
    some facts are known, only blocks whose labels follow from these, and boilerplate, have a weight. A copy of such a
    page declares none of them.
    """
    try:
        page = read(Document(sample.path.read_bytes(), sample.url), Config())
    except PageError:
        return None
    batch = features([page])
    trust: npt.NDArray[np.floating]
    sizes = batch.size
    if sample.facts:
        main, known, short = _known_labels(page, batch, sample.facts)
        trust = known.astype(np.float32)
        sizes = np.where(short, np.maximum(sizes, SHORT_WORDS), sizes)
        size = max(30.0, float(sizes[main].sum()))
    else:
        alignment = align(page.blocks.text, sample.truth)
        main, trust, size = alignment.main, alignment.weight, max(30, len(tokens(sample.truth)))
        if sample.title_apart:
            trust[headlines(page, sample.title)] = 0
    weight = block_weights(sizes / size) * trust * sample.weight
    return Example(
        id=sample.id,
        features=without_declarations(batch) if sample.facts and sample.copy_of else batch,
        main=main,
        weight=weight.astype(np.float32),
        words=(batch.size * trust).astype(np.float32),
        share=sample.weight,
        page_type=sample.page_type,
        copy=bool(sample.copy_of),
        partial=bool(sample.facts),
        texts=tuple(page.blocks.text),
        truth=sample.truth,
        title=sample.title,
    )


def _known_labels(page: Page, batch: Features, facts: Mapping[str, Sequence[str]]) -> tuple[Bools, Bools, Bools]:
    """Return which of the n blocks of a page are main by its facts, which labels are known, and which blocks hold a
    short fact, each of shape (n,).

    ``batch`` are the features of the page. A short fact can be on the page more than once, such as the name of a flat
    in links to others. The nearest one to the name of the page is main. Of the others, nothing is known.
    """
    texts = page.blocks.text
    found = [fact_tokens(text) for text in texts]
    words, counts = list(chain.from_iterable(found)), np.array(list(map(len, found)), dtype=np.int64)
    flat = ["".join(one) for one in found]
    spread: list[Fact] = []
    whole: list[Fact] = []
    short_facts: list[list[int]] = []
    for name, of_name in facts.items():
        for fact in of_name:
            wanted = fact_tokens(fact)
            places = [i for i, text in enumerate(flat) if "".join(wanted) in text] if name in PLACED else []
            if wanted and places and len(wanted) <= SHORT_WORDS:
                short_facts.append(places)
            elif name not in SHORT_FACTS:
                (whole if name in PLACED else spread).append(Fact("step", fact))
    covered = FactIndex(spread).cover(words, counts).max(axis=1)
    main = (covered >= HELD) | (covered * batch.size >= HELD_WORDS)
    main |= FactIndex(whole).cover(words, counts).max(axis=1) >= HELD_WHOLE
    declared = FactIndex(fact for fact in page.facts if fact.kind not in MENTIONED)
    main |= declared.cover(words, counts).max(axis=1) >= MOSTLY
    x = dict(zip(batch.names, batch.matrix.T, strict=True))
    listed = np.any([x[f"far:{name}"] > 0 for name in BOILERPLATE], axis=0) & (x["link_density"] > 0.5)
    boilerplate = np.any([x[f"flag:{name}"] > 0 for name in ("NAV", "FOOTER", "DIALOG")], axis=0) | listed
    known, short = main | boilerplate, np.zeros_like(main)
    distance = np.abs(np.arange(len(texts)) - int(np.argmax(x["to_name"] == 0)))
    for places in short_facts:
        known[places] = main[places]
        nearest = min(places, key=lambda i: (bool(boilerplate[i]), distance[i]))
        main[nearest] = known[nearest] = short[nearest] = True
    return main, known, short


def completed(example: Example, probabilities: npt.NDArray[np.float64]) -> Example:
    """Return an example with labels for all of its n blocks. ``probabilities`` label those that are not known."""
    known = example.weight > 0
    main = np.where(known, example.main, probabilities > 0.5)
    size = example.features.size
    guessed = GUESSED * example.share * block_weights(size / max(30.0, float(size[main].sum())))
    return replace(
        example,
        main=main,
        weight=np.where(known, example.weight, guessed).astype(np.float32),
        words=np.where(known, example.words, GUESSED * size).astype(np.float32),
    )


def estimated_f1(example: Example, chosen: npt.NDArray[np.bool_]) -> float:
    """Return the word F1 of some blocks of a page, if all blocks of which nothing is known have the right label."""
    size, known = example.features.size, example.weight > 0
    right = float(size[chosen & (example.main | ~known)].sum())
    missed = float(size[~chosen & known & example.main].sum())
    return 2 * right / max(1.0, float(size[chosen].sum()) + right + missed)


def prepare(samples: Sequence[AnnotatedPage], jobs: int) -> dict[str, Example]:
    """Return the examples of samples by id, using ``jobs`` processes. Pages without blocks are left out."""
    return {one.id: one for one in in_processes(example, samples, jobs, "features") if one is not None}
