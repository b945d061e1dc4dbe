"""A backtracking matcher of regular expressions that counts its steps.

``re`` does not count its steps, and its time is noisy. This matcher searches in the same order as ``re``: it tries long
repeats before short ones, branches and positions in order, and remembers nothing between two attempts. Its results are
compared with those of ``re`` in ``test_matcher.py``. So it takes as many steps as ``re``, except for a constant factor.
"""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from re import _compiler as sre_compile  # type: ignore[attr-defined]
    from re import _constants as sre
    from re import _parser as sre_parse
else:
    import sre_compile
    import sre_constants as sre
    import sre_parse

UNLIMITED = 1_000_000
"""Repeats with a higher bound count as unbounded."""

CHAR, SPLIT, JUMP, SAVE, AT, LOOK, REFERENCE, BEGIN, AGAIN, MATCH = range(10)
END = -1
"""The kind of what follows the last character: no leaf matches it."""

Tree = Any
"""A parsed pattern, or a part of one: pairs of operator and argument."""


class TooManyStepsError(Exception):
    """A match took more steps than allowed."""


def parse(pattern: re.Pattern[Any]) -> Tree:
    """Return the parse tree that ``re`` makes of a pattern; a bytes pattern is read as Latin-1."""
    return sre_parse.parse(pattern.pattern, pattern.flags & ~re.DEBUG)


