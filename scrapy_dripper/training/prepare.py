"""Samples to what a booster is fitted on: features, labels and weights of their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.extraction import Document
from scrapy_dripper.page import PageError, read
from scrapy_dripper.training.data import Sample
from scrapy_dripper.training.labels import align, tokens

HEAVIEST = 2.0
"""Most weight of a block for its words, in units of its page's main content."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """The n blocks of one page."""

    id: str
    features: Features
    main: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float32]
    words: npt.NDArray[np.float32]
    """Words of each block, less where its label is in doubt."""

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The features, shape (n, features)."""
        return self.features.matrix


def example(sample: Sample) -> Example | None:
    """Return the example of a sample, or None for a page without blocks.

    A block weighs what it can add to the word F1 of its page (its words over those of the ground truth), plus a share
    that every block has, so that short blocks and pages without main content count as well.
    """
    try:
        page = read(Document(sample.path.read_bytes(), sample.url), Config())
    except PageError:
        return None
    batch = features([page])
    alignment = align(page.blocks.text, sample.truth)
    words = batch.size / max(30, len(tokens(sample.truth)))
    weight = (np.minimum(HEAVIEST, words) + 0.5 / max(20, len(words))) * alignment.weight
    return Example(
        id=sample.id,
        features=batch,
        main=alignment.main,
        weight=weight.astype(np.float32),
        words=(batch.size * alignment.weight).astype(np.float32),
    )


def prepare(samples: Sequence[Sample], jobs: int) -> dict[str, Example]:
    """Return the examples of samples by id, worked out in ``jobs`` processes; pages without blocks are left out."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found: Iterable[Example | None] = pool.map(example, samples, chunksize=8)
        found = tqdm(found, total=len(samples), desc="features", unit="page")
        return {one.id: one for one in found if one is not None}
