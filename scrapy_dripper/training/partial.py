"""Learn from pages of which only some facts are known, such as the ingredients of a recipe.

Blocks with a known or a declared fact are main, and what is surely furniture is not. The rest has the labels of trees
that were fitted on other pages, with a low weight. Without them, a model that has only seen the facts of such a page
takes all of it for main content; with them, it keeps the facts and drops what it would drop anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.declared import ABSENT, MOSTLY
from scrapy_dripper.engines.tagger.features import Features
from scrapy_dripper.metadata.facts import Fact, FactIndex, tokens
from scrapy_dripper.page import Page

if TYPE_CHECKING:
    from scrapy_dripper.training.prepare import Example

HELD = 0.25
"""A block holds facts if they cover this share of its words, or :data:`HELD_WORDS` of them."""
HELD_WORDS = 6
MENTIONED = frozenset({"detail", "description"})
"""Kinds of declared facts that are no main content on many pages."""
FURNITURE = ("related", "share", "newsletter", "consent", "nav", "footer", "account", "sidebar", "comment")
"""Groups of class names of furniture that holds links."""
GUESSED = 0.3
"""Weight of the labels of the rest of a page."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of the n blocks of a page. All arrays have shape (n,)."""

    main: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    """True for blocks whose label is known."""


def known_labels(page: Page, batch: Features, facts: Mapping[str, Sequence[str]]) -> Known:
    """Return the labels that follow from the facts of a page. ``batch`` are its features."""
    found = [tokens(text) for text in page.blocks.text]
    words, counts = list(chain.from_iterable(found)), np.array(list(map(len, found)), dtype=np.int64)
    given = FactIndex(Fact("step", text) for texts in facts.values() for text in texts)
    covered = given.cover(words, counts).max(axis=1)
    main = (covered >= HELD) | (covered * batch.size >= HELD_WORDS)
    declared = FactIndex(fact for fact in page.facts if fact.kind not in MENTIONED)
    main |= declared.cover(words, counts).max(axis=1) >= MOSTLY
    x = dict(zip(batch.names, batch.matrix.T, strict=True))
    listed = np.any([x[f"far:{name}"] > 0 for name in FURNITURE], axis=0) & (x["link_density"] > 0.5)
    furniture = np.any([x[f"flag:{name}"] > 0 for name in ("NAV", "FOOTER", "DIALOG")], axis=0) | listed
    return Known(main, main | furniture)


def without_declarations(batch: Features) -> Features:
    """Return the features of pages as if they declared no facts."""
    matrix = batch.matrix.copy()
    for i, name in enumerate(batch.names):
        if name in ABSENT:
            matrix[:, i] = ABSENT[name]
    return replace(batch, matrix=matrix)


def completed(example: Example, probabilities: npt.NDArray[np.float64]) -> Example:
    """Return an example with labels for all of its n blocks. ``probabilities`` label those that are not known."""
    from scrapy_dripper.training.prepare import weights

    known = example.weight > 0
    main = np.where(known, example.main, probabilities > 0.5)
    size = example.features.size
    guessed = GUESSED * example.share * weights(size / max(30.0, float(size[main].sum())))
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
