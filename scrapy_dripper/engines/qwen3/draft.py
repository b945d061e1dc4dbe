"""Draft the labels of a page with the tagger, as a guess for the Qwen3 loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import Engine, Labels
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.profiles import carry, native_copy


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The tagger's answer for a page."""

    labels: Labels
    """The labels of the page's blocks, in the page's own profile."""
    confidence: float
    """Mean probability, 0 to 1, that the tagger's labels are right; -1 if it could not label the page."""


def drafts(tagger: Engine, pages: Sequence[Page], profile: str) -> list[Draft]:
    """Return the tagger's labels for pages cut by a profile. If it cannot label a page, all blocks are other.

    The tagger reads native blocks. For a page in another profile, it gets a native copy, and the labels are transferred
    back to the blocks that share text.
    """
    copies = [(page, None) if profile == "native" else native_copy(page) for page in pages]
    found = []
    for page, (copy, nodes), labels in zip(pages, copies, tagger.label([copy for copy, _ in copies]), strict=True):
        if not isinstance(labels, Labels):
            n = len(page.blocks)
            found.append(Draft(Labels(np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.bool_)), -1.0))
            continue
        confidence = _confidence(labels)
        if nodes is not None:
            probabilities = carry(labels.probabilities, copy, page, nodes)
            labels = replace(labels, probabilities=probabilities, main=carry(labels.main, copy, page, nodes) > 0.5)
        found.append(Draft(labels, confidence))
    return found


def _confidence(labels: Labels) -> float:
    p: npt.NDArray[np.float32] = np.where(labels.main, labels.probabilities, 1 - labels.probabilities)
    return float(p.mean()) if len(p) else 0.0
