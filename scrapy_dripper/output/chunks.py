"""Split the content list into chunks for search: passages that follow the headings, with their position on the page.

A section that is short enough becomes one chunk. Adjacent small sections share a chunk. Items are only cut if a single
one exceeds the chunk size: paragraphs between sentences, code between lines, tables between rows, and lists between
their entries. Each part is a complete item: code has its own fence, a table repeats its header, and a list continues
its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, takewhile
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urldefrag

from scrapy_dripper.config import ConfigError
from scrapy_dripper.output.items import (
    Audio,
    Card,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Rule,
    Run,
    Runs,
    Strong,
    Table,
    Text,
    Title,
    Video,
    assert_never,
)
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.reader import trimmed
from scrapy_dripper.output.text import line_text

T = TypeVar("T")
Fits: TypeAlias = "Callable[[Items], bool]"

_WRAPPERS = (Link, Emphasis, Strong, Deleted)
# Zero-width matches after the end of a sentence. The space before the next sentence belongs to that sentence.
_sentences = re.compile(
    r"(?<=[.!?…])(?=\s)|(?<=[.!?…][\"'”’)\]])(?=\s)|(?<=[。！？｡])(?![。！？｡」』”’）])|(?<=[。！？｡][」』”’）])"
).split
_words = re.compile(r"(?<=\S)(?=\s)").split
# For scripts without spaces, such as Thai. Combining characters stay with their base character.
_characters = re.compile(r"(?s).{1,8}[\u0300-\u036f\u093a-\u094f\u0e31-\u0e4e\u200d\ufe0f]*").findall
_LEVELS: tuple[Callable[[str], list[str]], ...] = (_sentences, _words, _characters)


def cut(item: Item, fits: Fits) -> list[Items]:
    """Cut an item into parts that are as long as fits, and return them in order, each as items.

    An item that cannot be cut is returned as its only part: a formula, a line of code, a row of a table. The header of
    a table is repeated in every part, unless it takes more than half of the space. Everything else occurs in one part
    only.
    """
    if fits((item,)):
        return [(item,)]
    match item:
        case Paragraph():
            return [(Paragraph(runs),) for runs in _cut_runs(item.runs, fits, 0)]
        case CodeBlock():
            return _packed(item.text.split("\n"), lambda some, _: replace(item, text="\n".join(some)), fits)
        case Table():
            return _cut_table(item, fits)
        case List():
            return _cut_list(item, fits)
        case Quote():
            parts = _cut_items(item.items, lambda some: replace(item, items=some), fits)
            first, *others = parts or [()]
            return [(replace(item, items=first),), *((replace(item, items=part, caption=()),) for part in others)]
        case Footnotes():
            return _packed(item.notes, lambda some, _: Footnotes(tuple(some)), fits)
        case Title() | Formula() | Image() | Video() | Audio() | Rule() | Post() | Card():
            return [(item,)]
        case _:
            return assert_never(item)


def last_sentences(paragraph: Paragraph, fits: Fits) -> Items:
    """Return as many whole sentences from the end of a paragraph as fit, or nothing if not even one does."""
    pieces = _units(paragraph.runs, 0)
    none, some = len(pieces), 0  # binary search for the first sentence that fits
    while some < none:
        middle = (some + none) // 2
        if fits((Paragraph(_joined(pieces[middle:])),)):
            none = middle
        else:
            some = middle + 1
    runs = _joined(pieces[none:])
    return (Paragraph(runs),) if runs else ()


def _groups(units: Sequence[T], fit: Callable[[Sequence[T]], bool]) -> list[Sequence[T]]:
    """Group units, with as many in each group as fit. Units that do not fit are in a group of their own.

    ``fit`` is called with at most twice as many units as the group gets, so n units take n log n steps in total.
    """
    groups: list[Sequence[T]] = []
    start = 0
    while start < len(units):
        step = 1
        while start + step < len(units) and fit(units[start : start + 2 * step]):
            step *= 2
        most = min(start + 2 * step, len(units))
        end = start + step
        while most - end > 1:
            middle = (end + most) // 2
            if fit(units[start:middle]):
                end = middle
            else:
                most = middle
        groups.append(units[start:end])
        start = end
    return groups


def _packed(units: Sequence[T], make: Callable[[Sequence[T], bool], Item], fits: Fits) -> list[Items]:
    """Return the items made from groups of units. The second argument of ``make`` is True for the first group.

    A list entry or a footnote that does not fit is cut. Its first part keeps the mark; the others are its content.
    """
    parts: list[Items] = []
    for group in _groups(units, lambda some: fits((make(some, True),))):
        made = make(group, not parts)
        name = {List: "items", Footnotes: "notes"}.get(type(made), "")
        if not name or len(group) > 1 or fits((made,)):
            parts.append((made,))
            continue
        (entry,) = getattr(made, name)

        def wrap(some: Items, made: Any = made, name: str = name, entry: Any = entry) -> Item:
            wrapped: Item = replace(made, **{name: (replace(entry, items=some),)})
            return wrapped

        first, *others = _cut_items(entry.items, wrap, fits) or [()]
        parts += [(wrap(first),), *others]
    return parts


# ---------------------------------------------------------------------- lines of text
def _cut_runs(runs: Runs, fits: Fits, level: int) -> Iterator[Runs]:
    def fit(units: Sequence[list[Run]]) -> bool:
        return fits((Paragraph(_joined(units)),))

    for group in _groups(_units(runs, level), fit):
        joined = _joined(group)
        if len(group) == 1 and level + 1 < len(_LEVELS) and not fit(group):
            yield from _cut_runs(joined, fits, level + 1)
        elif joined:
            yield joined


def _units(runs: Runs, level: int) -> list[list[Run]]:
    """Split runs into sentences, words or characters. Each part keeps its formats and links."""
    units: list[list[Run]] = []
    anywhere = level + 1 == len(_LEVELS)
    for run, begins in _fragments(runs, _LEVELS[level]):
        if begins or anywhere or not units:
            units.append([run])
        else:
            units[-1].append(run)
    return units


def _fragments(runs: Runs, split: Callable[[str], list[str]]) -> Iterator[tuple[Run, bool]]:
    """Yield the parts of runs, and whether the text was split before each part."""
    for run in runs:
        if type(run) is Text:
            yield from ((Text(text), number > 0) for number, text in enumerate(split(run.text)))
        elif type(run) is Code and split is _words:  # inline code may be a log with thousands of characters
            yield from ((Code(text), number > 0) for number, text in enumerate(split(run.text)))
        elif isinstance(run, _WRAPPERS):
            yield from ((replace(run, runs=(inner,)), begins) for inner, begins in _fragments(run.runs, split))
        else:
            yield run, type(run) is LineBreak


def _joined(units: Sequence[Sequence[Run]]) -> Runs:
    """Merge fragments to runs, without white space at both ends."""
    return _trimmed(_merged(list(chain.from_iterable(units))))


def _merged(pieces: Sequence[Run]) -> Runs:
    runs: list[Run] = []
    for _, group in groupby(pieces, _format):
        first, *others = group
        if isinstance(first, (Text, Code)):
            runs.append(replace(first, text="".join([first.text, *(one.text for one in others)])))  # type: ignore[union-attr]
        elif isinstance(first, _WRAPPERS):
            inner = chain(first.runs, *(one.runs for one in others))  # type: ignore[union-attr]
            runs.append(replace(first, runs=_merged(tuple(inner))))
        else:
            runs += [first, *others]
    return tuple(runs)


def _format(run: Run) -> Any:
    """Return a key that is equal for all runs of the same format."""
    return replace(run, runs=()) if isinstance(run, _WRAPPERS) else type(run)


def _trimmed(runs: Runs) -> Runs:
    runs = trimmed(runs)
    for end in (0, -1):
        outer = runs[end] if runs else None
        if isinstance(outer, _WRAPPERS):
            inner = replace(outer, runs=_trimmed(outer.runs))
            runs = (inner, *runs[1:]) if end == 0 else (*runs[:-1], inner)
    return runs


# ---------------------------------------------------------------------- containers
def _cut_items(items: Items, wrap: Callable[[Items], Item], fits: Fits) -> list[Items]:
    """Return groups of items that fit once they are wrapped. Cut items that do not fit."""

    def inside(some: Sequence[Item]) -> bool:
        return fits((wrap(tuple(some)),))

    parts: list[Items] = []
    for group in _groups(items, inside):
        parts += cut(group[0], inside) if len(group) == 1 else [tuple(group)]
    return parts


def _cut_list(item: List, fits: Fits) -> list[Items]:
    numbers: list[int] = []
    for entry in item.items:
        numbers.append(entry.number if entry.number is not None else numbers[-1] + 1 if numbers else item.start)

    def make(some: Sequence[tuple[ListItem, int]], _first: bool) -> List:
        entries = (replace(some[0][0], number=None), *(entry for entry, _ in some[1:]))
        return replace(item, items=entries, start=some[0][1] if item.kind == "ordered" else item.start)

    return _packed(list(zip(item.items, numbers, strict=True)), make, fits)


def _cut_table(table: Table, fits: Fits) -> list[Items]:
    head, body = table.rows[: table.header_rows], table.rows[table.header_rows :]
    # A header that takes most of the space is not repeated; its rows are treated like the others.
    repeated = bool(head) and fits((_with_rows(table, head + head, len(head), False),))
    rows = body if repeated else table.rows
    units: list[list[tuple[Any, ...]]] = []
    spanned = 0  # number of rows that a cell above spans
    for row in rows:
        if spanned > 0:
            units[-1].append(row)
        else:
            units.append([row])
        spanned = max(spanned - 1, max((cell.rowspan for cell in row), default=1) - 1)

    def make(some: Sequence[list[tuple[Any, ...]]], first: bool) -> Table:
        inside = tuple(chain.from_iterable(some))
        if repeated:
            return _with_rows(table, (*head, *inside), len(head), first)
        return _with_rows(table, inside, table.header_rows if first and len(inside) > len(head) else 0, first)

    return _packed(units, make, fits) if units else [(table,)]


def _with_rows(table: Table, rows: tuple[Any, ...], header_rows: int, first: bool) -> Table:
    return replace(table, rows=rows, header_rows=header_rows, caption=table.caption if first else ())


Measure: TypeAlias = "Callable[[str], int]"
"""Returns the length of a text: ``len``, or a token counter from :func:`counter`."""

MOST_HEADING = 300
"""Maximum length of a heading in a path of headings, in characters. Longer ones end in an ellipsis."""
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of the main content."""

    markdown: str
    """The passage, including its headings."""
    headings: tuple[str, ...] = ()
    """The path of headings above the whole passage, from the top down."""
    anchor: str = ""
    """The id of its heading, or of the nearest heading above that has one; empty if none has."""
    url: str = ""
    """The page's URL, with the anchor if there is one."""
    size: int = 0
    """Length of the passage, in the configured unit: characters or tokens."""
    author: str = ""
    """The author of the post that the passage is of; empty if it is of no post, or the author is not known."""
    date: str = ""
    """The date of that post, in ISO 8601; empty if it is not known."""
    overlap: int = 0
    """Characters at the beginning of ``markdown`` that repeat the end of the previous chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class _SectionHeading:
    level: int
    text: str
    anchor: str


@dataclass(slots=True)
class _Section:
    path: tuple[_SectionHeading, ...]
    items: list[Item]
    post: Post


def chunks(
    items: Items,
    url: str = "",
    *,
    size: int = 2_000,
    overlap: int = 0,
    measure: Measure = len,
    write: Callable[[Items], str] = markdown,
) -> tuple[Chunk, ...]:
    """Return the chunks of a content list, in order. Together they hold all of its content.

    ``size`` is the maximum length of a chunk, as counted by ``measure``. Only something that cannot be cut may exceed
    it: a formula, a line of code, a row of a table. ``overlap`` is how much of the end of a chunk is repeated in the
    next one if a section continues there, in whole sentences or items. It is limited to half of ``size``. ``write``
    returns the Markdown of items.
    """
    packer = _Packer(url, size, min(overlap, size // 2), measure, write)
    for section in _sections(items):
        packer.add(section)
    packer.close()
    return tuple(packer.chunks)


def _sections(items: Items) -> list[_Section]:
    """Return the sections of a content list, each with its path of headings. A post begins a section.

    Headings in a post are not above the posts after it, except the title of a thread that its first post begins with.
    """
    post = Post()
    sections = [_Section((), [], post)]
    path: tuple[_SectionHeading, ...] = ()
    around = path
    for item in items:
        if type(item) is Post:
            around = path if not post.number else around
            post, path = item, around
            sections.append(_Section(path, [item], post))
        elif type(item) is Title:
            text = " ".join(line_text(item.runs).split())
            text = text if len(text) <= MOST_HEADING else text[: MOST_HEADING - 1] + "…"
            above = tuple(heading for heading in path if heading.level < item.level)
            path = (*above, _SectionHeading(item.level, text, item.anchor))
            if post.number == 1 and item.level == 1 and sections[-1].items == [post] and not around:
                around = path
            sections.append(_Section(path, [item], post))
        elif type(item) is Footnotes and path:  # footnotes belong to the page, not to its last section
            sections += [_Section(path[:1] if path[0].level == 1 else (), [item], post), _Section(path, [], post)]
        else:
            sections[-1].items.append(item)
    return [section for section in sections if section.items]


class _Packer:
    """Fills chunks, one at a time."""

    def __init__(self, url: str, size: int, overlap: int, measure: Measure, write: Callable[[Items], str]) -> None:
        self.chunks: list[Chunk] = []
        self._url, self._size, self._overlap = urldefrag(url).url, size, overlap
        self._measure, self._write = measure, write
        self._between = measure(_BETWEEN)
        self._items: list[Item] = []
        self._length = 0
        self._repeated: Items = ()
        self._post = Post()
        self._paths: list[tuple[_SectionHeading, ...]] = []
        """The paths of the sections in the open chunk."""
        self._has_tail = True
        """False if the open chunk ends with a part of an item that was cut, unless that is a paragraph."""

    def add(self, section: _Section) -> None:
        """Add a section to the open chunk if it belongs there and fits as a whole, or to a new one otherwise."""
        pieces = [(item, self._length_of((item,))) for item in section.items]
        pieces = [(item, length) for item, length in pieces if length or type(item) is Post]
        together = sum(length for _, length in pieces) + self._between * (len(pieces) - 1)
        if not pieces:
            return
        goes_on = self._goes_on(section) and (self._fits(together) or self._has_only_titles())
        is_above = not self._post.number and self._has_only_titles()  # the headings of a thread go with its first post
        if self._items and not (goes_on and (self._post == section.post or is_above)):
            self.close()
        self._post = section.post
        if len(pieces) > 1 or type(pieces[0][0]) is not Post:  # a mark has no heading of its own
            self._paths.append(section.path)
        for item, length in pieces:
            self._place(item, length, section)

    def close(self) -> None:
        """End the open chunk, if there is one."""
        # A rule at the start or end of a chunk is useless.
        items = self._items
        while items and type(items[-1]) is Rule:
            items.pop()
        written = self._write(tuple(items))
        if written:
            path = self._path()
            anchor = next((heading.anchor for heading in reversed(self._begin()) if heading.anchor), "")
            url = f"{self._url}#{quote(anchor, safe=_FRAGMENT)}" if anchor and self._url else self._url
            headings = tuple(heading.text for heading in path)
            repeated = len(self._write(self._repeated)) if self._repeated else 0
            self.chunks.append(
                Chunk(
                    written, headings, anchor, url, self._measure(written), self._post.author, self._post.date, repeated
                )
            )
        self._items, self._length, self._paths, self._repeated = [], 0, [], ()

    # ------------------------------------------------------------------ paths
    def _begin(self) -> tuple[_SectionHeading, ...]:
        """Return the path of the first section with a heading in the chunk."""
        return next(filter(None, self._paths), ())

    def _path(self) -> tuple[_SectionHeading, ...]:
        """Return the headings that all sections of the chunk share."""
        paths = [path for path in self._paths if path]
        shared = takewhile(lambda same: all(one is same[0] for one in same), zip(*paths, strict=False))
        return tuple(same[0] for same in shared)

    def _goes_on(self, section: _Section) -> bool:
        """Return True if a section may share the open chunk: if it is below the chunk's first section, or next to it.

        A chunk that does not begin with its heading only takes sections below it, because only its path names it.
        """
        begin = self._begin()
        if not begin:
            return True
        if type(self._items[0]) is Title or not self._paths[0]:
            return bool(section.path) and section.path[-1].level >= begin[-1].level
        return section.path[: len(begin)] == begin

    # ------------------------------------------------------------------ sizes
    def _length_of(self, items: Items) -> int:
        return self._measure(self._write(items))

    def _fits(self, length: int) -> bool:
        return (self._length + self._between if self._items else 0) + length <= self._size

    def _place(self, item: Item, length: int, section: _Section) -> None:
        if not self._items and type(item) is Rule:
            return
        if self._fits(length):
            self._append((item,), length)
            return
        taken = self._length + self._between if self._has_only_titles() else 0
        # A heading stays with the text below it, even if that must be cut. Other items are not cut for a heading.
        if length <= self._size and not (taken and type(item) is Paragraph):
            self._begin_if_full(length, section)
            self._append((item,), length)
            return
        if self._overlap and type(item) is Paragraph:
            taken = max(taken, self._overlap + self._between)
        room = max(self._size - taken, self._size // 4)
        for number, part in enumerate(cut(item, lambda some: self._length_of(some) <= room)):
            length = self._length_of(part)
            self._begin_if_full(length, section, number > 0)
            self._append(part, length)
            self._has_tail = type(item) is Paragraph

    def _begin_if_full(self, length: int, section: _Section, full: bool = False) -> None:
        """Begin a new chunk with the overlap from the open one, unless ``length`` more fits into the open one."""
        if not self._items or (not full and self._fits(length)):
            return
        tail = self._tail() if self._overlap else ()
        self.close()
        self._paths = [section.path]
        repeated = self._length_of(tail) if tail else 0
        if repeated and repeated + self._between + length <= self._size:
            self._append(tail, repeated)
            self._repeated = tail

    def _has_only_titles(self) -> bool:
        return bool(self._items) and all(type(one) in (Title, Post) for one in self._items)

    def _append(self, items: Items, length: int) -> None:
        self._length += length + (self._between if self._items else 0)
        self._items += items
        self._has_tail = True

    def _tail(self) -> Items:
        """Return the end of the open chunk that is repeated in the next one."""
        tail: list[Item] = []
        left = self._overlap
        for item in reversed(self._items[len(self._repeated) :]):
            if type(item) in (Title, Post) or not self._has_tail:
                break
            length = self._length_of((item,))
            if length > left:
                if type(item) is Paragraph:
                    tail += last_sentences(item, lambda some, left=left: self._length_of(some) <= left)  # type: ignore[misc]
                break
            tail.append(item)
            left -= length + self._between
        return tuple(reversed(tail))


_FRAGMENT = "!$&'()*+,;=:@/?-._~"
"""Characters that need no escaping in a fragment, besides letters and digits (RFC 3986, 3.5)."""


def joined(some: Sequence[Chunk]) -> str:
    """Join the Markdown of chunks to a document, without the overlaps."""
    return _BETWEEN.join(chunk.markdown[chunk.overlap :].lstrip("\n") for chunk in some)


# ---------------------------------------------------------------------- tokens
_TOKENIZER = 'DRIPPER_CHUNKS["tokenizer"]'


@lru_cache(maxsize=4)
def counter(path: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, without the special tokens around it.

    ``path`` is a ``tokenizer.json``, as found in models on the Hugging Face hub, or a folder with one. Raise
    :exc:`~scrapy_dripper.config.ConfigError` if it cannot be read.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError(f"{_TOKENIZER} needs tokenizers: pip install 'scrapy-dripper[tokenizers]'") from None

    file = Path(path)
    file = file / "tokenizer.json" if file.is_dir() else file
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ConfigError(
            f"{_TOKENIZER} must be the path of a tokenizer.json, or of a folder with one (got {path!r}, "
            f"which cannot be read: {error})"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
