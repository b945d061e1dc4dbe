"""Look up rules by the URLs of pages."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, urlsplit

LONGEST_URL = 10_000
EVERY = "*"
"""Pattern that matches all pages, even those without a URL."""
_ASCII = "".join(map(chr, range(128)))


class Rule(NamedTuple):
    """What happens to the elements that a selector selects, on pages whose URL matches a pattern."""

    pattern: str
    """``*``; a host, which includes its subdomains; or a host and a path in which ``*`` stands for anything."""
    kind: str
    """``whole``, ``keep`` or ``drop``."""
    selector: str


class Rules(tuple[Rule, ...]):
    """Checked rules."""

    def of(self, url: str) -> list[Rule]:
        """Return the rules of a page, in the order in which they were written."""
        host, path = _parts(url)
        found = [entry for name in (EVERY, *_upwards(host)) for entry in self._by_host.get(name, ())]
        return [rule for _, rule in sorted(found) if _has_path(rule.pattern, path)]

    @cached_property
    def _by_host(self) -> dict[str, list[tuple[int, Rule]]]:
        # A cache with rules as its keys would take time proportional to the number of rules for each lookup.
        found: dict[str, list[tuple[int, Rule]]] = defaultdict(list)
        for number, rule in enumerate(self):
            found[host_of(rule.pattern)].append((number, rule))
        return dict(found)


def host_of(pattern: str) -> str:
    """Return the host of a pattern; ``*`` for all hosts."""
    return pattern.partition("/")[0]


def hosts_of(url: str) -> list[str]:
    """Return the host of a URL without ``www.``, followed by the domains above it; nothing if the URL has no host."""
    return _upwards(_parts(url)[0])


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
    return same_host(host), same_path((parts.path or "/") + query)


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
