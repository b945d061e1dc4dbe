"""Limit each form of the output to a multiple of the page's size."""

from __future__ import annotations

LEAST = 1_000
"""Smaller pages count as this many characters, because markup dominates the output for a few words."""


class TooLongError(Exception):
    """A form of the output exceeds its limit."""

    def __init__(self, form: str) -> None:
        super().__init__(f"the {form} is too long")
        self.form = form


def most_chars(size: int, factor: int) -> int:
    """Return the limit for a form of the output, in characters.

    ``size`` is the size of the page and ``factor`` the value of ``DRIPPER_LIMITS["output"]``.
    """
    return factor * max(size, LEAST)
