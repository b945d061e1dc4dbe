"""The data model of the content list: items are blocks, and runs are pieces of a line.

All classes are frozen, compare by value and round-trip through plain JSON
(:mod:`scrapy_dripper.output.content_json`).

A new type of item needs a case in each place that tells items by their types: :func:`plain_text`; the writers in
:mod:`~scrapy_dripper.output.markdown`; :func:`~scrapy_dripper.output.chunks.split_item`, if it can be cut;
``_HtmlWriter.item``, :func:`~scrapy_dripper.structures.tables.as_line` and ``_is_layout`` in
:mod:`~scrapy_dripper.structures.tables`; and :data:`~scrapy_dripper.checks.CONTENT_TYPES`. mypy and
``tests/structures/test_items.py`` find most of those that are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias

Runs: TypeAlias = "tuple[Run, ...]"
Items: TypeAlias = "tuple[Item, ...]"


Box: TypeAlias = "tuple[float, float, float, float]"
"""The left, top, right and bottom edges of an element on a rendered page, in CSS pixels."""


@dataclass(frozen=True, slots=True)
class Boxed:
    """What can have a place on a rendered page. Two that only differ in their places are equal."""

    bbox: Box | None = field(default=None, kw_only=True, compare=False)
    """The place, if a browser has written it into the page (:mod:`~scrapy_dripper.output.reader`)."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text with white space collapsed. It never holds markup."""

    type: ClassVar = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Inline code. It has the type of a :class:`CodeBlock`, which is an item; this is a run."""

    type: ClassVar = "code"
    text: str


@dataclass(frozen=True, slots=True)
class Formula(Boxed):
    """A formula. It is a run, or an item if ``display`` is true."""

    type: ClassVar = "formula"
    latex: str
    """LaTeX without delimiters, and :func:`without_open_end`."""
    origin: str
    """The source of the LaTeX: ``mathml``, ``annotation``, ``alttext``, ``katex``, ``mathjax2``, ``mathjax3``,
    ``wikipedia``, ``delimiters`` or ``image``."""
    display: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link. Its URL is absolute if the page's URL is known."""

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
    """Deleted text, shown with strikethrough."""

    type: ClassVar = "deleted"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Sub:
    """Subscript text."""

    type: ClassVar = "sub"
    runs: Runs


@dataclass(frozen=True, slots=True)
class Sup:
    """Superscript text."""

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
    """A line break within a paragraph."""

    type: ClassVar = "break"


@dataclass(frozen=True, slots=True)
class FootnoteMark:
    """The reference mark of a footnote. ``label`` is that of a :class:`Footnote` in the same content list."""

    type: ClassVar = "footnote"
    label: str


@dataclass(frozen=True, slots=True)
class Image(Boxed):
    """An image. It is a run inside a line of text, and an item otherwise."""

    type: ClassVar = "image"
    src: str
    """Absolute URL if the page's URL is known."""
    alt: str = ""
    title: str = ""
    caption: Runs = ()
    href: str = ""
    """URL of a link around the image, if it is an item."""


@dataclass(frozen=True, slots=True)
class Title(Boxed):
    """A heading of level 1 to 6."""

    type: ClassVar = "title"
    level: int
    runs: Runs
    anchor: str = ""
    """The fragment of a URL that leads to the heading; empty if it has no id."""


@dataclass(frozen=True, slots=True)
class Paragraph(Boxed):
    """Runs of text."""

    type: ClassVar = "paragraph"
    runs: Runs


@dataclass(frozen=True, slots=True)
class CodeBlock(Boxed):
    """Lines of code, without line numbers and without a line break at the end."""

    type: ClassVar = "code"
    text: str
    language: str | None = None
    """The language as named by the page, in lower case, such as ``python``."""
    by: str | None = None
    """The source of the language: ``class``, ``attribute``, ``brush``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. If it only holds text, it has a single paragraph."""

    items: Items
    rowspan: int = 1
    colspan: int = 1
    header: bool = False


