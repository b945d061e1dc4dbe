"""Parse answers of models and people strictly: every id must occur exactly once, or an error names the ids."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from scrapy_dripper.workshop.endpoint import AnswerError

LABELS = ("main", "other")
_NAMED = 20  # maximum number of ids in an error message

_fence = re.compile(r"```(?:json)?[ \t]*\n(.*)```", re.DOTALL | re.IGNORECASE).fullmatch


class Pairs(list[tuple[str, Any]]):
    """A JSON object as written: in order, and with duplicate keys."""

    def unique(self) -> dict[str, Any]:
        """Return the object as a dict. Raise :exc:`AnswerError` if a key occurs twice."""
        twice = [key for key, count in Counter(key for key, _ in self).items() if count > 1]
        if twice:
            raise AnswerError(f"expected each key once (got twice: {_names(map(_short, twice))})")
        return dict(self)


def read_answer(text: str, n: int) -> list[int]:
    """Return the ids of the main blocks, in order, from a model's answer about a page of n blocks.

    Only a code fence is allowed around the JSON object. Raise :exc:`AnswerError` for all other answers.
    """
    text = text.strip()
    fenced = _fence(text)
    return check(read_object(fenced[1].strip() if fenced else text), n)


def read_object(text: str) -> Pairs:
    """Parse a text that is a JSON object. Raise :exc:`AnswerError` if it is something else."""
    try:
        value = json.loads(text, object_pairs_hook=Pairs)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, Pairs):
        return value
    raise AnswerError(f"expected one JSON object and nothing else (got {_excerpt(text)})")


def check(pairs: Iterable[tuple[str, Any]], n: int) -> list[int]:
    """Return the ids of main blocks, in order. Raise :exc:`AnswerError` unless each id from 1 to n has one label."""
    expected = {str(i): i for i in range(1, n + 1)}
    counts: Counter[str] = Counter()
    main: list[int] = []
    unknown: list[str] = []
    wrong: list[str] = []
    for key, label in pairs:
        if key not in expected:
            unknown.append(_short(key))
            continue
        counts[key] += 1
        if label not in LABELS or not isinstance(label, str):
            wrong.append(f"{key} ({_short(label)})")
        elif label == "main":
            main.append(expected[key])
    problems = {
        "missing": [key for key in expected if key not in counts],
        "more than once": [key for key, count in counts.items() if count > 1],
        "unknown": unknown,
        "neither main nor other": wrong,
    }
    if any(problems.values()):
        found = "; ".join(f"{problem}: {_names(ids)}" for problem, ids in problems.items() if ids)
        ids = f"every id from 1 to {n}" if n > 1 else "the id 1"
        raise AnswerError(f"expected {ids} exactly once, as main or other (got {found})")
    return sorted(main)


def _names(ids: Iterable[str] | Sequence[str]) -> str:
    listed = list(ids)
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 24 else text[:20] + "..." + text[-1]


def _excerpt(text: str) -> str:
    if not text:
        return "nothing"
    return repr(text) if len(text) <= 100 else f"{text[:60]!r} ... {text[-30:]!r}"
