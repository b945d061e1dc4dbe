"""A page with the answer of its engine and what else is known of it: all that decisions are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import CJK
from scrapy_dripper.choose.decision import BALANCED, DecisionRule, Floats
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.vocabulary import NameIndex

if TYPE_CHECKING:
    from scrapy_dripper.structures.posts import PostMarks

UNSEEN = Flag.HIDDEN | Flag.NOSCRIPT
"""The flags of blocks that a reader does not see."""
ELSEWHERE = Flag.NAV | Flag.FOOTER | Flag.FORM | Flag.DIALOG
"""The flags of blocks that are around the content of a page."""
SURE, UNLIKELY = 0.8, 0.15
"""The model is sure of a block of at least the first probability: no step takes it away. No group keeps a short
block of less than the second one that is no heading, but structures that authors write do, and so do tables."""
LIKELY = 0.7
"""A block of at least this probability is content, even above a headline, or on a page that may be an error page."""
LONGEST_LINE = 300
"""Maximum length of a line, such as a headline or a list of tags, in characters."""

_words, _cjk = re.compile(r"\w+").findall, re.compile(f"[{CJK}]").findall


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """An engine's answer for a page of n blocks.

    An engine predicts, and decides nothing: :func:`~scrapy_dripper.choose.choose` decides by its probabilities which
    blocks are main. Only an engine whose answer is a decision, such as that of a language model, also has ``main``.
    """

    probabilities: Floats
    """The probability of each block to be main content: float32 of shape (n,)."""
    main: Bools | None = None
    """The labels, if the engine has decided them: bool of shape (n,). They need not follow from a threshold."""
    source: str | None = None
    """Name of the engine that chose the labels, if it is not the one that was called."""
    truncated: bool = False
    """True if only the first blocks were processed."""
    work: Mapping[str, int] = field(default_factory=dict)
    """The engine's own counters for this page, such as the number of passes. The stats sum them over all pages."""
    page_types: Mapping[str, float] = field(default_factory=dict)
    """The probabilities of the types of the page: ``article``, ``listing``, ``forum``, ... Empty if the engine does not
    predict them."""
    quality: float | Callable[[Bools], float] | None = None
    """Expected word F1 of the extraction, calibrated, 0 to 1, or a function that returns it for the labels that are
    chosen, of which at least one is main. None if the engine does not predict it."""
    sizes: Floats | None = None
    """Words of each block, plus half a word for each CJK character, shape (n,), if the engine has counted them."""
    decision: DecisionRule = BALANCED
    """How labels follow from the probabilities of this model."""
    is_corrected: bool = False
    """True if the user has corrected pages of the site, which the probabilities follow."""


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The labels that the user's rules give to the n blocks of a page."""

    says: npt.NDArray[np.int8]
    """Shape (n,): 1 for main, -1 for not main, 0 if no rule applies."""
    whole: bool
    """True if a rule selects the whole main content, so that all blocks have a label from the rules."""
    blocks: Mapping[str, int]
    """Number of blocks that rules of each kind apply to."""


@dataclass(frozen=True, eq=False)
class ScoredPage:
    """A page of n blocks with its options, the answer of its engine, and what is known besides."""

    page: Page
    labels: Labels
    """The answer of the engine, or the labels of a template of the site."""
    marks: Marks | None = None
    """What the user's rules say; None if there are no rules for the page."""
    repeated: Callable[[Bools], Bools] | None = None
    """Returns which of the main blocks the site memory knows from other pages of the site; None without a memory."""

    @property
    def probabilities(self) -> Floats:
        """Probability of each block to be main content, shape (n,)."""
        return self.labels.probabilities

    @property
    def page_type(self) -> str | None:
        """The most likely type of the page; None if the engine predicts none."""
        types = self.labels.page_types
        return max(types, key=types.__getitem__, default=None)

    @cached_property
    def size(self) -> Floats:
        """Words of each block, plus half a word for each CJK character: shape (n,)."""
        if self.labels.sizes is not None:
            return self.labels.sizes
        found = [len(_words(text)) + len(_cjk(text)) / 2 for text in self.page.blocks.text]
        return np.array(found, dtype=np.float32)

    @cached_property
    def flags(self) -> npt.NDArray[np.int32]:
        """The flags of each block, from the elements around it: shape (n,)."""
        tree, blocks = self.page.tree, self.page.blocks
        flags: npt.NDArray[np.int32] = tree.flags[blocks.context] | tree.flags[blocks.leaf]
        return flags

    @cached_property
    def chars(self) -> npt.NDArray[np.int64]:
        """The number of characters of each block: shape (n,)."""
        return self.page.blocks.chars()

    @cached_property
    def post_marks(self) -> PostMarks:
        """What may mark the posts of the page."""
        from scrapy_dripper.structures.posts import post_marks  # reads dates and names, which few pages are read for

        return post_marks(self.page)

    @cached_property
    def names(self) -> NameIndex:
        """The class and id attributes of the page."""
        return NameIndex(self.page.tree.names)
