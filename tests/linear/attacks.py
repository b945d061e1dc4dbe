"""Attack strings for a regular expression, made from its own structure.

Each consists of a head, a pump that is repeated, and a tail at which the match fails. The head is matched by what comes
before a repeat of the pattern, and the pump by the repeated part. In some attacks the pump is also matched by what
comes before the repeat, so that the repeat is tried at every position.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import Any, NamedTuple

from tests.linear.matcher import Matcher, Tree, parse, sre, sre_compile, sre_parse

SHORTEST_BOUND = 8
"""Repeats with at most this bound are not attacked."""

MOST_TAILS, MOST_SAMPLES, MOST_PAIRS = 10, 6, 120
MOST_ATTACKS = 5_000
"""Maximum number of attacks on a pattern. Patterns with long lists of words would have twenty times as many, most of
them alike.
"""

ODDITIES = "\0\t\n\r .,:;-_/\\'\"<>()[]{}|&=!0159aAfkxzZ\x80\x85\xa0\u00df\u0131\u017f\u200b\u4e2d\uffff\U0001f600"


class Attack(NamedTuple):
    """A family of strings. It has two pumps for two consecutive repeats."""

    head: str
    pump: str
    middle: str
    second: str
    tail: str

    def of(self, times: int) -> str:
        """Return the string of this family in which each pump is repeated ``times`` times."""
        return self.head + self.pump * times + self.middle + self.second * times + self.tail

    def times(self, length: int) -> int:
        """Return how often the pumps are repeated in a string of about ``length`` characters."""
        return max(6, length // len(self.pump + self.second))


def alphabet(matcher: Matcher, tree: Tree) -> list[str]:
    """Return one character of each kind that the pattern distinguishes."""
    kinds: dict[int, str] = {}
    for character in [*_written(tree), *ODDITIES]:
        kinds.setdefault(matcher.kind(character), character)
    # Characters that match most parts of the pattern come first, because overlapping parts make a match ambiguous.
    return [kinds[kind] for kind in sorted(kinds, key=lambda kind: -bin(kind).count("1"))]


def _joined(first: list[str], second: list[str], most: int) -> list[str]:
    """Return concatenations of a first and a second part. Combinations of early options come first."""
    pairs = sorted(product(range(len(first)), range(len(second))), key=sum)
    return list(dict.fromkeys(first[i] + second[j] for i, j in pairs))[:most]


def _written(tree: Tree) -> Iterator[str]:
    """Yield the characters that stand in a pattern, the ends of its ranges, and their neighbours."""
    for operator, argument in _operators(tree):
        if operator in (sre.LITERAL, sre.NOT_LITERAL):
            yield chr(argument)
        elif operator is sre.RANGE:
            for code in (argument[0], argument[1], argument[0] - 1, argument[1] + 1):
                if 0 <= code <= sys.maxunicode:
                    yield chr(code)


def _operators(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, (list, tuple, sre_parse.SubPattern)):
        parts = list(tree)
        if len(parts) == 2 and isinstance(parts[0], type(sre.LITERAL)):
            yield parts[0], parts[1]
        for part in parts:
            yield from _operators(part)


class _Sampler:
    """Creates strings that parts of a pattern match, if all look-arounds succeed."""

    def __init__(self, letters: list[str], favourite: str = "") -> None:
        self._letters = letters
        self._favourite = favourite

    def of(self, tree: Tree, flags: int, most: int = MOST_SAMPLES) -> list[str]:
        """Return some strings that a part matches, the shortest first."""
        found = [""]
        for operator, argument in tree:
            found = _joined(found, self._one(operator, argument, flags), most)
        return found

    def varied(self, tree: Tree, flags: int) -> list[str]:
        """Return non-empty strings that a part matches: for each character, strings that contain it wherever
        possible.
        """
        found = [string for letter in self._letters for string in _Sampler(self._letters, letter).of(tree, flags, 9)]
        return [string for string in dict.fromkeys(found) if string]

    def all_of(self, operator: Any, argument: Any, flags: int) -> list[str]:
        """Return a character of each kind that a set matches."""
        state = sre_parse.State()
        state.flags, state.str = flags, ""
        one = sre_compile.compile(sre_parse.SubPattern(state, [(operator, argument)]), flags)
        return [letter for letter in self._letters if one.match(letter)]

    def _one(self, operator: Any, argument: Any, flags: int) -> list[str]:
        if operator is sre.LITERAL:
            return [chr(argument)]
        if operator in (sre.NOT_LITERAL, sre.ANY, sre.IN):
            letters = self.all_of(operator, argument, flags)
            return [self._favourite] if self._favourite in letters else letters[:3] or [""]
        if operator is sre.BRANCH:
            each = [self.of(branch, flags) for branch in argument[1]]
            return [strings[0] for strings in each] + [string for strings in each for string in strings[1:2]]
        if operator is sre.SUBPATTERN:
            return self.of(argument[3], (flags | argument[1]) & ~argument[2])
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inner = argument
            strings = self.of(inner, flags)
            again = strings[-1] * min(least + 1, most)
            return list(dict.fromkeys([strings[0] * least, again, strings[-1] * least]))
        return [""]


class _Repeat(NamedTuple):
    heads: list[str]
    """Strings that match everything before the repeat."""
    pumps: list[str]
    before: list[str]
    """Strings that match the part directly before the repeat."""


def _repeats(tree: Tree, flags: int, sampler: _Sampler, heads: list[str], before: list[str]) -> Iterator[_Repeat]:
    for operator, argument in tree:
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            _, most, inner = argument
            if most > SHORTEST_BOUND:
                yield _Repeat(heads, sampler.varied(inner, flags), before)
            yield from _repeats(inner, flags, sampler, heads, before)
        elif operator is sre.SUBPATTERN:
            yield from _repeats(argument[3], (flags | argument[1]) & ~argument[2], sampler, heads, before)
        elif operator is sre.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, flags, sampler, heads, before)
        elif operator in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repeats(argument[1], flags, sampler, heads, before)
        before = sampler.of([(operator, argument)], flags)
        heads = _joined(heads, before, MOST_SAMPLES)


def attacks(pattern: re.Pattern[Any], matcher: Matcher) -> list[Attack]:
    """Return the attacks on a pattern; a random sample if there are very many. Patterns without long repeats have
    few.
    """
    tree = parse(pattern)
    letters = alphabet(matcher, tree)
    sampler = _Sampler(letters)
    repeats = list(_repeats(tree, pattern.flags, sampler, [""], [""]))
    most = MOST_TAILS // 2
    tails = list(dict.fromkeys(["", letters[-1], letters[0], *letters[1:most], *letters[-most:]]))
    found: list[Attack] = []
    for repeat in repeats:
        found += _round(repeat, tails)
        if _looks_around(tree):
            singles = [pump for pump in repeat.pumps if len(pump) == 1]
            found += _with_tails(((head, pump) for head, pump in product(letters, singles)), tails)
    for i, one in enumerate(repeats):
        for other in repeats[i + 1 : i + 4]:
            for middle, pump, second in product(other.before[:2], one.pumps[:3], other.pumps[:3]):
                found += [Attack(one.heads[0], pump, middle, second, tail) for tail in tails]
    for whole in sampler.of(tree, pattern.flags)[:4]:
        found += _with_tails((("", part) for part in (whole, whole[:-1], whole[: len(whole) // 2 + 1])), tails)
    if repeats:
        found += _with_tails((("", letter) for letter in letters), tails)
        found += [Attack("", a + b, "", "", "\0") for a, b in islice(product(letters, letters), MOST_PAIRS)]
    found = [attack for attack in dict.fromkeys(found) if attack.pump]
    return found if len(found) <= MOST_ATTACKS else random.Random(1).sample(found, MOST_ATTACKS)


def _round(repeat: _Repeat, tails: list[str]) -> Iterator[Attack]:
    """Yield attacks that stay within a repeat, and attacks that start it again and again."""
    for head in repeat.heads[:3]:
        yield from _with_tails([("", head)], tails)
        for pump in repeat.pumps:
            yield from _with_tails([(head, pump)], tails if len(pump) == 1 else tails[:3])
        for pump in repeat.pumps[:3]:
            yield from _with_tails([("", head + pump), (head, head + pump)], tails)


def _with_tails(begun: Iterable[tuple[str, str]], tails: list[str]) -> list[Attack]:
    return [Attack(head, pump, "", "", tail) for head, pump in begun for tail in tails]


def _looks_around(tree: Tree) -> bool:
    """Return True if a match may depend on the text before it."""
    return any(
        operator is sre.AT or (operator in (sre.ASSERT, sre.ASSERT_NOT) and argument[0] < 0)
        for operator, argument in _operators(tree)
    )
