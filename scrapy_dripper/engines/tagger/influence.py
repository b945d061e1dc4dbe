"""Measure how much each group of features influences the probability of each block, by replacing the group.

For one group at a time, all blocks of the page get the page's typical values: the median, or the most frequent tag.
Then the model runs again. The difference of a block's probability is the influence of the group on the block. This
takes one run of the model for each group, and only needs the bundled graphs. Influences need not add up to the
probability, because groups overlap, and because features that are equal for all blocks of a page have no influence.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from scrapy_dripper.engines.tagger.columns import Floats
from scrapy_dripper.engines.tagger.features import TAG_FEATURES, Features
from scrapy_dripper.engines.tagger.model import TaggerModel

SAME_FOR_ALL = "page"
"""The group of features that are equal for all blocks of a page."""

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
"""The group for weights that were learnt from the user's corrections of the site."""


def group_of(feature: str) -> str:
    """Return the group of a feature, one of :data:`GROUPS` or :data:`SAME_FOR_ALL`."""
    return next((group for group, match in _GROUPS if match(feature)), TEXT)


def influences(model: TaggerModel, batch: Features) -> dict[str, Floats]:
    """Return the influence of each group on the probabilities of the n blocks of a page.

    The batch holds one page. The values are float32 of shape (n,), from -1 to 1. A positive influence speaks for main.
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
