"""Guess the language of code from its text. Needs the extra ``[guess]``."""

from __future__ import annotations

from functools import lru_cache

from scrapy_dripper.output.code.blocks import Guess
from scrapy_dripper.output.code.language import normalised

MIN_SCORE = 0.8
"""Minimum probability of an accepted guess."""
MIN_CHARS = 40
"""Minimum length of code to guess, in characters. The model was trained on whole files."""

_NO_CODE = frozenset({"txt", "empty", "unknown", "undefined", "directory", "symlink"})


@lru_cache(maxsize=1)
def magika_guess() -> Guess:
    """Return a guesser that uses Magika (Fratantonio et al., 2025), a small model that takes about 0.1 s per text.

    Raise :exc:`ImportError`, which names the extra, if Magika is not installed.
    """
    try:
        from magika import Magika
    except ImportError as error:
        raise ImportError(
            f"Guessing the language of code needs magika ({error}): run 'pip install scrapy-dripper[guess]'"
        ) from None
    model = Magika()

    def guess(text: str) -> str | None:
        if len(text) < MIN_CHARS:
            return None
        result = model.identify_bytes(text.encode("utf-8", "replace"))
        if not result.ok or result.score < MIN_SCORE or result.output.label in _NO_CODE or not result.output.is_text:
            return None
        return normalised(result.output.label) or None

    return guess