@dataclass(frozen=True, slots=True)
class Table(Boxed):
    """A data table. Each row holds the cells that start in it."""

    type: ClassVar = "table"
    rows: tuple[tuple[Cell, ...], ...]
    header_rows: int = 0
    caption: Runs = ()
    simple: bool = True
    """True if Markdown can express the table: no spans, at most a paragraph in each cell, and few missing cells. Other
    tables are written with :func:`~scrapy_dripper.structures.tables.table_html`."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """An entry of a list. In a definition list, it is a definition with the terms before it.

    If the term on the page is not main content, the only term is empty.
    """

    items: Items
    terms: tuple[Runs, ...] = ()
    checked: bool | None = None
    """Whether a task is done; None if the entry is not a task."""
    number: int | None = None
    """Its number in an ordered list, if that is not one more than the previous number."""


@dataclass(frozen=True, slots=True)
class List(Boxed):
    """A list. Nested lists are among the items of its entries."""

    type: ClassVar = "list"
    kind: Literal["unordered", "ordered", "definition"]
    items: tuple[ListItem, ...]
    start: int = 1
    """Number of the first entry of an ordered list."""


@dataclass(frozen=True, slots=True)
class Video(Boxed):
    """A video, or a frame with a video player."""

    type: ClassVar = "video"
    src: str
    poster: str = ""
    title: str = ""
    caption: Runs = ()


@dataclass(frozen=True, slots=True)
class Audio(Boxed):
    """A sound, or a frame with an audio player."""

    type: ClassVar = "audio"
    src: str
    title: str = ""
    caption: Runs = ()


@dataclass(frozen=True, slots=True)
class Quote(Boxed):
    """A block quotation, or a call-out."""

    type: ClassVar = "quote"
    items: Items
    alert: str = ""
    """The GitHub alert that matches a call-out: ``note``, ``tip``, ``important``, ``warning`` or ``caution``."""
    caption: Runs = ()
    """The title of a call-out."""


@dataclass(frozen=True, slots=True)
class ThematicBreak:
    """A thematic break."""

    type: ClassVar = "rule"


@dataclass(frozen=True, slots=True)
class Post:
    """The beginning of a post in a thread, or the end of the last one. What follows belongs to it, up to the next mark.

    After a reply inside of a post, the mark of that post is repeated.
    """

    type: ClassVar = "post"
    number: int = 0
    """Its number on the page, from 1; 0 if what follows belongs to no post."""
    author: str = ""
    """The name of its author; empty if it is not known."""
    date: str = ""
    """Its date in ISO 8601; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card of a list, such as a teaser or a product. Cards are at the end of the content list.

    What they hold is before them as well, in items of other types, so that no text is written twice: Markdown, text and
    chunks have no cards.
    """

    type: ClassVar = "card"
    title: str
    href: str
    """Its link. Absolute if the page's URL is known."""
    text: str = ""
    """Its main text, without the title and the lines of its price, author and date."""
    price: str = ""
    """The line with its price; empty if there is none."""
    author: str = ""
    """The name of its author; empty if it is not known."""
    date: str = ""
    """Its date in ISO 8601; empty if it is not known."""


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
    Title
    | Paragraph
    | CodeBlock
    | Formula
    | Table
    | List
    | Image
    | Video
    | Audio
    | Quote
    | ThematicBreak
    | Post
    | Card
    | Footnotes
)


def inside(item: Item | Run) -> list[Item]:
    """Return the items in an item, in order. A caption, and each term of a definition list, is a paragraph."""
    caption: Runs = getattr(item, "caption", ())
    found: list[Item] = [Paragraph(caption)] if caption else []
    for held in (*getattr(item, "items", ()), *getattr(item, "notes", ()), *chain(*getattr(item, "rows", ()))):
        if isinstance(held, (ListItem, Cell, Footnote)):
            found += [Paragraph(term) for term in getattr(held, "terms", ()) if term]
            found += held.items
        else:
            found.append(held)
    return found


def as_lines(item: Image | Video | Audio) -> tuple[Paragraph, ...]:
    """Return a picture or a player as a line of text, in which a player is a link, and its caption as another line.

    A player without a title has its caption as the text of the link, or the name of its file.
    """
    line: Run
    caption = item.caption
    if isinstance(item, Image):
        image = replace(item, caption=(), href="")
        line = Link(item.href, (image,)) if item.href else image
    else:
        name = item.src.partition("?")[0].rpartition("/")[2]
        said = (Text(item.title),) if item.title else item.caption or (Text(name if "." in name else item.src),)
        line = Link(item.src, said)
        caption = item.caption if item.title else ()
    return tuple(map(Paragraph, filter(None, ((line,), caption))))


