"""Read rules from a dict, or from a TOML or JSON file, and check them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from scrapy_dripper.rules.ruleset import EVERY, Rule, Rules, same_host, same_path
from scrapy_dripper.rules.selectors import SelectorError, find, is_xpath

KINDS = ("whole", "keep", "drop")
MOST = 10_000
"""Maximum number of rules."""
MOST_OUTSIDE, LONGEST_OUTSIDE = 20, 1_000
"""Maximum number of rules in a request, and of characters of all their selectors. They may come from outside."""
LARGEST = 4_000_000
"""Maximum size of a file, in bytes."""

_name = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*").fullmatch
_ipv6 = re.compile(r"\[[0-9a-f:.]+\]", re.I).fullmatch
_port = re.compile(r":\d*$").sub
WANTED = 'a dict, or a TOML or JSON file, such as {"example.com": {"drop": [".related"]}}'
"""What rules may be given as. It is the whole message about a value that is neither."""


class RuleError(ValueError):
    """A rule is invalid. The message says what was expected and what was found."""


def read_rules(value: Any, *, outside: bool = False) -> Rules:
    """Return rules in the order in which they are written. Raise :exc:`RuleError` if one of them is wrong.

    ``value`` is a dict that maps patterns to the selectors of each kind, the path of a file with such a dict, or rules
    as triples. With ``outside``, they come from a request. They must then be few and short, and in CSS, which can only
    select elements.
    """
    if type(value) is Rules:
        return value
    if isinstance(value, (str, PathLike)) and not outside:
        found = _loaded(Path(value))
        try:
            return read_rules(found)
        except RuleError as error:
            raise RuleError(f"{error}, in {str(value)[:200]}") from None
    if isinstance(value, Mapping):
        triples: Iterator[Sequence[Any]] = _triples(value)
    elif isinstance(value, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 3 for one in value):
        triples = iter(value)
    else:
        raise RuleError(WANTED)
    rules: list[Rule] = []
    for pattern, kind, selector in triples:
        if len(rules) >= (MOST_OUTSIDE if outside else MOST):
            raise RuleError(f"rules, at most {MOST_OUTSIDE if outside else MOST:,} of them (got more)")
        rules.append(_rule(pattern, kind, selector, outside))
        if outside and sum(len(rule.selector) for rule in rules) > LONGEST_OUTSIDE:
            raise RuleError(f"rules with selectors of at most {LONGEST_OUTSIDE:,} characters in all")
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
        text = data.decode("utf-8-sig")  # editors on Windows begin a file with a byte order mark
        return json.loads(text, object_pairs_hook=_once) if path.suffix.lower() == ".json" else _toml(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{WANTED}; {path} is not well-formed: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raise ValueError for a duplicate key, because Python would silently drop a value."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {_shown(key)} occurs twice")
        found[key] = value
    return found


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
        close = get_close_matches(kind, KINDS, 1) if isinstance(kind, str) and len(kind) < 100 else []
        meant = f"; did you mean {close[0]}?" if close else ""
        raise RuleError(
            f"rules of the kinds {', '.join(map(repr, KINDS))} ({_shown(pattern)} has {_shown(kind)}{meant})"
        )
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
    """Return a normalised pattern, without scheme, port and ``www.``, and with the host in lower case."""
    if isinstance(pattern, str) and len(pattern) <= 2_000:
        bare = pattern.strip()
        bare = bare.partition("://")[2] if "://" in bare[:10] else bare
        host, slash, path = bare.partition("/")
        host = _port("", host).removeprefix("*.")
        same = same_host(host)
        if same == EVERY or _name(same) or _ipv6(host):
            return same + slash + same_path(path)
    raise RuleError(
        f"rules for hosts ('example.com'), for paths on a host ('example.com/news/*') or for all pages ('*') (got "
        f"{_shown(pattern)})"
    )


def _shown(value: Any) -> str:
    return repr(value[:100]) if isinstance(value, str) else f"a value of type {type(value).__name__[:30]}"
