"""A prepared folder of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scrapy_dripper.engines.prepared import PreparedFolder, load_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder(PreparedFolder):
    """The manifest of a prepared folder, and the path of the folder. The context is the maximum length of one pass."""

    ENGINE: ClassVar[str] = "encoder"
    ONE_OF: ClassVar[Mapping[str, tuple[object, ...]]] = {"main": (0, 1)}
    MOST: ClassVar[Mapping[str, int]] = {"heads": 10_000}

    heads: int
    before: list[int]
    """Tokens before the blocks of a pass."""
    separator: int
    """The token after each block, which is classified."""
    after: list[int]
    """Tokens after the blocks of a pass."""
    foot: str
    """Text after the last block of a page."""
    main: int
    """Which of the two classes is main: 0 or 1."""

    def own_problem(self) -> str | None:
        """Return what is wrong with the tokens and the text around blocks, or None if they are valid."""
        ids = (self.before, self.after, [self.separator])
        if not all(
            isinstance(one, list) and all(type(i) is int and 0 <= i < self.vocab_size for i in one) for one in ids
        ):
            return f"before, after and separator must be tokens, from 0 to {self.vocab_size - 1:,}"
        return None if isinstance(self.foot, str) else "name, architecture and foot must be strings"


def load_encoder(folder: str | Path) -> Encoder:
    """Return the manifest and the tokenizer of a prepared folder, after checking its files. Raise :exc:`ModelError` if
    a check fails.
    """
    return load_folder(Encoder, folder)[0]
