"""ROUGE-N as in the Dripper paper: clipped n-grams of jieba's tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from scrapy_dripper.workshop.dataset.metrics import PRF

N = 5
Cut = Callable[[str], Sequence[str]]


def load_cut() -> Cut:
    """Return jieba's tokenizer. Raise ImportError, with advice, if it is not installed."""
    try:
        import jieba  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("ROUGE needs jieba: run 'pip install scrapy-dripper[evaluate]'") from None
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
    overlap = (predicted & wanted).total()
    precision, recall = overlap / max(predicted.total(), 1), overlap / max(wanted.total(), 1)
    return PRF(precision, recall, 2 * precision * recall / (precision + recall) if overlap else 0.0)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
