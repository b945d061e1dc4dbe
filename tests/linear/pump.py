"""Attack regular expressions with long strings that are made from their own parse trees.

Each attack has a head that matches what comes before a repeat, a pump that the repeat takes again and again, and a tail
at which the match fails. A match of a short attack that takes much more time than one of half its length is suspected.
It is convicted by a long attack, for which a linear pattern takes some milliseconds, and others many seconds: the match
is interrupted after ``LIMIT`` seconds of CPU time.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

from tests.linear.patterns import uses

if sys.version_info >= (3, 11):
    from re import _compiler as sre_compile  # type: ignore[attr-defined]
    from re import _constants as sre
    from re import _parser as sre_parse
else:
    import sre_compile
    import sre_constants as sre
    import sre_parse

SHORT, LONG = (1_000, 12_000), 100_000
"""Characters of attacks that raise a suspicion, and of the one that confirms it."""
QUICK = 0.00015
"""CPU seconds for a short attack that are no reason to look any further."""
LIMIT = 0.5
"""CPU seconds of a long attack."""
HIGHEST_BOUND = 1_000
"""A repeat with a lower bound is only a constant factor."""
MOST_ATTACKS = 400
"""Attacks on a pattern. Those with many alternatives would have thousands, most of them alike."""
ODDITIES = "\0\t\n .,:;-_/\\'\"<>()[]{}&=!0aAxz\xa0\u4e2d"

Tree = Any
"""A parsed pattern, or a part of one: pairs of operator and argument."""


class Attack(NamedTuple):
    """A family of strings."""

    head: str
    pump: str
    tail: str

    def of(self, length: int) -> str:
        """Return the string of this family with about that many characters."""
        return self.head + self.pump * (length // len(self.pump)) + self.tail


class _OverLimitError(Exception):
    pass


def superlinear(pattern: re.Pattern[Any], method: str, limit: float = LIMIT) -> str | None:
    """Return a description of an attack for which a method of a pattern takes more than linear time, or None."""
    tree = sre_parse.parse(pattern.pattern, pattern.flags)
    bounds = [argument[1] for operator, argument in _operators(tree) if operator in _REPEATS]
    if any(HIGHEST_BOUND < bound < sre.MAXREPEAT for bound in bounds):
        return f"a repeat of more than {HIGHEST_BOUND} times"
    attacks = list(dict.fromkeys(_attacks(tree, pattern.flags)))
    if len(attacks) > MOST_ATTACKS:
        attacks = Random(1).sample(attacks, MOST_ATTACKS)
    return next((repr(attack) for attack in attacks if _succeeds(attack, pattern, method, limit)), None)


def _succeeds(attack: Attack, pattern: re.Pattern[Any], method: str, limit: float) -> bool:
    try:
        for size in SHORT:
            whole = _seconds(pattern, method, attack.of(size), limit)
            if whole < QUICK or whole < 2.6 * _seconds(pattern, method, attack.of(size // 2), limit):
                return False
        _seconds(pattern, method, attack.of(LONG), limit)
    except _OverLimitError:
        return True
    return False


def _seconds(pattern: re.Pattern[Any], method: str, text: str, limit: float) -> float:
    data: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    arguments = (data[:0], data) if method in ("sub", "subn") else (data,)
    start = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)  # a match looks for signals now and then
    try:
        found = getattr(pattern, method)(*arguments)
        if method == "finditer":
            for _ in found:
                pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - start


def _interrupt(*_: object) -> None:
    raise _OverLimitError


signal.signal(signal.SIGVTALRM, _interrupt)

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_LEAVES = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def _operators(tree: Tree) -> Iterator[tuple[Any, Any]]:
    """Yield all operators of a pattern with their arguments."""
    if isinstance(tree, (list, tuple, sre_parse.SubPattern)):
        parts: list[Any] = list(tree)
        if len(parts) == 2 and isinstance(parts[0], type(sre.LITERAL)):
            yield parts[0], parts[1]
        for part in parts:
            yield from _operators(part)


def _inner(operator: Any, argument: Any) -> list[Tree]:
    """Return the patterns in an operator."""
    if operator is sre.BRANCH:
        return list(argument[1])
    if operator is sre.SUBPATTERN:
        return [argument[3]]
    if operator in _REPEATS:
        return [argument[2]]
    return [argument[1]] if operator in (sre.ASSERT, sre.ASSERT_NOT) else []


class _Sampler:
    """Makes strings that parts of a pattern match, if all look-arounds succeed."""

    def __init__(self, tree: Tree, flags: int) -> None:
        self._flags = flags
        operators = list(_operators(tree))
        leaves = {repr(one): self._leaf(*one) for one in operators if one[0] in _LEAVES}
        written = [chr(argument) for operator, argument in operators if operator in _LEAVES[:2]]
        written += [chr(code) for operator, ends in operators if operator is sre.RANGE for code in ends]
        kinds: dict[tuple[bool, ...], str] = {}
        for letter in [*written, *ODDITIES]:
            kinds.setdefault(tuple(leaf.match(letter) is not None for leaf in leaves.values()), letter)
        # What most parts match comes first, because parts that overlap make a match ambiguous.
        self.letters = [kinds[kind] for kind in sorted(kinds, key=lambda kind: -sum(kind))]
        """One character of each kind that the pattern distinguishes."""

    def _leaf(self, operator: Any, argument: Any) -> re.Pattern[str]:
        state = sre_parse.State()
        state.flags, state.str = self._flags & ~re.DEBUG, ""
        return sre_compile.compile(sre_parse.SubPattern(state, [(operator, argument)]), state.flags)  # type: ignore[no-any-return]

    def of(self, tree: Tree, favourite: str = "") -> list[str]:
        """Return some strings that a part matches, with one character wherever it is possible."""
        found = [""]
        for operator, argument in tree:
            found = [start + end for end in self._one(operator, argument, favourite) for start in found][:6]
        return list(dict.fromkeys(found))

    def _one(self, operator: Any, argument: Any, favourite: str) -> list[str]:
        if operator in _LEAVES:
            leaf = self._leaf(operator, argument)
            return [letter for letter in (favourite, *self.letters) if letter and leaf.match(letter)][:3] or [""]
        each = [self.of(one, favourite) for one in _inner(operator, argument)]
        inner = [strings[i] for i in range(2) for strings in each if i < len(strings)]
        if operator in _REPEATS:
            return list(dict.fromkeys(string * times for times in (argument[0], argument[0] + 1) for string in inner))
        return inner if operator in (sre.BRANCH, sre.SUBPATTERN) else [""]


def _repeats(tree: Tree, sampler: _Sampler, heads: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield of each long repeat the strings that lead to it, and those that it takes."""
    for operator, argument in tree:
        for inner in _inner(operator, argument):
            if operator in _REPEATS and argument[1] > 8:
                pumps = [string for letter in sampler.letters for string in sampler.of(inner, letter)[:4]]
                yield heads[:3], list(dict.fromkeys(filter(None, pumps)))[:24]
            yield from _repeats(inner, sampler, heads)
        heads = [start + end for end in sampler.of([(operator, argument)]) for start in heads][:6]


