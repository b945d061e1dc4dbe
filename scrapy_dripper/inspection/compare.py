"""Which blocks of a page another extractor keeps, told from its text, in time linear in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scrapy_dripper.dataset.alignment import tokens

GRAM = 4
"""Words in a row that a block and a text are compared by; a shorter block has to be a line of the text."""
SHARE = 0.5
"""Share of them that the text must have."""


def kept(blocks: Sequence[str], text: str) -> list[bool]:
    """Return for the text of each block whether most of it is in another text. A copy of a kept block counts as kept.

    A short block is kept if it is a line of the text, alone: its words alone are everywhere.
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
