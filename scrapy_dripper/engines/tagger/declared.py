"""Features of the facts that a page declares about itself (:mod:`scrapy_dripper.metadata.facts`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from scrapy_dripper.engines.tagger.columns import Columns, Floats, last_chosen, next_chosen
from scrapy_dripper.engines.tagger.roots import NO_ROOT
from scrapy_dripper.engines.tagger.table import Table
from scrapy_dripper.engines.tagger.words import Words
from scrapy_dripper.metadata.facts import KINDS, FactIndex, tokens
from scrapy_dripper.page.page import Page

MOSTLY = 0.5
"""Share of its words from which a block counts as declared."""
_CONTENT = [i for i, kind in enumerate(KINDS) if kind not in ("detail", "description")]
"""The kinds whose texts are main content on most pages."""


ABSENT: Mapping[str, float] = {
    **dict.fromkeys((f"declared:{kind}" for kind in KINDS), 0.0),
    **dict.fromkeys((f"declares:{kind}" for kind in KINDS), 0.0),
    "declared": 0.0,
    "declared_before": -1.0,
    "declared_after": -1.0,
    **{f"root_facts{part}": value for part, value in NO_ROOT.items()},
}
"""The features of declared facts, with their values on a page that declares none. In training, they are dropped from
some pages, so that the model also finds facts that no page declares."""


def declared(x: Columns, t: Table, words: Words, pages: Sequence[Page]) -> Floats:
    """Add the features, and return the share of each block's words that facts cover, of shape (n,)."""
    n = len(t.first)
    share = np.zeros((n, len(KINDS)), dtype=np.float32)
    of_page = np.zeros((n, len(KINDS)), dtype=np.float32)
    start = 0
    for page, (first, last) in zip(pages, pairwise(words.edges), strict=True):
        end = start + len(page.blocks)
        if page.facts:
            index = FactIndex(page.facts)
            if index.cjk:
                found = [tokens(text) for text in page.blocks.text]
                share[start:end] = index.cover(list(chain.from_iterable(found)), np.array(list(map(len, found))))
            else:
                share[start:end] = index.cover(words.words[first:last], words.counts[start:end])
            of_page[start:end] = share[start:end].max(axis=0)
        start = end
    x.add([f"declared:{kind}" for kind in KINDS], share)
    x.add([f"declares:{kind}" for kind in KINDS], of_page)
    content: Floats = share[:, _CONTENT].max(axis=1)
    place = np.arange(n)
    before, after = last_chosen(content >= MOSTLY), next_chosen(content >= MOSTLY)
    x["declared"] = content
    x["declared_before"] = np.where(before >= t.first, np.log1p(np.maximum(place - before, 0)), -1)
    x["declared_after"] = np.where(after < t.last, np.log1p(np.maximum(after - place, 0)), -1)
    return content
