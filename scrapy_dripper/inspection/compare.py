"""Find the blocks of a page that another extractor keeps, from its text, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scrapy_dripper.metadata.facts import tokens

GRAM = 4
"""Number of consecutive words by which a block and a text are compared. A shorter block must be a line of the text."""
SHARE = 0.5
"""Share of a block's n-grams that the text must have."""


def kept(blocks: Sequence[str], text: str) -> list[bool]:
    """Return for each block whether most of it occurs in another text. A copy of a kept block counts as kept.

    A short block is kept only if it is a line of the text by itself, because its words alone occur everywhere.
    """
    grams: set[tuple[str, ...]] = set()
    lines: set[tuple[str, ...]] = set()
    for line in text.split("\n"):
        words = tokens(line)
        lines.add(tuple(words))
        grams.update(_grams(words))
    found = []
    for block in blocks:
        words = tokens(block)
        own = list(_grams(words))
        found.append(sum(gram in grams for gram in own) >= SHARE * len(own) if own else tuple(words) in lines)
    return found


def _grams(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[i:] for i in range(GRAM)), strict=False)
