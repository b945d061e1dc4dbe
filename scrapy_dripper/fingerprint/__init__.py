"""Fingerprints of a text: a hash to detect changes, and a simhash to detect near duplicates.

The simhash (Charikar 2002, *Similarity estimation techniques from rounding algorithms*) has 64 bits. In Manku, Jain,
Das Sarma 2007, *Detecting near-duplicates for web crawling*, near duplicates differ in at most 3 bits.
"""

from __future__ import annotations

import re
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from scrapy_dripper.fingerprint.counters import is_counter

SHINGLE = 3
"""Number of consecutive words in a shingle."""

_AT_ONCE = 1 << 16
"""Number of words to process together, to limit memory."""

# Soft hyphens, zero-width spaces and joiners, direction marks, byte order marks.
_invisible = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]").sub
_digits = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*").sub
# In scripts without spaces, each character is a word. Other words are runs of letters or digits.
_words = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f\U00020000-\U0003ffff]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f\U00020000-\U0003ffff]+|\d+"
).findall


def content_hash(text: str) -> str:
    """Return a hash of a text as 32 hexadecimal digits: BLAKE2b with 128 bits (RFC 7693).

    White space and invisible characters do not count. Neither do short lines that only hold a counter or a relative
    time (:mod:`~scrapy_dripper.fingerprint.counters`), such as ``1,204 views`` or ``3 hours ago``. All other numbers
    count, such as prices, dates and scores.
    """
    digest = blake2b(digest_size=16)
    for line in _invisible("", text).split("\n"):
        words = " ".join(line.split())
        if words and not is_counter(words):
            digest.update(words.encode("utf-8", "surrogatepass") + b" ")
    return digest.hexdigest()


def simhash(text: str) -> str:
    """Return the simhash of a text as 16 hexadecimal digits. Near duplicates differ in few bits.

    It is computed from all runs of three words in lower case. Each character of Chinese, Japanese, Korean or Thai is a
    word, and all numbers are equal. The simhash of a text without words is zero. Takes linear time.
    """
    words = _words(_digits("0", _invisible("", text).casefold()))
    known: dict[str, int] = {}
    numbers = [known.setdefault(word, len(known)) for word in words]
    hashes = np.array([_hash(word) for word in known], dtype=np.uint64)
    votes = np.zeros(64, dtype=np.int64)
    most = max(1, len(words) - SHINGLE + 1) if words else 0
    for start in range(0, most, _AT_ONCE):
        part = hashes[numbers[start : min(start + _AT_ONCE, most) + SHINGLE - 1]]
        shingles = _mixed(part, max(1, len(part) - SHINGLE + 1))
        bits = np.unpackbits(shingles.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
        votes += 2 * bits.sum(axis=0, dtype=np.int64) - len(bits)
    return np.packbits(votes > 0).tobytes().hex()


def distance(one: str, other: str) -> int:
    """Return the number of bits, 0 to 64, in which two simhashes differ."""
    return (int(one, 16) ^ int(other, 16)).bit_count()


def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _mixed(hashes: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """Combine the hashes of words to a hash for each run of words, depending on their order.

    The mixing function is that of SplitMix64 (Steele, Lea, Flood 2014). Without it, texts with the same words in
    another order would have similar simhashes.
    """
    mixed: npt.NDArray[np.uint64] = np.zeros(count, dtype=np.uint64)
    for offset in range(min(SHINGLE, len(hashes))):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[offset : offset + count]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
