"""What an element changes in the walk of a :class:`~scrapy_dripper.output.reader.Reader` while it is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from scrapy_dripper.output.inline import Line
from scrapy_dripper.output.items import Item, ListItem, Runs
from scrapy_dripper.output.numerals import Numeral


@dataclass(slots=True)
class OpenList:
    """A list that is being read."""

    kind: Literal["unordered", "ordered", "definition"]
    start: int = 1
    step: int = 1
    """What is added to the number from one entry to the next: -1 for a reversed list."""
    number: int | None = None
    """The number of the next entry, if entries have explicit numbers."""
    numeral: Numeral | None = None
    """How entries are numbered, if not in decimal."""
    entries: list[ListItem] = field(default_factory=list)
    """The entries so far."""
    terms: list[Runs] = field(default_factory=list)
    """The terms since the last definition."""
    labels: dict[int, str] = field(default_factory=dict)
    """The labels of those entries that are footnotes."""
    numbers: dict[int, int] = field(default_factory=dict)
    """The explicit numbers of entries."""
    checked: bool | None = None
    """Whether the task of the open entry is done; None if it is not a task."""
    level: tuple[str, int] | None = None
    """The name of a list of Google Docs, whose levels are lists of their own, and the level: 0 for the outermost."""


class Frame(NamedTuple):
    """The state that elements replace for their content. Frames are stacked, so it is back at the element's end."""

    line: Line
    """The line that text is added to."""
    items: list[Item]
    """The items so far, of the innermost element that collects its own."""
    open_list: OpenList | None = None
    """The list whose entries can begin here."""
    flat: bool = False
    """True inside an element that is a single line. Blocks in it do not end the line."""
    title: int = 0
    """Level of the open heading, or 0."""
    anchor: str = ""
    """The id of the open heading."""
    nesting: int = 0
    """The number of open lists, quotes and figures."""
    table_depth: int = 0
    """The number of open tables."""
    notes: int = 0
    """The number of open footnotes."""
    ruby: bool = False
    """True inside ruby text."""
