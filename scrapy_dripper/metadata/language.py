"""Detect the language of a text, for pages that do not declare it.

``resiliparse`` compares hashed n-grams of the text with those of a hundred languages. That takes 50 µs for a page, and
loads no model. It is unreliable for short texts, and for Chinese, Japanese and Korean between much code.
"""

from __future__ import annotations

import re

from resiliparse.parse.lang import detect_fast

LEAST_CHARS, MOST_CHARS = 300, 100_000
"""Minimum length of a text whose language is detected, and length of the part of it that is compared, in characters."""
FARTHEST = 450
"""Maximum distance of a text from a language. Texts in that language have 150 to 450, short ones the most."""
UNKNOWN = "unknown"
FEW = 0.05
"""Maximum share of Chinese, Japanese and Korean characters in a text of another language."""

_eastern = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]").findall


def detected_language(text: str) -> str | None:
    """Return the language of a text (ISO 639-1), or None if the text is too short or similar to no language."""
    part = text[:MOST_CHARS].encode("utf-8", "ignore").decode("utf-8")  # without lone surrogates
    if len(part) < LEAST_CHARS:
        return None
    language, distance = detect_fast(part)
    if language == UNKNOWN or distance > FARTHEST:
        return None
    if language not in ("zh", "ja", "ko") and len(_eastern(part)) > FEW * len(part):
        return None
    return str(language)
