"""What the steps know of a page, besides the labels that earlier steps gave to its blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.page.page import Flag, Page

Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float32]

UNSEEN = Flag.HIDDEN | Flag.NOSCRIPT
"""The flags of blocks that a reader does not see."""
ELSEWHERE = Flag.NAV | Flag.FOOTER | Flag.FORM | Flag.DIALOG
"""The flags of blocks that are around the content of a page."""


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The labels that the user's rules give to the n blocks of a page."""

    says: npt.NDArray[np.int8]
    """Shape (n,): 1 for main, -1 for not main, 0 if no rule applies."""
    whole: bool = False
    """True if a rule selects the whole main content, so that all blocks have a label from the rules."""
    blocks: Mapping[str, int] | None = None
    """Number of blocks that rules of each kind apply to; None if there are no rules for the page."""


@dataclass(frozen=True, eq=False)
class Given:
    """A page of n blocks, the answer of its engine, and what the user has asked for."""

    page: Page
    probabilities: Floats
    """Probability of each block to be main content, shape (n,)."""
    size: Floats | None = None
    """Words of each block, plus half a word for each CJK character, shape (n,). The steps of the tagger need them."""
    page_type: str | None = None
    """The type of the page; None if the engine does not predict it."""
    comments: str = "auto"
    """Value of ``DRIPPER_COMMENTS``."""
    title: str = "keep"
    """Value of ``DRIPPER_TITLE``."""
    marks: Marks | None = None
    """What the user's rules say; None without rules."""
    furniture: Bools | None = None
    """What the site memory knows to be on many pages of the site, shape (n,); None without a site memory."""

    @classmethod
    def of(
        cls,
        page: Page,
        probabilities: Floats,
        page_type: str | None,
        config: Config,
        marks: Marks,
        furniture: Bools | None = None,
    ) -> Given:
        """Return what the steps for every engine know, with the options of a configuration."""
        return cls(
            page,
            probabilities,
            page_type=page_type,
            comments=config.comments,
            title=config.title,
            marks=marks,
            furniture=furniture,
        )

    @cached_property
    def flags(self) -> npt.NDArray[np.int32]:
        """The flags of each block, from the elements around it: shape (n,)."""
        tree, blocks = self.page.tree, self.page.blocks
        flags: npt.NDArray[np.int32] = tree.flags[blocks.context] | tree.flags[blocks.leaf]
        return flags

    @cached_property
    def chars(self) -> npt.NDArray[np.float64]:
        """The number of characters of each block: shape (n,)."""
        texts = self.page.blocks.text
        return np.fromiter(map(len, texts), dtype=np.float64, count=len(texts))
