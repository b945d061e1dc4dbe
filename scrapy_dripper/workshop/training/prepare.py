"""Prepare samples for training: compute the features, labels and weights of their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.workshop.dataset.alignment import align, tokens
from scrapy_dripper.workshop.dataset.headlines import headlines
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.training.known import known_labels, without_declarations

HEAVIEST = 2.0
"""Maximum weight of a block for its words, in units of its page's main content."""


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


def example(sample: Sample) -> Example | None:
    """Return the example of a sample, or None for a page without blocks.

    The weight of a block is its possible contribution to the word F1 of its page (its words divided by those of the
    ground truth), plus a constant, so that short blocks and pages without main content count as well, multiplied by the
    weight of the sample. If the truth leaves out the headline by convention, its weight is 0.
    """
    try:
        page = read(Document(sample.path.read_bytes(), sample.url), Config())
    except PageError:
        return None
    batch = features([page])
    if sample.facts:
        return _with_facts(sample, page, batch)
    alignment = align(page.blocks.text, sample.truth)
    words = batch.size / max(30, len(tokens(sample.truth)))
    trust = alignment.weight
    if sample.title_apart:
        trust[headlines(page, sample.title)] = 0
    weight = weights(words) * trust * sample.weight
    return Example(
        id=sample.id,
        features=batch,
        main=alignment.main,
        weight=weight.astype(np.float32),
        words=(batch.size * trust).astype(np.float32),
        share=sample.weight,
        page_type=sample.page_type,
        copy=bool(sample.copy_of),
        texts=tuple(page.blocks.text),
        truth=sample.truth,
        title=sample.title,
    )


def _with_facts(sample: Sample, page: Page, batch: Features) -> Example:
    """Return the example of a page of which only some facts are known. That of a copy declares none of them."""
    known = known_labels(page, batch, sample.facts)
    size = max(30.0, float(batch.size[known.main].sum()))
    trust = known.known.astype(np.float32) * sample.weight
    weight = weights(batch.size / size) * trust
    return Example(
        id=sample.id,
        features=without_declarations(batch) if sample.copy_of else batch,
        main=known.main,
        weight=weight.astype(np.float32),
        words=(batch.size * known.known).astype(np.float32),
        share=sample.weight,
        page_type=sample.page_type,
        copy=bool(sample.copy_of),
        partial=True,
        texts=tuple(page.blocks.text),
        title=sample.title,
    )


def weights(words: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the weights of the n blocks of a page. ``words`` are theirs, in units of the words of the main content."""
    weight: npt.NDArray[np.floating] = np.minimum(HEAVIEST, words) + 0.5 / max(20, len(words))
    return weight


def prepare(samples: Sequence[Sample], jobs: int) -> dict[str, Example]:
    """Return the examples of samples by id, using ``jobs`` processes. Pages without blocks are left out."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found: Iterable[Example | None] = pool.map(example, samples, chunksize=8)
        found = tqdm(found, total=len(samples), desc="features", unit="page")
        return {one.id: one for one in found if one is not None}