def only(items: Items, types: Collection[str]) -> Items:
    """Return the items of some types. The content of lists, quotes, footnotes and tables is not filtered.

    If ``image`` is not among the types, images in these and in text are removed as well. Marks of posts stay, so that
    what is kept can be told apart by its author.
    """
    kept = without_empty_posts([item for item in items if item.type in types or type(item) is Post])
    return kept if "image" in types else _without_images(kept)


def without_empty_posts(items: Sequence[Item]) -> Items:
    """Return items without the marks of posts that nothing follows, and without the rules beside marks."""
    kept: list[Item] = []
    for item in items:
        while type(item) is Post and kept and type(kept[-1]) in (Post, ThematicBreak):
            kept.pop()
        if not (type(item) is ThematicBreak and kept and type(kept[-1]) is Post):
            kept.append(item)
    while kept and type(kept[-1]) is Post:
        kept.pop()
    return tuple(kept)


_HELD = ("runs", "items", "notes", "rows")
"""Fields with the parts of a part, which has one of them at most."""


def _without_images(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Remove the images in parts of a content list, and the parts that hold nothing else, except cells of a table."""
    kept: list[Any] = []
    for part in parts:
        name = next((name for name in _HELD if hasattr(part, name)), None)
        if type(part) is tuple:  # a row
            kept.append(_without_images(part))
        elif name:
            left = _without_images(getattr(part, name))
            if left or type(part) is Cell or any(getattr(part, "terms", ())):
                kept.append(replace(part, **{name: left}))
        elif type(part) is not Image:
            kept.append(part)
    return tuple(kept)


def without_open_end(tex: str) -> str:
    """Return LaTeX without a backslash, or an escaped space, at its end."""
    tex = tex.strip()
    end = len(tex)
    while True:
        start = end
        while start and tex[start - 1] == "\\":
            start -= 1
        if (end - start) % 2 == 0:
            return tex[:end]
        end -= 1
        while end and tex[end - 1].isspace():
            end -= 1


def trimmed(runs: Runs, ends: Sequence[int] = (0, -1)) -> Runs:
    """Remove line breaks, white space, and wrappers that hold nothing else, from the ends of runs."""
    pieces = list(runs)
    for end in ends:
        while pieces:
            run = pieces[end]
            held: object = type(run) is not LineBreak
            if type(run) is Text:
                held = run.text.rstrip() if end else run.text.lstrip()
                run = Text(held)
            elif isinstance(run, (Link, Emphasis, Strong, Deleted)):
                held = trimmed(run.runs, (end,))
                run = replace(run, runs=held)
            if held:
                pieces[end] = run
                break
            pieces.pop(end)
    return tuple(pieces)


# ---------------------------------------------------------------------- text
def plain_text(items: Sequence[Item]) -> str:
    """Return the text of items, each on one or more lines.

    Formulas are written as LaTeX and table rows as lines. Alternative texts of images are left out.
    """
    lines: list[str] = []
    for item in items:
        _add(item, lines)
    return "\n".join(lines)


def line_text(runs: Sequence[Run]) -> str:
    """Return the text of runs."""
    if len(runs) == 1:
        return _RUNS[type(runs[0])](runs[0])
    return "".join([_RUNS[type(run)](run) for run in runs])


def _add(item: Item, lines: list[str]) -> None:
    if isinstance(item, CodeBlock):
        lines.append(item.text)
    elif isinstance(item, Formula):
        lines.append(item.latex)
    elif isinstance(item, Table):
        lines += [line_text(item.caption)] if item.caption else []
        rows = ([plain_text(cell.items) for cell in row if cell.items] for row in item.rows)
        lines += [" ".join(cells) for cells in rows if cells]
    elif isinstance(item, Post):
        lines += [""] if lines else []
    elif isinstance(item, (Paragraph, Title)):
        text = line_text(item.runs)
        lines += [text] if text else []
    else:
        for inner in inside(item):
            _add(inner, lines)


_RUNS: dict[type, Callable[[Any], str]] = {
    Text: lambda run: run.text,
    Code: lambda run: run.text,
    Formula: lambda run: run.latex,
    **dict.fromkeys((Link, Emphasis, Strong, Deleted, Sub, Sup), lambda run: line_text(run.runs)),
    Ruby: lambda run: f"{line_text(run.runs)}({run.reading})",
    LineBreak: lambda _: "\n",
    FootnoteMark: lambda run: f"[{run.label}]",
    Image: lambda _: "",
}
