"""Rules from a dict, or a file of TOML or JSON, checked one by one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from scrapy_dripper.rules.ruleset import EVERY, Rule, Rules
from scrapy_dripper.rules.selectors import SelectorError, find, is_xpath

KINDS = ("whole", "keep", "drop")
MOST = 10_000
"""Rules in all."""
MOST_OUTSIDE = 20
"""Rules that a request can bring, which may come from somebody else."""
LONGEST_OUTSIDE = 2_000
"""Characters of their selectors together: each part of a selector is tried on each element of the page."""
LARGEST = 4_000_000
"""Bytes of a file."""

_host = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]").fullmatch
WANTED = 'a dict, or a TOML or JSON file, such as {"example.com": {"drop": [".related"]}}'


class RuleError(ValueError):
    """Something is no rule; the message says what was expected and what came."""


def read_rules(value: Any, *, outside: bool = False) -> Rules:
    """Return rules in the order in which they are written. Raise :exc:`RuleError` if one of them is wrong.

    ``value`` is a dict from patterns to the selectors of each kind, the path of a file with one, or rules as triples.
    Those that come from ``outside``, with a request, are few and short, and CSS, which takes linear time.
    """
    if type(value) is Rules:
        return value
    if isinstance(value, (str, PathLike)) and not outside:
        value = _loaded(Path(value))
    if isinstance(value, Mapping):
        triples: Iterator[Sequence[Any]] = _triples(value)
    elif isinstance(value, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 3 for one in value):
        triples = iter(value)
    else:
        raise RuleError(WANTED)
    rules: list[Rule] = []
    for pattern, kind, selector in triples:
        if len(rules) >= (MOST_OUTSIDE if outside else MOST):
            raise RuleError(f"rules, at most {MOST_OUTSIDE if outside else MOST:,} of them")
        rules.append(_rule(pattern, kind, selector, outside))
    if outside and sum(len(rule.selector) for rule in rules) > LONGEST_OUTSIDE:
        raise RuleError(f"rules whose selectors have at most {LONGEST_OUTSIDE:,} characters together")
    return Rules(rules)


def _loaded(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RuleError(f"{WANTED}; {str(path)[:200]} cannot be read: {why}") from None
    if len(data) > LARGEST:
        raise RuleError(f"a file of at most {LARGEST:,} bytes")
    try:
        text = data.decode("utf-8")
        return json.loads(text) if path.suffix == ".json" else _toml(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{WANTED}; {path} is not well-formed: {error}") from None


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(text)
    raise RuleError("a JSON file, because TOML needs Python 3.11 or later")


def _triples(value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for pattern, kinds in value.items():
        if not isinstance(kinds, Mapping):
            raise RuleError(f"{WANTED}; {_shown(pattern)} has {_shown(kinds)}")
        for kind, selectors in kinds.items():
            for selector in [selectors] if isinstance(selectors, str) else _listed(pattern, kind, selectors):
                yield pattern, kind, selector


def _listed(pattern: Any, kind: Any, selectors: Any) -> Sequence[Any]:
    if isinstance(selectors, (list, tuple)):
        return selectors
    raise RuleError(f"{WANTED}; {_shown(kind)} of {_shown(pattern)} is {_shown(selectors)}")


def _rule(pattern: Any, kind: Any, selector: Any, outside: bool) -> Rule:
    if kind not in KINDS:
        raise RuleError(f"rules of the kinds {', '.join(map(repr, KINDS))}; {_shown(pattern)} has {_shown(kind)}")
    if not isinstance(selector, str):
        raise RuleError(f"rules whose selectors are strings; {kind!r} of {_shown(pattern)} has {_shown(selector)}")
    if outside and is_xpath(selector):
        raise RuleError(f"rules with CSS selectors, because they come with a request; {_shown(selector)} is XPath")
    try:
        find(selector)
    except SelectorError as error:
        what = "XPath" if is_xpath(selector) else "CSS"
        raise RuleError(
            f"rules whose selectors can be read; {_shown(selector)} of {_shown(pattern)} is not {what} that can be "
            f"used: {error}"
        ) from None
    return Rule(_pattern(pattern), str(kind), selector)


def _pattern(pattern: Any) -> str:
    """Return a pattern without what makes no difference: scheme, ``www.``, upper case of the host."""
    if isinstance(pattern, str) and len(pattern) <= 2_000:
        bare = pattern.strip()
        bare = bare.partition("://")[2] if "://" in bare[:10] else bare
        host, slash, path = bare.partition("/")
        host = host.lower().removeprefix("*.").removeprefix("www.").partition(":")[0]
        if host == EVERY or _host(host):
            return host + slash + path
    raise RuleError(
        f"rules for hosts ('example.com'), for paths of one ('example.com/news/*') or for all pages ('*'); got "
        f"{_shown(pattern)}"
    )


def _shown(value: Any) -> str:
    return repr(value[:100]) if isinstance(value, str) else f"a value of type {type(value).__name__[:30]}"
