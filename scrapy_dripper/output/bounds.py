"""Limit each form of the output to a multiple of the page's size."""

from __future__ import annotations

import sys

LEAST = 1_000
"""Smaller pages count as this many characters, because markup dominates the output for a few words."""

UNBOUNDED = sys.maxsize


class TooLongError(Exception):
    """A form of the output would exceed its limit."""

    def __init__(self, form: str) -> None:
        super().__init__(f"the {form} is too long")
        self.form = form


class Allowance:
    """The characters that a form of the output may still use. They are spent while it is written, not afterwards."""

    __slots__ = ("form", "left")

    def __init__(self, form: str, most: int = UNBOUNDED) -> None:
        self.form = form
        self.left = most

    def check(self, chars: int) -> None:
        """Raise :exc:`TooLongError` if fewer characters are left."""
        if chars > self.left:
            raise TooLongError(self.form)

    def spend(self, chars: int) -> None:
        """Spend characters. Raise :exc:`TooLongError` if fewer are left."""
        self.check(chars)
        self.left -= chars


def most_chars(size: int, factor: int) -> int:
    """Return the limit for a form of the output, in characters.

    ``size`` is the size of the page and ``factor`` the value of ``DRIPPER_LIMITS["output"]``.
    """
    return factor * max(size, LEAST)