class Matcher:
    """Runs one pattern as ``re`` does. ``steps`` is the number of steps of the last call.

    Bounds of repeats above ``most_repeats`` are lowered to it.
    """

    def __init__(self, pattern: re.Pattern[Any], most_repeats: int = UNLIMITED) -> None:
        self._most_repeats = most_repeats
        tree = parse(pattern)
        self._state = tree.state
        self._flags = pattern.flags
        self.leaves: list[re.Pattern[str]] = []
        """The parts that match one character: each literal, set or class of the pattern."""
        self._leaf_numbers: dict[Any, int] = {}
        self._code: list[tuple[Any, ...]] = []
        self._registers = 2 * pattern.groups + 2
        self.largest_bound = 1
        """The highest bound of all bounded repeats."""
        self._word = self._leaf(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)], self._flags & ~re.I)
        self._emit(SAVE, 0)
        self._compile(tree, self._flags)
        self._emit(SAVE, 1)
        self._emit(MATCH)
        self.size = len(self._code)
        """Number of instructions of the pattern."""
        self._remembers = any(instruction[0] == REFERENCE for instruction in self._code)
        self._ways: list[dict[int, tuple[int, list[tuple[int, int]]]]] = [{} for _ in self._code]
        self._kinds: dict[str, int] = {}
        self.steps = 0

    # ------------------------------------------------------------------ the code of a pattern
    def _emit(self, *instruction: Any) -> int:
        self._code.append(instruction)
        return len(self._code) - 1

    def _leaf(self, operator: Any, argument: Any, flags: int) -> int:
        key = (str(operator), repr(argument), flags)
        if key not in self._leaf_numbers:
            state = sre_parse.State()
            state.flags = flags
            state.str = ""
            one = sre_compile.compile(sre_parse.SubPattern(state, [(operator, argument)]), flags)
            self._leaf_numbers[key] = len(self.leaves)
            self.leaves.append(one)
        return self._leaf_numbers[key]

    def _compile(self, tree: Tree, flags: int) -> None:
        for operator, argument in tree:
            if operator in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
                self._emit(CHAR, self._leaf(operator, argument, flags))
            elif operator is sre.BRANCH:
                self._branch(argument[1], flags)
            elif operator is sre.SUBPATTERN:
                group, added, dropped, inner = argument
                inner_flags = (flags | added) & ~dropped
                if group is not None:
                    self._emit(SAVE, 2 * group)
                self._compile(inner, inner_flags)
                if group is not None:
                    self._emit(SAVE, 2 * group + 1)
            elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT):
                self._repeat(*argument, operator is sre.MAX_REPEAT, flags)
            elif operator in (sre.ASSERT, sre.ASSERT_NOT):
                direction, inner = argument
                behind = inner.getwidth()[0] if direction < 0 else 0
                at = self._emit()
                self._compile(inner, flags)
                self._emit(MATCH)
                self._code[at] = (LOOK, operator is sre.ASSERT, behind, len(self._code))
            elif operator is sre.AT:
                self._emit(AT, argument, bool(flags & re.M))
            elif operator is sre.GROUPREF:
                self._emit(REFERENCE, argument, bool(flags & re.I))
            else:
                raise NotImplementedError(f"expected a pattern that Python 3.10 knows (got {operator})")

    def _branch(self, branches: list[Tree], flags: int) -> None:
        ends = []
        for i, branch in enumerate(branches):
            if i == len(branches) - 1:
                self._compile(branch, flags)
                break
            at = self._emit()
            self._compile(branch, flags)
            ends.append(self._emit())
            self._code[at] = (SPLIT, at + 1, len(self._code))
        for end in ends:
            self._code[end] = (JUMP, len(self._code))

    def _repeat(self, least: int, most: int, inner: Tree, greedy: bool, flags: int) -> None:
        for _ in range(least):
            self._compile(inner, flags)
        if most > UNLIMITED:
            at = self._emit()
            register = self._registers
            empty = inner.getwidth()[0] == 0
            if empty:
                self._registers += 1
                self._emit(BEGIN, register)
            self._compile(inner, flags)
            self._emit(AGAIN, register, at) if empty else self._emit(JUMP, at)
            self._split(at, len(self._code), greedy)
            return
        self.largest_bound = max(self.largest_bound, most)
        most = max(least, min(most, self._most_repeats))
        splits = []
        for _ in range(most - least):
            splits.append(self._emit())
            self._compile(inner, flags)
        for at in splits:
            self._split(at, len(self._code), greedy)

    def _split(self, at: int, end: int, greedy: bool) -> None:
        self._code[at] = (SPLIT, at + 1, end) if greedy else (SPLIT, end, at + 1)

    # ------------------------------------------------------------------ the kinds of characters
    def kind(self, character: str) -> int:
        """Return a bit set of the leaves that match a character."""
        kind = self._kinds.get(character)
        if kind is None:
            kind = sum(1 << i for i, leaf in enumerate(self.leaves) if leaf.match(character))
            self._kinds[character] = kind
        return kind

    # ------------------------------------------------------------------ matching
    def spans(self, method: str, text: str, limit: int) -> list[tuple[int, int]]:
        """Return the spans that a method of patterns finds in a text.

        Raise :exc:`TooManyStepsError` if that takes more than ``limit`` steps.
        """
        self.steps = 0
        self._limit = limit
        self._text = text
        self._kinds_of_text = [*map(self.kind, text), END]
        if method in ("match", "fullmatch"):
            end = self._run(0, 0, full=method == "fullmatch")
            return [] if end is None else [(0, end)]
        found: list[tuple[int, int]] = []
        at, not_empty_at = 0, -1
        while at <= len(text):
            steps, ways = self._ways_from(0, self._kinds_of_text[at])
            if not ways:
                self.steps += steps
                at += 1
                continue
            end = self._run(0, at, must_advance=at == not_empty_at)
            if end is None:
                at += 1
                continue
            found.append((at, end))
            if method == "search":
                break
            not_empty_at = at if end == at else -1  # no empty match where another was
            at = end
        return found

    def _ways_from(self, pc: int, kind: int) -> tuple[int, list[tuple[int, int]]]:
        """Return the steps that lead from an instruction to where the kind of the next character is no longer enough to
        go on, and where that is: instructions, each with the number of characters before it. The first way comes last.
        """
        known = self._ways[pc].get(kind)
        if known is not None:
            return known
        steps, ways, waiting = 0, [], [pc]
        while waiting:
            at = waiting.pop()
            steps += 1
            operator, *arguments = self._code[at]
            if operator == CHAR:
                if kind != END and kind >> arguments[0] & 1:
                    ways.append((at + 1, 1))
            elif operator == SPLIT:
                waiting += reversed(arguments)
            elif operator == JUMP:
                waiting += arguments
            elif operator == SAVE and not self._remembers:
                waiting.append(at + 1)
            else:
                ways.append((at, 0))
        ways.reverse()
        self._ways[pc][kind] = steps, ways
        return steps, ways

    def _run(self, pc: int, at: int, full: bool = False, must_advance: bool = False) -> int | None:  # noqa: C901
        code, kinds, text = self._code, self._kinds_of_text, self._text
        known, remembers = self._ways, self._remembers
        length = len(text)
        begun = at
        registers: tuple[int, ...] = (-1,) * self._registers
        waiting: list[tuple[int, int, tuple[int, ...]]] = []
        steps = self.steps
        while True:
            steps += 1
            if steps > self._limit:
                self.steps = steps
                raise TooManyStepsError
            instruction = code[pc]
            operator = instruction[0]
            failed = False
            if operator == CHAR:
                if kinds[at] >= 0 and kinds[at] >> instruction[1] & 1:
                    at += 1
                    pc += 1
                else:
                    failed = True
            elif operator < SAVE or (operator == SAVE and not remembers):
                more, ways = known[pc].get(kinds[at]) or self._ways_from(pc, kinds[at])
                steps += more
                for way, moved in ways:
                    waiting.append((way, at + moved, registers))
                failed = True  # on to the first of them
            elif operator in (SAVE, BEGIN):
                number = instruction[1]
                registers = (*registers[:number], at, *registers[number + 1 :])
                pc += 1
            elif operator == AGAIN:
                pc = pc + 1 if registers[instruction[1]] == at else instruction[2]
            elif operator == AT:
                failed = not self._is_at(instruction[1], instruction[2], at)
                pc += 1
            elif operator == LOOK:
                start = at - instruction[2]
                self.steps = steps
                holds = start >= 0 and self._run(pc + 1, start) is not None
                steps = self.steps
                failed = holds != instruction[1]
                pc = instruction[3]
            elif operator == REFERENCE:
                first, last = registers[2 * instruction[1] : 2 * instruction[1] + 2]
                again, here = text[first:last], text[at : at + last - first]
                failed = first < 0 or (again.lower() != here.lower() if instruction[2] else again != here)
                at += last - first
                pc += 1
            elif (full and at < length) or (must_advance and at == begun):
                failed = True
            else:
                self.steps = steps
                return at
            if failed:
                if not waiting:
                    self.steps = steps
                    return None
                pc, at, registers = waiting.pop()

    def _is_at(self, place: Any, lines: bool, at: int) -> bool:
        text = self._text
        if place is sre.AT_BEGINNING and lines:
            return at == 0 or text[at - 1] == "\n"
        if place in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return at == 0
        if place is sre.AT_END:
            return at == len(text) or (text[at] == "\n" and (lines or at == len(text) - 1))
        if place is sre.AT_END_STRING:
            return at == len(text)
        before = at > 0 and self._kinds_of_text[at - 1] >> self._word & 1
        after = at < len(text) and self._kinds_of_text[at] >> self._word & 1
        return (before != after) == (place is sre.AT_BOUNDARY)
