from __future__ import annotations

import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.tagger.lexicon import WORD_BITS
from scrapy_dripper.engines.tagger.text import count, split, word_bits

_PIECES = st.sampled_from(["The", "the", "für", "ИЗ", "privacy", "thethe", "_the", "İ", "ΣΑΣ", "日本", "Fish", "x"])
_TEXTS = st.lists(st.lists(_PIECES | st.text(max_size=3), min_size=1, max_size=8), min_size=1, max_size=6)
_NAMED = st.dictionaries(_PIECES.map(str.lower), st.sampled_from([1 << 40, 2 << 40, 3 << 40]), max_size=4)


@given(st.lists(st.tuples(_TEXTS, _NAMED), min_size=1, max_size=3), st.sampled_from([" ", "-", ""]))
def test_bits_are_those_of_each_word(pages: list[tuple[list[list[str]], dict[str, int]]], between: str) -> None:
    texts = [[f"{between.join(pieces)} a" for pieces in page] for page, _ in pages]
    words = split(count([text for page in texts for text in page]), texts)
    bits = word_bits(words, [named for _, named in pages])

    tokens = [
        (re.findall(r"\w+", text.lower()), named)
        for page, (_, named) in zip(texts, pages, strict=True)
        for text in page
    ]
    assert words.counts.tolist() == [len(found) for found, _ in tokens]
    assert bits.tolist() == [WORD_BITS.get(word, 0) | named.get(word, 0) for found, named in tokens for word in found]


def test_lower_case_moves_no_word() -> None:
    """Words are found in a text and read in lower case, so each character has to stay a part of a word or none.

    The Turkish dotted capital is the only one that becomes two characters.
    """
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    same = [char for char in every if len(char.lower()) == 1]

    assert set(every) - set(same) == {"\u0130"}
    assert [char for char in same if char.isalnum() != char.lower().isalnum()] == []
