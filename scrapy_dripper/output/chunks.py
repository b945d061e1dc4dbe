"""The content list in chunks for search: passages along the headings, each with its place in the page.

A section that is short enough is one chunk; small sections next to each other share one. Code, tables and lists are cut
only if one alone is over the size (:mod:`~scrapy_dripper.output.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias
from urllib.parse import quote, urldefrag

from scrapy_dripper.output.bounds import UNBOUNDED, Allowance
from scrapy_dripper.output.cuts import cut, last_sentences
from scrapy_dripper.output.items import Footnotes, Item, Items, Paragraph, Rule, Title
from scrapy_dripper.output.markdown import Callouts, ComplexTables, markdown
from scrapy_dripper.output.markdown_inline import Links
from scrapy_dripper.output.text import line_text

Measure: TypeAlias = "Callable[[str], int]"
"""How long a text is: ``len``, or a count of tokens such as :func:`~scrapy_dripper.output.tokens.counter` returns."""

MOST_HEADING = 300
"""Characters of a heading in a path of headings; longer ones end in an ellipsis."""
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of the main content."""

    markdown: str
    """The passage, with the headings that stand in it."""
    headings: tuple[str, ...] = ()
    """The headings that all of it stands under, from the top down."""
    anchor: str = ""
    """The id of its heading, or of the nearest one above that has one; empty if none has."""
    url: str = ""
    """The page's URL, with the anchor if there is one."""
    size: int = 0
    """Its length, in characters or tokens as was asked for."""
    overlap: int = 0
    """Characters at the beginning of ``markdown`` that the chunk before ends with."""


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
    links: Links = "keep",
    complex_tables: ComplexTables = "html",
    callouts: Callouts = "alerts",
    most: int = UNBOUNDED,
) -> tuple[Chunk, ...]:
    """Return the chunks of a content list, in order; together they hold all of it.

    A chunk has a ``size`` of at most so much as ``measure`` counts, unless it is one thing that cannot be cut: a
    formula, a line of code, a row of a table. ``overlap`` is how much of the end of a chunk stands again at the
    beginning of the next one, in whole sentences or items, where a section goes on; at most half of the size counts.
    The others are options of :func:`~scrapy_dripper.output.markdown.markdown`. Raise
    :exc:`~scrapy_dripper.output.bounds.TooLongError` if all chunks together have more than ``most`` characters.
    """

    def write(some: Items) -> str:
        return markdown(some, links, complex_tables, callouts)

    packer = _Packer(url, size, min(overlap, size // 2), measure, write, Allowance("chunks", most))
    for section in _sections(items):
        packer.add(section)
    packer.close()
    return tuple(packer.chunks)


def _sections(items: Items) -> list[_Section]:
    """Return the items between headings, each with the headings above."""
    sections = [_Section((), [])]
    path: tuple[_Heading, ...] = ()
    for item in items:
        if type(item) is Title:
            text = " ".join(line_text(item.runs).split())
            text = text if len(text) <= MOST_HEADING else text[: MOST_HEADING - 1] + "…"
            above = tuple(heading for heading in path if heading.level < item.level)
            path = (*above, _Heading(item.level, text, item.anchor))
            sections.append(_Section(path, [item]))
        elif type(item) is Footnotes and path:  # they are those of the page, not of its last section
            sections += [_Section(path[:1] if path[0].level == 1 else (), [item]), _Section(path, [])]
        else:
            sections[-1].items.append(item)
    return [section for section in sections if section.items]


class _Packer:
    """Fills chunks, one open at a time."""

    def __init__(
        self,
        url: str,
        size: int,
        overlap: int,
        measure: Measure,
        write: Callable[[Items], str],
        allowance: Allowance,
    ) -> None:
        self.chunks: list[Chunk] = []
        self._url, self._size, self._overlap = urldefrag(url).url, size, overlap
        self._measure, self._write, self._allowance = measure, write, allowance
        self._between = measure(_BETWEEN)
        self._items: list[Item] = []
        self._length = 0
        self._repeated: Items = ()
        self._paths: list[tuple[_Heading, ...]] = []
        """Of the sections in the open chunk."""
        self._has_tail = True
        """False if the open chunk ends in a part of what was cut, other than a paragraph."""

    def add(self, section: _Section) -> None:
        """Add a section: to the open chunk if all of it fits and belongs there, or to one of its own."""
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
        # A rule that stands first or last divides nothing.
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
            self._allowance.spend(len(written) + len(url) + len(anchor) + sum(map(len, headings)))
            self.chunks.append(Chunk(written, headings, anchor, url, self._measure(written), repeated))
        self._items, self._length, self._paths, self._repeated = [], 0, [], ()

    # ------------------------------------------------------------------ where things belong
    def _begin(self) -> tuple[_Heading, ...]:
        """Return the path of the first section in the chunk that has a heading."""
        return next(filter(None, self._paths), ())

    def _path(self) -> tuple[_Heading, ...]:
        """Return the headings that all sections of the chunk have."""
        paths = [path for path in self._paths if path]
        shared = takewhile(lambda same: all(one is same[0] for one in same), zip(*paths, strict=False))
        return tuple(same[0] for same in shared)

    def _goes_on(self, section: _Section) -> bool:
        """Return True if a section may share the open chunk: it lies in the one that begins there, or beside it.

        A chunk that does not begin with its heading takes nothing from beside it: its path is all that names it.
        """
        begin = self._begin()
        if not begin:
            return True
        if type(self._items[0]) is Title or not self._paths[0]:
            return bool(section.path) and section.path[-1].level >= begin[-1].level
        return section.path[: len(begin)] == begin

    # ------------------------------------------------------------------ what fits
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
        # A heading goes with the text below it, even if that has to be cut; it is no reason to cut anything else.
        if length <= self._size and not (taken and type(item) is Paragraph):
            self._begin_if_full(length, section)
            self._append((item,), length)
            return
        if self._overlap and type(item) is Paragraph:
            taken = max(taken, self._overlap + self._between)
        room = max(self._size - taken, self._size // 4)
        for number, part in enumerate(cut(item, lambda some, share: share * self._length_of(some) <= room)):
            length = self._length_of(part)
            self._begin_if_full(length, section, number > 0)
            self._append(part, length)
            self._has_tail = type(item) is Paragraph

    def _begin_if_full(self, length: int, section: _Section, full: bool = False) -> None:
        """Begin a chunk with the end of the one before, unless the open one has room for so much more."""
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
        """Return the end of the open chunk that is to stand in the next one again."""
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
"""What may stand in a fragment as it is, beside letters and digits (RFC 3986, 3.5)."""


def joined(some: Sequence[Chunk]) -> str:
    """Return the Markdown of chunks as one document, what they repeat once."""
    return _BETWEEN.join(chunk.markdown[chunk.overlap :].lstrip("\n") for chunk in some)
