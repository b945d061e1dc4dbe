"""Split the content list into chunks for search: passages that follow the headings, with their position on the page.

A section that is short enough becomes one chunk. Adjacent small sections share a chunk. Items are only cut if a single
one exceeds the chunk size: paragraphs between sentences, code between lines, tables between rows, and lists between
their entries. Each part is a complete item: code has its own fence, a table repeats its header, and a list continues
its numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby, takewhile
from operator import is_
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urldefrag

from scrapy_dripper.config import ConfigError
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.nodes import SHORT
from scrapy_dripper.structures.items import (
    Cell,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    Footnotes,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Run,
    Runs,
    Strong,
    Table,
    Text,
    ThematicBreak,
    Title,
    line_text,
    trimmed,
)

Fits: TypeAlias = "Callable[[Items], bool]"

_WRAPPERS = (Link, Emphasis, Strong, Deleted)
# Zero-width matches after the end of a sentence. The space before the next sentence belongs to that sentence.
_sentences = re.compile(
    r"(?<=[.!?…])(?=\s)|(?<=[.!?…][\"'”’)\]])(?=\s)|(?<=[。！？｡])(?![。！？｡」』”’）])|(?<=[。！？｡][」』”’）])"
).split
_words = re.compile(r"(?<=\S)(?=\s)").split
# For scripts without spaces, such as Thai. Combining characters stay with their base character.
_characters = re.compile(r"(?s).{1,8}[\u0300-\u036f\u093a-\u094f\u0e31-\u0e4e\u200d\ufe0f]*").findall


def split_item(item: Item, fits: Fits) -> list[Items]:
    """Cut an item into parts that are as long as fits, and return them in order, each as items.

    An item that cannot be cut is returned as its only part: a formula, a line of code, a row of a table. The header of
    a table is repeated in every part, unless it takes more than half of the space. Everything else occurs in one part
    only. Calls are nested as deep as items and formats are, and a few more, however long the text is.
    """
    if fits((item,)):
        return [(item,)]
    units, make = _units_of(item, fits)
    if len(units) < 2:
        return [(item,)]
    parts: list[Items] = []
    for group in _groups(units, lambda some: fits(make(some))):
        made = make(group)
        is_smaller = len(group) == len(made) == 1 and made[0] != item
        parts += split_item(made[0], fits) if is_smaller else [made] if made else []
    return parts


_Units: TypeAlias = "tuple[Sequence[Any], Callable[[Sequence[Any]], Items]]"
"""The smallest parts of an item, and a function that makes items of some adjacent ones."""


def _units_of(item: Item, fits: Fits) -> _Units:
    match item:
        case Paragraph():
            levels = (_units_of_line(item.runs, split) for split in (_sentences, _words, _characters))
            units = next((units for units in levels if len(units) > 1), [])
            return units, lambda some: tuple(map(Paragraph, filter(None, (_joined(some),))))
        case CodeBlock():
            lines = [[line] for line in item.text.split("\n")]
            return lines, lambda some: (replace(item, text="\n".join(chain.from_iterable(some))),)
        case Table():
            return _units_of_table(item, fits)
        case List(items=(entry,)):
            return _units_within(entry.items, lambda some: replace(item, items=(replace(entry, items=some),)), fits)
        case List():
            return _units_of_list(item)
        case Footnotes(notes=(note,)):
            return _units_within(note.items, lambda some: Footnotes((replace(note, items=some),)), fits)
        case Footnotes():
            return item.notes, lambda some: (Footnotes(tuple(some)),)
        case Quote():
            later = replace(item, caption=())
            return _units_within(
                item.items, lambda some: replace(item, items=some), fits, lambda some: (replace(later, items=some),)
            )
        case _:  # nothing within it could stand by itself
            return (), tuple


def _units_within(
    held: Items, first: Callable[[Items], Item], fits: Fits, later: Callable[[Items], Items] = tuple
) -> _Units:
    """Return the items that an item holds, or the parts of the only one.

    ``first`` puts the first ones back, and ``later`` the others: without it, they are the content of a list entry or a
    footnote whose mark is in the part before.
    """
    units, make = _units_of(held[0], fits) if len(held) == 1 else (held, tuple)

    def put_back(some: Sequence[Any]) -> Items:
        return (first(make(some)),) if some[0] is units[0] else later(make(some))

    return units, put_back


def _units_of_list(item: List) -> _Units:
    numbers = [item.start]
    for entry in item.items[1:]:
        numbers.append(numbers[-1] + 1 if entry.number is None else entry.number)

    def make(some: Sequence[tuple[ListItem, int]]) -> Items:
        entries = (replace(some[0][0], number=None), *(entry for entry, _ in some[1:]))
        return (replace(item, items=entries, start=some[0][1] if item.kind == "ordered" else item.start),)

    return list(zip(item.items, numbers, strict=True)), make


def _units_of_table(table: Table, fits: Fits) -> _Units:
    head = table.rows[: table.header_rows]
    # A header that takes most of the space is not repeated; its rows are treated like the others.
    repeated = head if head and fits((replace(table, rows=head + head, caption=()),)) else ()
    units: list[list[tuple[Cell, ...]]] = []
    spanned = 0  # number of rows that a cell above spans
    for row in table.rows[len(repeated) :]:
        if spanned > 0:
            units[-1].append(row)
        else:
            units.append([row])
        spanned = max(spanned - 1, max((cell.rowspan for cell in row), default=1) - 1)

    def make(some: Sequence[list[tuple[Cell, ...]]]) -> Items:
        rows = (*repeated, *chain.from_iterable(some))
        first = some[0] is units[0]
        has_head = bool(repeated) or (first and len(rows) > len(head))
        caption = table.caption if first else ()
        return (replace(table, rows=rows, header_rows=len(head) if has_head else 0, caption=caption),)

    return units, make


def _groups(units: Sequence[Any], fit: Callable[[Sequence[Any]], bool]) -> Iterator[Sequence[Any]]:
    """Yield groups of units, with as many in each as fit, and at least one.

    ``fit`` is called with at most twice as many units as the group gets, so n units take n log n steps in total.
    """
    start = 0
    while start < len(units):
        size = 1
        while start + size < len(units) and fit(units[start : start + 2 * size]):
            size *= 2
        more = range(size + 1, min(2 * size, len(units) - start))
        size += bisect_left(more, True, key=lambda n, start=start: not fit(units[start : start + n]))  # type: ignore[misc]
        yield units[start : start + size]
        start += size


# ---------------------------------------------------------------------- lines of text
def last_sentences(paragraph: Paragraph, fits: Fits) -> Items:
    """Return as many whole sentences from the end of a paragraph as fit, or nothing if not even one does."""
    units = _units_of_line(paragraph.runs, _sentences)
    first = bisect_left(range(len(units)), True, key=lambda n: fits((Paragraph(_joined(units[n:])),)))
    runs = _joined(units[first:])
    return (Paragraph(runs),) if runs else ()


def _units_of_line(runs: Runs, split: Callable[[str], list[str]]) -> list[list[Run]]:
    """Split runs into sentences, words or characters. Each part keeps its formats and links."""
    units: list[list[Run]] = [[]]
    for run, begins in _fragments(runs, split):
        if units[-1] and (begins or split is _characters):
            units.append([])
        if run is not None:
            units[-1].append(run)
    if not _joined(units[-1:]):
        units.pop()  # nothing is behind the end of the last sentence
    return units


def _fragments(runs: Runs, split: Callable[[str], list[str]]) -> Iterator[tuple[Run | None, bool]]:
    """Yield the parts of runs, None for those without text, and whether the text was split before each part."""
    for run in runs:
        if type(run) is Text or (type(run) is Code and split is _words):  # inline code may be a log of many words
            for number, text in enumerate(split(run.text)):
                yield replace(run, text=text) if text else None, number > 0
        elif isinstance(run, _WRAPPERS):
            for inner, begins in _fragments(run.runs, split):
                yield None if inner is None else replace(run, runs=(inner,)), begins
        else:
            yield run, type(run) is LineBreak


def _joined(units: Sequence[Sequence[Run]]) -> Runs:
    """Merge fragments to runs, without white space at both ends."""
    return trimmed(_merged(list(chain.from_iterable(units))))


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


# ---------------------------------------------------------------------- chunks
Measure: TypeAlias = "Callable[[str], int]"
"""Returns the length of a text: ``len``, or a token counter from :func:`counter`."""

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


@dataclass(slots=True)
class _Section:
    path: tuple[Title, ...]
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
    path: tuple[Title, ...] = ()
    around = path
    for item in items:
        if type(item) is Post:
            around = path if not post.number else around
            post, path = item, around
            sections.append(_Section(path, [item], post))
        elif type(item) is Title:
            path = (*(heading for heading in path if heading.level < item.level), item)
            if post.number == 1 and item.level == 1 and sections[-1].items == [post] and not around:
                around = path
            sections.append(_Section(path, [item], post))
        elif type(item) is Footnotes and path:  # footnotes belong to the page, not to its last section
            sections += [_Section(path[:1] if path[0].level == 1 else (), [item], post), _Section(path, [], post)]
        else:
            sections[-1].items.append(item)
    return [section for section in sections if section.items]


def _short(heading: Title) -> str:
    text = " ".join(line_text(heading.runs).split())
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


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
        self._paths: list[tuple[Title, ...]] = []
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
        while items and type(items[-1]) is ThematicBreak:
            items.pop()
        written = self._write(tuple(items))
        if written:
            paths = zip(*filter(None, self._paths), strict=False)
            shared = takewhile(lambda same: all(one is same[0] for one in same), paths)
            anchor = next((heading.anchor for heading in reversed(self._begin()) if heading.anchor), "")
            url = f"{self._url}#{quote(anchor, safe=_FRAGMENT)}" if anchor and self._url else self._url
            headings = tuple(_short(same[0]) for same in shared)
            repeated = len(self._write(self._repeated)) if self._repeated else 0
            self.chunks.append(
                Chunk(
                    written, headings, anchor, url, self._measure(written), self._post.author, self._post.date, repeated
                )
            )
        self._items, self._length, self._paths, self._repeated = [], 0, [], ()

    # ------------------------------------------------------------------ paths
    def _begin(self) -> tuple[Title, ...]:
        """Return the path of the first section with a heading in the chunk."""
        return next(filter(None, self._paths), ())

    def _goes_on(self, section: _Section) -> bool:
        """Return True if a section may share the open chunk: if it is below the chunk's first section, or next to it.

        A chunk that does not begin with its heading only takes sections below it, because only its path names it.
        """
        begin = self._begin()
        if not begin:
            return True
        if type(self._items[0]) is Title or not self._paths[0]:
            return bool(section.path) and section.path[-1].level >= begin[-1].level
        return len(section.path) >= len(begin) and all(map(is_, section.path, begin))

    # ------------------------------------------------------------------ sizes
    def _length_of(self, items: Items) -> int:
        return self._measure(self._write(items))

    def _fits(self, length: int) -> bool:
        return (self._length + self._between if self._items else 0) + length <= self._size

    def _place(self, item: Item, length: int, section: _Section) -> None:
        if not self._items and type(item) is ThematicBreak:
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
        for number, part in enumerate(split_item(item, lambda some: self._length_of(some) <= room)):
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
