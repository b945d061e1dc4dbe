"""How much may come out of a page: each form of its output is held to a multiple of the page's own size."""

from __future__ import annotations

import sys

LEAST = 1_000
"""Characters that a page counts as if it has fewer: a few words alone have more markup around them than that allows."""

UNBOUNDED = sys.maxsize


class TooLongError(Exception):
    """A form of the output would be longer than it may be."""

    def __init__(self, form: str) -> None:
        super().__init__(f"too long a {form}")
        self.form = form


class Allowance:
    """Characters that a form of the output may still have. Spent while it is written, not after."""

    __slots__ = ("form", "left")

    def __init__(self, form: str, most: int = UNBOUNDED) -> None:
        self.form = form
        self.left = most

    def check(self, chars: int) -> None:
        """Raise :exc:`TooLongError` if so many characters are too many."""
        if chars > self.left:
            raise TooLongError(self.form)

    def spend(self, chars: int) -> None:
        """Take characters off. Raise :exc:`TooLongError` if there are not so many left."""
        self.check(chars)
        self.left -= chars


def most_chars(size: int, factor: int) -> int:
    """Return how many characters a form of the output may have, for a page of so many and ``DRIPPER_MAX_OUTPUT``."""
    return factor * max(size, LEAST)