def _attacks(tree: Tree, flags: int) -> Iterator[Attack]:
    sampler = _Sampler(tree, flags)
    letters = sampler.letters
    tails = list(dict.fromkeys(["", "\0", letters[-1], *(letter * 9 for letter in letters[:3])]))
    repeats = list(_repeats(tree, sampler, [""]))
    begun: Iterable[tuple[str, str]] = [("", whole) for whole in sampler.of(tree)]
    if repeats:
        begun = [*begun, *(("", letter) for letter in letters)]
        yield from (Attack("", a + b, "\0") for a, b in product(letters[:9], letters[:9]))
    looks_around = any(operator in (sre.AT, sre.ASSERT, sre.ASSERT_NOT) for operator, _ in _operators(tree))
    around = letters[:6] if looks_around else []
    for heads, pumps in repeats:
        begun = [
            *product(around, pumps[:3]),
            *begun,
            *product(heads, pumps),
            *(("", head + pump) for head in heads for pump in ("", *pumps[:3])),
        ]
    yield from (Attack(head, pump, tail) for head, pump in begun if pump for tail in tails)


def main() -> None:
    """Attack all patterns of the package, and print what was found as JSON."""
    found, unknown = uses()
    first = {(use.pattern, use.method): use for use in reversed(found)}
    slow = [[use.place, use.method, superlinear(use.pattern, use.method)] for use in first.values()]
    places = sorted({use.place for use in found})
    said = {"slow": [one for one in slow if one[2]], "unknown": unknown, "places": places, "uses": len(first)}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
