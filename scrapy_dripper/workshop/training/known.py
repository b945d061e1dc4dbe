"""Find the blocks of a page that hold known facts, and those that are surely furniture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.evidence import ABSENT, MOSTLY
from scrapy_dripper.engines.tagger.features import Features
from scrapy_dripper.metadata.facts import Fact, FactIndex, tokens
from scrapy_dripper.page import Page

HELD = 0.25
"""A block holds facts if they cover this share of its words, or :data:`HELD_WORDS` of them."""
HELD_WORDS = 6
MENTIONED = frozenset({"detail", "description"})
"""Kinds of declared facts that are no main content on many pages."""
FURNITURE = ("related", "share", "newsletter", "consent", "nav", "footer", "account", "sidebar", "comment")
"""Groups of class names of furniture that holds links."""


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
