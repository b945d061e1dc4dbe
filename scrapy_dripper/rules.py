"""Rules that correct a model: they name elements of a site's pages that are main content, or that are not.

Rules are read from a dict, or from a TOML or JSON file, checked before the first page, and looked up by the URL of a
page. Their elements are found with cssselect and libxml2, in the time that libxml2 takes: for ``div p``, it compares
each match with all others. Pages with rules are extracted in a worker process, whose deadline limits it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

logger = logging.getLogger(__name__)

WHOLE, KEEP, DROP, MODEL = KINDS = ("whole", "keep", "drop", "model")
CHARS = "chars"
"""Key beside the kinds, with which a template says how many characters of main content its shortest and its longest
page have. Rules make no use of it.
"""
EVERY = "*"
"""Pattern that matches all pages, even those without a URL."""
MOST_RULES = 10_000
RULES_OUTSIDE, CHARS_OUTSIDE = 20, 1_000
"""Maximum number of rules in a request, and of characters of all their selectors. They may come from outside."""
LARGEST_FILE = 4_000_000
"""Maximum size of a file, in bytes."""
MOST_PARTS = 50
"""Maximum number of parts of a TOML key. Python's reader takes time in the square of it, and rules need two."""
LONGEST_SELECTOR = 1_000
"""Maximum length of a selector, in characters."""
LONGEST_URL = 10_000
LONGEST_HOST = 253
"""Maximum length of a host name, in characters (RFC 1035)."""
WANTED = 'a dict, or a TOML or JSON file, such as {"example.com": {"drop": [".related"]}}'
"""What rules may be given as. It is the whole message about a value that is neither."""

_name = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*").fullmatch
_ipv6 = re.compile(r"\[[0-9a-f:.]+\]", re.I).fullmatch
_port = re.compile(r":\d*$").sub
_long_key = re.compile(
    r"(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')[ \t]*\.[ \t]*){" + f"{MOST_PARTS}}}", re.M
).search
_literals = re.compile(r"\"[^\"]*\"|'[^']*'").sub
_ASCII = "".join(map(chr, range(128)))


class SiteRule(NamedTuple):
    """What happens to the elements that a selector selects, on pages whose URL matches a pattern."""

    pattern: str
    """``*``; a host, which includes its subdomains; or a host and a path in which ``*`` stands for anything."""
    kind: str
    """One of :data:`KINDS`."""
    selector: str


class Rules(tuple[SiteRule, ...]):
    """Checked rules."""

    def of(self, url: str) -> list[SiteRule]:
        """Return the rules of a page, in the order in which they were written."""
        host, path = _parts(url)
        found = [entry for name in (EVERY, *_upwards(host)) for entry in self._by_host.get(name, ())]
        return [rule for _, rule in sorted(found) if _has_path(rule.pattern, path)]

    @cached_property
    def _by_host(self) -> dict[str, list[tuple[int, SiteRule]]]:
        # A cache with rules as its keys would take time proportional to the number of rules for each lookup.
        found: dict[str, list[tuple[int, SiteRule]]] = defaultdict(list)
        for number, rule in enumerate(self):
            found[rule.pattern.partition("/")[0]].append((number, rule))
        return dict(found)


def host_of(url: str) -> str:
    """Return the host of a URL, in the one form of :func:`same_host`; an empty string if it has none."""
    return _parts(url)[0]


def hosts_of(url: str) -> list[str]:
    """Return the host of a URL without ``www.``, followed by the domains above it; nothing if the URL has no host."""
    return _upwards(host_of(url))


def same_host(host: str) -> str:
    """Return a host as in the URLs of requests: in IDNA, without ``www.``, a final dot or the brackets of IPv6."""
    if not host.isascii():
        with suppress(UnicodeError):  # not a valid host name
            host = host.encode("idna").decode()
    return host.lower().strip("[]").rstrip(".").removeprefix("www.")


def same_path(path: str) -> str:
    """Return a path and query as in the URLs of requests: non-ASCII characters are percent-encoded UTF-8."""
    return path if path.isascii() else quote(path, safe=_ASCII, errors="replace")


def _upwards(host: str) -> list[str]:
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(len(labels))] if host else []


def _parts(url: str) -> tuple[str, str]:
    """Return the host of a URL, and its path with the query."""
    try:
        parts = urlsplit(url[:LONGEST_URL].strip())
        host = parts.hostname or ""
    except ValueError:  # such as an unclosed bracket
        return "", ""
    query = f"?{parts.query}" if parts.query else ""
    return same_host(host) if len(host) <= LONGEST_HOST else "", same_path((parts.path or "/") + query)


