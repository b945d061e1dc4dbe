"""What the content list is made of: items, which are blocks, and runs, which are what stands in a line.

All are frozen, compare by value and round-trip through plain JSON (:mod:`scrapy_dripper.output.content_json`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Runs: TypeAlias = "tuple[Run, ...]"
Items: TypeAlias = "tuple[Item, ...]"


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, white space collapsed; what looks like markup in it is none."""

    type: ClassVar = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Code within a line."""

    type: ClassVar = "code"
    text: str


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula: a run, or an item of its own where ``display`` is true."""

    type: ClassVar = "formula"
    latex: str
    """LaTeX without delimiters."""
    origin: str
    """Where the LaTeX was found: ``mathml``, ``annotation``, ``alttext``, ``katex``, ``mathjax2``, ``mathjax3``,
    ``wikipedia``, ``asciimath``, ``delimiters`` or ``image``."""
    display: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link with an absolute URL, as far as the page's URL is known."""

    type: ClassVar = "link"
    href: str
    runs: Runs
    title: str = ""


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Text in italics."""

    type: ClassVar = "emphasis"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Strong:
    """Text in bold."""

    type: ClassVar = "strong"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Deleted:
    """Text that is struck through."""

    type: ClassVar = "deleted"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Sub:
    """Text below the line."""

    type: ClassVar = "sub"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Sup:
    """Text above the line."""

    type: ClassVar = "sup"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Ruby:
    """East Asian text with its reading."""

    type: ClassVar = "ruby"
    runs: Runs
    reading: str


@dataclass(frozen=True, slots=True)
class LineBreak:
    """The end of a line within a paragraph."""

    type: ClassVar = "break"


@dataclass(frozen=True, slots=True)
class FootnoteMark:
    """The place that a footnote belongs to; ``label`` is that of a :class:`Footnote` of the same content list."""

    type: ClassVar = "footnote"
    label: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image: a run where it stands in a line of text, else an item."""

    type: ClassVar = "image"
    src: str
    """Absolute URL, as far as the page's URL is known."""
    alt: str = ""
    title: str = ""
    caption: Runs = ()
    href: str = ""
    """Where a link around it leads, if it is an item."""


@dataclass(frozen=True, slots=True)
class Title:
    """A heading of level 1 to 6."""

    type: ClassVar = "title"
    level: int
    runs: Runs
    anchor: str = ""
    """The id by which a URL of the page leads to it, behind ``#``; empty if the page has none."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Runs of text."""

    type: ClassVar = "paragraph"
    runs: Runs


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines of code as written, without line numbers and without the line break at their end."""

    type: ClassVar = "code"
    text: str
    language: str | None = None
    """The name that the page gives, in lower case, such as ``python``."""
    by: str | None = None
    """How the language was found: ``class``, ``attribute``, ``brush``, ``guess``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. One with text alone holds a single paragraph."""

    items: Items
    rowspan: int = 1
    colspan: int = 1
    header: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A data table. Each row holds the cells that begin in it."""

    type: ClassVar = "table"
    rows: tuple[tuple[Cell, ...], ...]
    header_rows: int = 0
    caption: Runs = ()
    simple: bool = True
    """True if Markdown can hold it: no spans, nothing but a paragraph in a cell, and few cells missing in its rows."""
    html: str = ""
    """Clean HTML of the table; empty where it is simple."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """One item of a list; in a definition list one definition, with the terms that precede it.

    Its only term is empty if the page has one that was not kept.
    """

    items: Items
    terms: tuple[Runs, ...] = ()
    checked: bool | None = None
    """Whether the task that the item is was done; None for no task."""
    number: int | None = None
    """Its number in an ordered list, where that is not one more than the number of the item before."""


@dataclass(frozen=True, slots=True)
class List:
    """A list. Lists within lists are items of their items."""

    type: ClassVar = "list"
    kind: Literal["unordered", "ordered", "definition"]
    items: tuple[ListItem, ...]
    start: int = 1
    """Number of the first item of an ordered list."""


@dataclass(frozen=True, slots=True)
class Video:
    """A video, or the player of one in a frame."""

    type: ClassVar = "video"
    src: str
    poster: str = ""
    title: str = ""
    caption: Runs = ()


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, or the player of one in a frame."""

    type: ClassVar = "audio"
    src: str
    title: str = ""
    caption: Runs = ()


@dataclass(frozen=True, slots=True)
class Quote:
    """A block quotation, or a call-out."""

    type: ClassVar = "quote"
    items: Items
    alert: str = ""
    """Of a call-out, which alert of GitHub it is: ``note``, ``tip``, ``important``, ``warning`` or ``caution``."""
    caption: Runs = ()
    """Of a call-out, its title."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A thematic break."""

    type: ClassVar = "rule"


@dataclass(frozen=True, slots=True)
class Footnote:
    """A footnote, without the links back to its marks."""

    label: str
    items: Items


@dataclass(frozen=True, slots=True)
class Footnotes:
    """The footnotes of a page or a section."""

    type: ClassVar = "footnotes"
    notes: tuple[Footnote, ...]


Run: TypeAlias = (
    Text | Code | Formula | Link | Emphasis | Strong | Deleted | Sub | Sup | Ruby | LineBreak | FootnoteMark | Image
)
Item: TypeAlias = (
    Title | Paragraph | CodeBlock | Formula | Table | List | Image | Video | Audio | Quote | Rule | Footnotes
)
