"""Split the content list into chunks for search: passages that follow the headings, with their position on the page.

A section that is short enough becomes one chunk. Adjacent small sections share a chunk. Code, tables and lists are only
cut if a single one exceeds the chunk size (:mod:`~scrapy_dripper.output.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias
from urllib.parse import quote, urldefrag

from scrapy_dripper.output.cuts import cut, last_sentences
from scrapy_dripper.output.items import Footnotes, Item, Items, Paragraph, Rule, Title
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.text import is_longer, line_text

Measure: TypeAlias = "Callable[[str], int]"
"""Returns the length of a text: ``len``, or a token counter from :func:`~scrapy_dripper.output.tokens.counter`."""

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
    overlap: int = 0
    """Characters at the beginning of ``markdown`` that repeat the end of the previous chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class _Heading:
    level: int
    text: str
    anchor: str


@dataclass(slots=True)
class _Section:
    path: tuple[_Heading, ...]
    items: list[Item]


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
    """Return the sections of a content list, each with its path of headings."""
    sections = [_Section((), [])]
    path: tuple[_Heading, ...] = ()
    for item in items:
        if type(item) is Title:
            text = " ".join(line_text(item.runs).split())
            text = text if len(text) <= MOST_HEADING else text[: MOST_HEADING - 1] + "…"
            above = tuple(heading for heading in path if heading.level < item.level)
            path = (*above, _Heading(item.level, text, item.anchor))
            sections.append(_Section(path, [item]))
        elif type(item) is Footnotes and path:  # footnotes belong to the page, not to its last section
            sections += [_Section(path[:1] if path[0].level == 1 else (), [item]), _Section(path, [])]
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
        self._paths: list[tuple[_Heading, ...]] = []
        """The paths of the sections in the open chunk."""
        self._has_tail = True
        """False if the open chunk ends with a part of an item that was cut, unless that is a paragraph."""

    def add(self, section: _Section) -> None:
        """Add a section to the open chunk if it belongs there and fits as a whole, or to a new one otherwise."""
        pieces = [(item, self._length_of((item,))) for item in section.items]
        pieces = [(item, length) for item, length in pieces if length]
        together = sum(length for _, length in pieces) + self._between * (len(pieces) - 1)
        if not pieces:
            return
        if self._items and not (self._goes_on(section) and (self._fits(together) or self._has_only_titles())):
            self.close()
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
            self.chunks.append(Chunk(written, headings, anchor, url, self._measure(written), repeated))
        self._items, self._length, self._paths, self._repeated = [], 0, [], ()

    # ------------------------------------------------------------------ paths
    def _begin(self) -> tuple[_Heading, ...]:
        """Return the path of the first section with a heading in the chunk."""
        return next(filter(None, self._paths), ())

    def _path(self) -> tuple[_Heading, ...]:
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

    def _fits_in(self, items: Items, size: int) -> bool:
        """Return True if items are not longer than a size. What is nested deep would be written once for each level."""
        if self._measure is len and is_longer(items, size):
            return False
        return self._length_of(items) <= size

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
        for number, part in enumerate(cut(item, lambda some, share: self._fits_in(some, room // share))):
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
        return bool(self._items) and all(type(one) is Title for one in self._items)

    def _append(self, items: Items, length: int) -> None:
        self._length += length + (self._between if self._items else 0)
        self._items += items
        self._has_tail = True

    def _tail(self) -> Items:
        """Return the end of the open chunk that is repeated in the next one."""
        tail: list[Item] = []
        left = self._overlap
        for item in reversed(self._items[len(self._repeated) :]):
            if type(item) is Title or not self._has_tail:
                break
            length = self._length_of((item,))
            if length > left:
                if type(item) is Paragraph:
                    tail += last_sentences(item, lambda some, _, left=left: self._length_of(some) <= left)  # type: ignore[misc]
                break
            tail.append(item)
            left -= length + self._between
        return tuple(reversed(tail))


_FRAGMENT = "!$&'()*+,;=:@/?-._~"
"""Characters that need no escaping in a fragment, besides letters and digits (RFC 3986, 3.5)."""


def joined(some: Sequence[Chunk]) -> str:
    """Join the Markdown of chunks to a document, without the overlaps."""
    return _BETWEEN.join(chunk.markdown[chunk.overlap :].lstrip("\n") for chunk in some)
