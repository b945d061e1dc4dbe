"""Samples to what a booster is fitted on: features, labels and weights of their blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.alignment import align, tokens
from scrapy_dripper.dataset.neutral import TITLE_SHARE, is_title
from scrapy_dripper.dataset.pages import Sample
from scrapy_dripper.engines.tagger.features import Features, features
from scrapy_dripper.extraction import Document
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.page import Flag

HEAVIEST = 2.0
"""Most weight of a block for its words, in units of its page's main content."""
SITE_TITLE_SHARE = 1 / 3
"""A heading with so much of the title in the page's head is the headline; the rest is the name of the site."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """The n blocks of one page."""

    id: str
    features: Features
    main: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float32]
    words: npt.NDArray[np.float32]
    """Words of each block, less where its label is in doubt."""
    share: float = 1.0
    """What the page counts beside others; the blocks' weights hold it already."""
    page_type: str = ""
    copy: bool = False
    """True for a changed copy of a page."""
    texts: tuple[str, ...] = ()
    """Of the blocks."""
    truth: str = ""
    title: str = ""

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The features, shape (n, features)."""
        return self.features.matrix


def example(sample: Sample) -> Example | None:
    """Return the example of a sample, or None for a page without blocks.

    A block weighs what it can add to the word F1 of its page (its words over those of the ground truth), plus a share
    that every block has, so that short blocks and pages without main content count as well; all of it times the
    sample's weight. A headline that the truth leaves out by convention weighs nothing.
    """
    try:
        page = read(Document(sample.path.read_bytes(), sample.url), Config())
    except PageError:
        return None
    batch = features([page])
    alignment = align(page.blocks.text, sample.truth)
    words = batch.size / max(30, len(tokens(sample.truth)))
    trust = alignment.weight
    if sample.title_apart:
        trust[headlines(page, sample.title)] = 0
    weight = (np.minimum(HEAVIEST, words) + 0.5 / max(20, len(words))) * trust * sample.weight
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


def headlines(page: Page, title: str) -> list[int]:
    """Return the blocks that are a heading and say the title.

    Where the title is not known, it is that of the page's head, in which other words may stand beside the headline.
    """
    want = Counter(tokens(title or page.title or ""))
    found = []
    for i, text in enumerate(page.blocks.text):
        if page.tree.flags[page.blocks.context[i]] & Flag.HEADING:
            have = Counter(tokens(text))
            if is_title(have, want, TITLE_SHARE if title else SITE_TITLE_SHARE):
                found.append(i)
    return found


def prepare(samples: Sequence[Sample], jobs: int) -> dict[str, Example]:
    """Return the examples of samples by id, worked out in ``jobs`` processes; pages without blocks are left out."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found: Iterable[Example | None] = pool.map(example, samples, chunksize=8)
        found = tqdm(found, total=len(samples), desc="features", unit="page")
        return {one.id: one for one in found if one is not None}
