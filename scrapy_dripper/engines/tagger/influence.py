"""Which groups of features speak for and against each block of a page, told by trying without them.

One group at a time is set to what is typical of the page (the median; of tags, the most frequent), in all its blocks at
once, and the whole model is asked again. What the probability of a block loses is the group's influence on it. That
costs a run of the model for each group, and needs nothing but the bundled graphs. Influences need not add up to the
probability: groups overlap, and what is the same for all blocks of a page has none.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from scrapy_dripper.engines.tagger.columns import Floats
from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features
from scrapy_dripper.engines.tagger.model import Model

SAME_FOR_ALL = "page"
"""The group of what a page has as a whole."""

_GROUPS = tuple(
    (group, re.compile(pattern).match)
    for group, pattern in (
        (SAME_FOR_ALL, r"page_|about_"),
        ("blocks around", r"[a-z_]+[+-]\d+$|(?:parent|tag)_as_"),
        ("containers", r"up\d_"),
        ("class names", r"near:|far:"),
        ("wording", r"words:|(?:title|url)_(?:words|hits)$"),
        ("repetition", r"copies$|(?:shape|class|path)_"),
        ("links", r"link_density$|links$|link_words$"),
        ("element", r"(?:leaf_|parent_)?tag|flag:|heading_level$"),
        (
            "place",
            r"index|words_(?:before|after|since)|since_heading$|last_heading_level$|headings_before$|to_h1$|(?:leaf_)?depth$",
        ),
    )
)
TEXT = "length and characters"
"""The group of all other features."""
GROUPS = (TEXT, *(group for group, _ in _GROUPS if group != SAME_FOR_ALL))
"""The groups that can have an influence."""
CORRECTIONS = "your corrections"
"""The group of what was learnt from a user's corrections of the site."""


def group_of(feature: str) -> str:
    """Return the group of a feature, one of :data:`GROUPS` or :data:`SAME_FOR_ALL`."""
    return next((group for group, match in _GROUPS if match(feature)), TEXT)


def influences(model: Model, batch: Features) -> dict[str, Floats]:
    """Return, by group, the influence on the probability of each of the n blocks of a page, -1 to 1, of shape (n,).

    Positive is for main. The batch holds one page.
    """
    typical = np.quantile(batch.matrix, 0.5, axis=0, method="nearest")
    for i, name in enumerate(batch.names):
        if name in TAG_FEATURES:
            values, counts = np.unique(batch.matrix[:, i], return_counts=True)
            typical[i] = values[counts.argmax()]
    groups = np.array([group_of(name) for name in batch.names])
    whole = model(batch).probabilities
    found: dict[str, Floats] = {}
    for group in GROUPS:
        matrix = np.where(groups == group, typical, batch.matrix).astype(np.float32)
        found[group] = whole - model(replace(batch, matrix=matrix)).probabilities
    return found
