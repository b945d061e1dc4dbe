"""Identify the language of texts, with the model that py3langid's package holds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MOST_IDENTIFIED = 10_000
"""Maximum number of characters of a text from which its language is identified."""


@lru_cache(1)
def identifier() -> Any:
    """Return the identifier. Raise ImportError without py3langid."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def classify(text: str) -> tuple[str, float]:
    """Return the ISO 639 code of a text's language, and its probability. ``zxx`` stands for a text in no language."""
    language, score = identifier().classify(text[:MOST_IDENTIFIED])
    return str(language), float(score)


def language_of(text: str) -> str:
    """Return the ISO 639 code of a text's language."""
    return classify(text)[0]
