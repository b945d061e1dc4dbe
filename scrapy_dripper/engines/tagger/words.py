"""Look up the words of all blocks in a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.tagger.characters import Characters
from scrapy_dripper.engines.tagger.lexicon import WORD_BITS

Ints = npt.NDArray[np.int64]

_SPACE = np.uint32(ord(" "))

_tokens = re.compile(r"\w+").findall


def words_in(text: str) -> list[str]:
    """Return the words of a text: runs of ``\\w`` in lower case."""
    return _tokens(text.lower())


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of all blocks of a batch in lower case."""

    words: list[str]
    counts: Ints
    """Number of words of each block."""
    edges: list[int]
    """The first word of each page, followed by the number of words."""


def split(c: Characters, texts: Sequence[Sequence[str]]) -> Words:
    """Return the words of texts. ``c`` are the characters of all texts; ``texts`` are by page."""
    lower = c.text.lower()
    if len(lower) == len(c.text):
        counts, words = c.words, _split(lower, c.is_word)
    else:  # U+0130 becomes two characters, of which the second is not part of a word
        found = [words_in(text) for of_page in texts for text in of_page]
        counts = np.array([len(words) for words in found], dtype=np.int64)
        words = [word for words in found for word in words]
    ends = np.cumsum(counts)[np.cumsum([len(of_page) for of_page in texts]) - 1].tolist()
    return Words(words, counts, [0, *ends])


def word_bits(w: Words, named: Sequence[Mapping[str, int]]) -> Ints:
    """Return a bit set for each word: that of the lexicon, and that of the word among those that its page names."""
    bits = []
    for known, (a, b) in zip(named, pairwise(w.edges), strict=True):
        get = (WORD_BITS | {word: bit | WORD_BITS.get(word, 0) for word, bit in known.items()}).get
        bits.append(np.fromiter(map(get, w.words[a:b], repeat(0)), dtype=np.int64, count=b - a))
    return np.concatenate(bits)


def _split(lower: str, is_word: npt.NDArray[np.bool_]) -> list[str]:
    """Return the words of a text in half the time that a regular expression takes."""
    codes = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.where(is_word, codes, _SPACE).tobytes().decode("utf-32-le").split()
