"""Measures of texts in two papers.

ROUGE-N is that of the Dripper paper: clipped n-grams of jieba's tokens. The others are those of Yadav, "Main Content
Extraction from Business Web Pages: An Empirical Evaluation" (sections 4.3.1 to 4.3.3). They are printed on the study's
scale from 0 to 5. In this module, they are 0 to 1.

The study does not say how it divides texts into words and sentences. Here, words are those of
:mod:`scrapy_dripper.learning.metrics`, in lower case, and each Han character or kana is a word. (ROUGE is
usually computed for ASCII words only.) A sentence ends with ``.``, ``!`` or ``?`` before white space, or with a Chinese
or Japanese full stop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from scrapy_dripper.learning.metrics import PRF, bag_prf, words

N = 5
Cut = Callable[[str], Sequence[str]]


def load_cut() -> Cut:
    """Return jieba's tokenizer."""
    import jieba  # type: ignore[import-untyped]  # of an extra

    jieba.setLogLevel(60)
    jieba.initialize()
    cut: Cut = jieba.lcut
    return cut


def rouge(prediction: str, truth: str, cut: Cut, n: int = N) -> PRF:
    """Compare the n-grams of two texts, each counted as often as it occurs.

    The texts are not normalised: case, white space and punctuation count. All three values are 1 if both texts are
    blank. A text with fewer than n tokens has no n-grams and scores 0, even against itself.
    """
    if not prediction.strip() and not truth.strip():
        return PRF(1.0, 1.0, 1.0)
    predicted, wanted = _grams(cut(prediction), n), _grams(cut(truth), n)
    return bag_prf(predicted, wanted) if predicted and wanted else PRF(0.0, 0.0, 0.0)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


SCALE = 5
MAX_WORDS = 20_000
"""Maximum number of words of each text that are compared for ROUGE-L, which takes quadratic time."""
SENTENCE_WORDS = 20
"""Mean number of words per sentence at which the length part of the coherence reaches its maximum (equation 12)."""

NOISE = frozenset(
    "impressum agb datenschutz privacy cookie navigation menu footer header advertisement sponsored banner share like "
    "tweet facebook".split()
)
"""Words that count as noise, in lower case: legal terms, layout, commerce, social media."""

_artifacts = re.compile(r"href=|://|www\.|\w@\w").findall
_repeats = re.compile(r"(\S)\1{3,}|[!?]{3,}").findall
_ends = re.compile(r"[.!?…][\"'”’)\]]?(?=\s|\Z)|[。！？]").findall


class Study(NamedTuple):
    """The measures of a text, 0 to 1. Higher is better."""

    rouge_1: float
    """Share of the truth's words that are found, each as often as it occurs (equation 1)."""
    rouge_2: float
    """Share of the truth's pairs of words (equation 2)."""
    rouge_l: float
    """Length of the longest common subsequence of words over that of the longer text (equation 3)."""
    precision: float
    """Share of the distinct words that the truth has (equation 5); 0 for an empty text."""
    recall: float
    """Share of the truth's distinct words that are found (equation 6). Equation 14 is the same, as completeness."""
    f1: float
    """Their harmonic mean (equation 7)."""
    clean: float
    """Content-noise ratio: 1 minus the instances of noise divided by the number of words (equation 8). 0 for an empty
    text, which the study does not mention.
    """
    coherence: float
    """Semantic coherence: the mean of two values, each at most 1 (equations 9 to 13). They are twice the share of
    distinct words, and the mean number of words per sentence divided by :data:`SENTENCE_WORDS`.
    """


def study(prediction: str, truth: str) -> Study:
    """Return the measures of a text. If neither text has words, the measures that compare it with the truth are 1."""
    found, wanted = words(prediction), words(truth)
    if not wanted:
        same = float(not found)
        rouge = (same, same, same)
    else:
        rouge = (
            _recall(Counter(found), Counter(wanted)),
            _recall(Counter(pairwise(found)), Counter(pairwise(wanted))),
            _common(found[:MAX_WORDS], wanted[:MAX_WORDS]),
        )
    sets = bag_prf(Counter(set(found)), Counter(set(wanted)))
    return Study(*rouge, *sets, clean=_clean(prediction, found), coherence=_coherence(prediction, found))


def _recall(found: Counter[object], wanted: Counter[object]) -> float:
    return (found & wanted).total() / wanted.total() if wanted else 1.0  # a truth of one word has no pairs


def _common(one: list[str], other: list[str]) -> float:
    from rapidfuzz.distance import LCSseq  # of an extra

    return LCSseq.similarity(one, other) / max(len(one), len(other))


def _clean(text: str, found: list[str]) -> float:
    if not found:
        return 0.0
    noise = sum(word in NOISE for word in found) + len(_artifacts(text.lower())) + len(_repeats(text))
    return max(0.0, 1 - noise / len(found))


def _coherence(text: str, found: list[str]) -> float:
    if not found:
        return 0.0
    variety = min(2 * len(set(found)) / len(found), 1.0)
    length = min(len(found) / max(len(_ends(text)), 1) / SENTENCE_WORDS, 1.0)
    return (variety + length) / 2