def _has_path(pattern: str, path: str) -> bool:
    """Return True if a path matches a pattern, in time linear in the path."""
    _, slash, wanted = pattern.partition("/")
    if not slash:
        return True
    first, *others = f"/{wanted}".split("*")
    if not others:
        return path == first
    if not path.startswith(first):
        return False
    at = len(first)
    *middle, last = others
    for part in middle:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return path.endswith(last) and len(path) - len(last) >= at


# ---------------------------------------------------------------------- reading
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
        found = loaded(Path(value))
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
    rules: list[SiteRule] = []
    for pattern, kind, selector in triples:
        if len(rules) >= (RULES_OUTSIDE if outside else MOST_RULES):
            raise RuleError(f"rules, at most {RULES_OUTSIDE if outside else MOST_RULES:,} of them (got more)")
        rules.append(_rule(pattern, kind, selector, outside))
        if outside and sum(len(rule.selector) for rule in rules) > CHARS_OUTSIDE:
            raise RuleError(f"rules with selectors of at most {CHARS_OUTSIDE:,} characters in all")
    return Rules(rules)


def loaded(path: Path) -> Any:
    """Return what a TOML or JSON file holds. Raise :exc:`RuleError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RuleError(f"{WANTED}; {str(path)[:200]} cannot be read: {why}") from None
    if len(data) > LARGEST_FILE:
        raise RuleError(f"a file of at most {LARGEST_FILE:,} bytes")
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

        if _long_key(text):
            raise ValueError(f"a key has more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    raise RuleError("a JSON file, because TOML needs Python 3.11 or later")


def _triples(value: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for pattern, kinds in value.items():
        if not isinstance(kinds, Mapping):
            raise RuleError(f"{WANTED}; {_shown(pattern)} has {_shown(kinds)}")
        for kind, selectors in kinds.items():
            if kind == CHARS:
                continue
            if not isinstance(selectors, (str, list, tuple)):
                raise RuleError(f"{WANTED}; {_shown(kind)} of {_shown(pattern)} is {_shown(selectors)}")
            for selector in [selectors] if isinstance(selectors, str) else selectors:
                yield pattern, kind, selector


def _rule(pattern: Any, kind: Any, selector: Any, outside: bool) -> SiteRule:
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
        path_of(selector)
    except SelectorError as error:
        what = "XPath" if is_xpath(selector) else "CSS"
        raise RuleError(
            f"rules whose selectors can be read; {_shown(selector)} of {_shown(pattern)} is not {what} that can be "
            f"used: {error}"
        ) from None
    return SiteRule(_pattern(pattern), str(kind), selector)


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


# ---------------------------------------------------------------------- selectors
class SelectorError(ValueError):
    """A selector cannot be used. The message says why."""


def is_xpath(selector: str) -> bool:
    """Return True if a selector is XPath, judging by its beginning. No CSS selector begins in this way."""
    return selector.lstrip().startswith(("/", "(", "./"))


@lru_cache(maxsize=10_000)  # the maximum number of rules
def path_of(selector: str) -> etree.XPath:
    """Return a selector as XPath. Raise :exc:`SelectorError` if it is invalid."""
    if not 0 < len(selector.strip()) <= LONGEST_SELECTOR:
        raise SelectorError(f"expected from 1 to {LONGEST_SELECTOR:,} characters")
    path = selector if is_xpath(selector) else _translated(selector)
    if "$" in _literals("", path):
        raise SelectorError("variables are not supported")
    try:
        found = etree.XPath(path)
        if not isinstance(found(etree.Element("html")), list):
            raise SelectorError("expected XPath that selects elements, not a number, a string or a boolean")
    except (etree.XPathError, RecursionError, ValueError) as error:  # ValueError: a control character
        raise SelectorError(str(error)) from None
    return found


def _translated(selector: str) -> str:
    from cssselect import HTMLTranslator  # crawls without selectors do not need it
    from cssselect import SelectorError as CssError

    try:
        return HTMLTranslator().css_to_xpath(selector)
    except (CssError, RecursionError) as error:
        raise SelectorError(str(error)[:200].rstrip(".") or type(error).__name__) from None


def find(selector: str, numbers: Mapping[HtmlElement, int]) -> list[int]:
    """Return the numbers of the elements that a selector selects, in order, given those of a page's elements, in
    document order. Raise :exc:`SelectorError` if the selector is invalid.
    """
    path = path_of(selector)
    try:
        selected = cast("list[object]", path(next(iter(numbers))))
    except etree.XPathError as error:  # such as an unknown function, which is only detected when it is called
        _log_once(selector, str(error))
        return []
    return sorted(numbers[node] for node in selected if isinstance(node, etree._Element) and node in numbers)


@lru_cache(maxsize=1_000)
def _log_once(selector: str, error: str) -> None:
    words = {"selector": selector, "error": error}
    logger.warning("The selector %(selector)r of a rule selects nothing: %(error)s", words)
