"""What may be read of the data in a page's scripts."""

from __future__ import annotations

from dataclasses import dataclass

MOST_VALUES = 200_000
MOST_CHARACTERS = 3_000_000


@dataclass(slots=True)
class Budget:
    """The values and the characters that may still be read from the data of a page.

    Data refer to themselves: a text can be the value of a thousand keys, and a nested value is read again with each
    value around it. So everything that is read draws on the same budget, before it is copied.
    """

    values: int = MOST_VALUES
    characters: int = MOST_CHARACTERS

    @property
    def is_spent(self) -> bool:
        """True if nothing more may be read."""
        return self.values <= 0 or self.characters <= 0

    def visit(self, value: object) -> None:
        """Count a value and its direct children."""
        self.values -= 1 + (len(value) if isinstance(value, (list, dict)) else 0)

    def read(self, text: str) -> str:
        """Return as much of a text as may still be read."""
        kept = text[: max(0, self.characters)]
        self.characters -= len(text)
        return kept
