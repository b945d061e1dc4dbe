"""Words of a text in any language, without a model and without a download."""

from __future__ import annotations

import re

UNSPACED = frozenset({"bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"})
"""Languages that are written without spaces between words."""

# Thai, Lao, Tibetan, Myanmar, Khmer, kana, and Han with its extensions.
_U = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Punctuation and symbols: ASCII without the underscore, Latin-1, dandas, general, arrows to shapes, CJK, full width.
_P = (
    r"!-/:-@\[-^`{-\x9f\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u0964\u0965\u060c\u061b\u061f\u06d4\u2010-\u2027"
    r"\u2030-\u205e\u20a0-\u20cf\u2190-\u2bff\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_W = rf"[^\s{_P}{_U}]+"
_words = re.compile(rf"https?://[^\s()<>]+|({_W}(?:['’.\-]{_W})*|[{_U}])").findall


def words(text: str) -> list[str]:
    """Return the words and numbers of a text, and each character of scripts without spaces. Punctuation and URLs are
    left out.
    """
    return [word for word in _words(text) if word]
