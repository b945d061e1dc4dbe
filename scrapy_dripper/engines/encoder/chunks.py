"""Arrange the blocks of a page in passes of an encoder, with a separator after each block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.encoder.prepared import Encoder

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive blocks that are read in one pass."""

    ids: Ids
    """The tokens, of shape (S,)."""
    rows: Ids
    """Positions of the separators, of shape (blocks,)."""


def chunks(blocks: Sequence[Sequence[int]], prepared: Encoder, most: int) -> list[Chunk]:
    """Return the passes over a page, each of at most ``most`` tokens, given the tokens of each block.

    A pass holds as many blocks as fit. A block that is too long by itself is cut off. Models are trained in the same
    way: they do not see the blocks of other passes.
    """
    room = most - len(prepared.before) - len(prepared.after)
    found: list[list[list[int]]] = []
    left = 0
    for block in blocks:
        ids = [*block[: room - 1], prepared.separator]
        if not found or len(ids) > left:
            found.append([])
            left = room
        found[-1].append(ids)
        left -= len(ids)
    return [_chunk(part, prepared) for part in found]


def _chunk(part: Sequence[Sequence[int]], prepared: Encoder) -> Chunk:
    ends = len(prepared.before) + np.cumsum([len(ids) for ids in part], dtype=np.int64)
    ids = [*prepared.before, *(i for block in part for i in block), *prepared.after]
    return Chunk(np.array(ids, dtype=np.int64), ends - 1)
