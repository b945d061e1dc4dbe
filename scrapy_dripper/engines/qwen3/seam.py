"""Find a place at which a text can be divided so that the tokens of both parts, together, are those of the whole
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer

_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How the tokenizers of Qwen2 and Qwen3 split a text into the pieces whose tokens are independent of each other."""

_places = re.compile(r"\n(?=[!-~])").finditer


def seam(tokenizer: Tokenizer, text: str) -> int:
    """Return the last place at which a text can be divided, whatever follows the text, or 0 if no such place is known.

    The place is after a newline and before an ASCII sign, digit or letter. Qwen's pattern ends a piece there, and does
    not look back from there. So the tokens on both sides are those of the whole text, if the tokenizer has none of
    these properties: it adds tokens at the ends of a text; it has an added token that contains a newline, or that
    absorbs the white space before it; or it changes texts in another way than by Unicode's composition (NFC), which
    never composes a newline.
    """
    rules = json.loads(tokenizer.to_str())
    if not (tokenizer.num_special_tokens_to_add(False) == 0 and _is_qwens(rules)):
        return 0
    if any("\n" in one["content"] or one["lstrip"] for one in rules["added_tokens"]):
        return 0
    return max((found.end() for found in _places(text)), default=0)


def _is_qwens(rules: Mapping[str, Any]) -> bool:
    """Return True if a tokenizer splits texts as Qwen's do."""
    splits = (rules["pre_tokenizer"] or {}).get("pretokenizers") or [{}]
    split, *others = splits
    return (
        (rules["normalizer"] or {"type": "NFC"})["type"] == "NFC"
        and split.get("type") == "Split"
        and split["pattern"] == {"Regex": _QWEN}
        and split["behavior"] == "Isolated"
        and not split["invert"]
        and [one["type"] for one in others] == ["ByteLevel"]
        and not others[0]["use_regex"]
        and not others[0]["add_prefix_space"]
    )
