"""Walk over a tree, and collect its items.

Tags are handled by functions from a table (:mod:`~scrapy_dripper.output.content_list`). Lists, quotes and figures put a
frame on a stack while they are open, so a tree can have any depth. Only tables are read recursively, up to a limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

from lxml import etree

from scrapy_dripper.declared.head import Notation
from scrapy_dripper.output.line import MAX_NESTING, Line, Separator
from scrapy_dripper.output.urls import comparable, resolver
from scrapy_dripper.page.nodes import ends_line
from scrapy_dripper.page.tags import LOOSE
from scrapy_dripper.structures.code import code_of_lines, with_code_lines
from scrapy_dripper.structures.footnotes import FootnoteMarks
from scrapy_dripper.structures.hidden import Tabs
from scrapy_dripper.structures.images import same_image
from scrapy_dripper.structures.items import (
    Box,
    Boxed,
    Code,
    Footnote,
    Formula,
    Image,
    Item,
    Items,
    LineBreak,
    Link,
    ListItem,
    Paragraph,
    Run,
    Runs,
    Strong,
    Text,
    Title,
    trimmed,
)


@dataclass(slots=True)
class OpenList:
    """A list that is being read."""

    kind: Literal["unordered", "ordered", "definition"]
    start: int = 1
    step: int = 1
    """What is added to the number from one entry to the next: -1 for a reversed list."""
    number: int | None = None
    """The number of the next entry, if entries have explicit numbers."""
    numeral: str | None = None
    """How entries are numbered, if not in decimal: the ``type`` of the ``<ol>``."""
    entries: list[ListItem] = field(default_factory=list)
    """The entries so far."""
    terms: list[Runs] = field(default_factory=list)
    """The terms since the last definition."""
    labels: dict[int, str] = field(default_factory=dict)
    """The labels of those entries that are footnotes."""
    checked: bool | None = None
    """Whether the task of the open entry is done; None if it is not a task."""


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


Leave: TypeAlias = "Callable[[], object] | None"
"""Called at the end of an element."""
Enter: TypeAlias = "Callable[[Reader, etree._Element], Leave]"
"""Called at the beginning of an element. Returns :func:`skip` to skip its content."""


def skip() -> None:
    """Do nothing: returned by handlers to skip the content of an element."""


class Reader:
    """The state of the walk."""

    def __init__(
        self,
        root: etree._Element,
        base_url: str,
        notation: Notation,
        enter: Mapping[Any, Enter],
        other: Enter,
        tabs: Tabs,
        growth: int = sys.maxsize,
    ) -> None:
        self._notation = notation
        self._enter, self._other = enter, other
        self.resolve = resolver(base_url, growth)
        self._here = comparable(base_url)
        self.footnotes = FootnoteMarks(root)
        self.tabs = tabs
        self.inline_notes: list[Footnote] = []
        """Footnotes that were written in place of their marks."""
        self.captions: dict[etree._Element, int] = {}
        """Captions that were read with their figures, to be skipped, and the index of the figure's item after each."""
        self.loose = False
        """True after an element that style sheets set apart from its neighbours."""
        self.frame = Frame(self.new_line(), [])
        """The state that the innermost open elements have set."""
        self._outer: list[Frame] = []

    @property
    def line(self) -> Line:
        """The line that text is added to."""
        return self.frame.line

    @property
    def items(self) -> list[Item]:
        """The items so far, of the innermost element that collects its own."""
        return self.frame.items

    def push(self, frame: Frame) -> None:
        """Continue with another state until :meth:`pop`."""
        self._outer.append(self.frame)
        self.frame = frame

    def pop(self) -> Frame:
        """Return to the state before the last :meth:`push`. Return the state that ends."""
        ended, self.frame = self.frame, self._outer.pop()
        return ended

    def leads_here(self, url: str) -> bool:
        """Return True if an absolute URL is that of the page, whatever its fragment."""
        return bool(self._here) and comparable(url) == self._here

    def new_line(self) -> Line:
        """Return an empty line."""
        return Line(self._notation)

    def read(self, element: etree._Element) -> Items:
        """Return the items of an element, independently of the elements around it."""
        self.push(self.frame._replace(line=self.new_line(), items=[], open_list=None, flat=False, title=0))
        self.walk(element)
        self.flush()
        return tuple(self.pop().items)

    def read_line(self, element: etree._Element) -> Runs:
        """Return the content of an element as one line."""
        self.push(self.frame._replace(line=self.new_line(), flat=True))
        self.walk(element)
        return self.pop().line.take()

    def walk(self, root: etree._Element) -> None:
        """Add the content of an element."""
        line_text = self.line.text
        enter_of, other, captions = self._enter.get, self._other, self.captions
        open_elements: list[tuple[Any, Any, Leave]] = []
        if root.text:
            line_text(root.text)
        children = iter(root)
        while True:
            child = next(children, None)
            if child is None:
                if not open_elements:
                    return
                children, child, leave = open_elements.pop()
            else:
                leave = self._skip_caption(child) if child in captions else enter_of(child.tag, other)(self, child)
                if leave is not skip:
                    text = child.text
                    if text:
                        self.loose = False
                        line_text(text)
                    if len(child):
                        open_elements.append((children, child, leave))
                        children = iter(child)
                        continue
            if leave is not None:
                leave()
            text = child.tail
            if text:
                line_text(text)
            self.loose = not text and child.tag in LOOSE

    def _skip_caption(self, caption: etree._Element) -> Leave:
        """Skip a caption that was read with its figure, and end the line before it."""
        self.flush()
        self.captions[caption] = len(self.items)
        return skip

    # ------------------------------------------------------------------ lines and items
    def touch(self) -> None:
        """Separate an inline element from the previous one if style sheets usually do so."""
        if self.loose:
            self.line.separate(Separator.LOOSE)

    def flush(self) -> None:
        """End the line. It becomes a paragraph, unless it belongs to a heading or another single-line element."""
        line = self.frame.line
        if not line.begun:
            line.pending = Separator.NOTHING
        elif self.frame.flat:
            line.separate(Separator.SPACE)
        else:
            self.add(line.take())

    def add(self, runs: Runs) -> None:
        """Add runs as a paragraph. Display formulas and standalone images become separate items."""
        if not runs:
            return
        if len(runs) == 1 and type(runs[0]) is Text:
            self.items.append(Paragraph(runs))
            return
        if any(map(_is_display, runs)):
            for display, part in groupby(runs, _is_display):
                if display:
                    self.items.extend(part)  # type: ignore[arg-type]
                else:
                    self.add(trimmed(tuple(part)))
            return
        images = images_of(runs)
        if images is None:
            lines = code_of_lines(runs) if type(runs[0]) is Code and not self.frame.table_depth else None
            self.items.append(lines or Paragraph(runs))
            return
        for image in images:
            before = self.items[-1] if self.items else None
            if type(before) is not Image or not same_image(before, image):
                self.items.append(image)
            elif image.alt and not before.alt:
                self.items[-1] = replace(before, alt=image.alt)

    def end_title(self) -> None:
        """End the open heading: at its end tag, or before a block that it cannot contain."""
        runs, heading = self.line.take(), self.pop()
        if len(runs) == 1 and type(runs[0]) is Strong:
            runs = runs[0].runs
        if runs and images_of(runs) is not None:
            self.add(runs)
        elif runs:
            self.items.append(Title(heading.title, runs, heading.anchor))

    def split_title(self) -> None:
        """End the open heading if it has text, before a block that it cannot contain."""
        if self.frame.title and self.line.begun and not self.frame.ruby:
            self.end_title()

    @property
    def fits(self) -> bool:
        """True if a container of items can begin here."""
        return not self.frame.flat and self.frame.nesting < MAX_NESTING

    def hold(self, make: Callable[[Items], Sequence[Item]], notes: int = 0) -> Leave:
        """Collect the items of an element, and replace them by those from ``make`` at its end.

        ``notes`` is 1 for a footnote.
        """
        self.flush()
        frame = self.frame
        self.push(frame._replace(items=[], open_list=None, nesting=frame.nesting + 1, notes=frame.notes + notes))

        def leave() -> None:
            self.flush()
            inner = self.pop().items
            self.items.extend(make(with_code_lines(inner)))

        return leave


def _is_display(run: Run) -> bool:
    return type(run) is Formula and run.display


def images_of(runs: Runs) -> list[Image] | None:
    """Return the images that runs consist of, with the links around them, or None if there is anything else."""
    images: list[Image] = []
    for run in runs:
        inner = run.runs[0] if type(run) is Link and len(run.runs) == 1 else run
        if type(inner) is Image:
            images.append(inner if type(run) is not Link else replace(inner, href=run.href))
        elif not (type(run) is LineBreak or (type(run) is Text and run.text.isspace())):
            return None
    return images


def stanzas(paragraph: Paragraph) -> list[Paragraph]:
    """Split a paragraph at empty lines."""
    parts: list[list[Run]] = [[]]
    before: Run | None = None
    for run in paragraph.runs:
        if type(run) is LineBreak and type(before) is LineBreak:
            parts.append([])
        else:
            parts[-1].append(run)
        before = run
    if len(parts) == 1:
        return [paragraph]
    return [Paragraph(runs) for part in parts if (runs := trimmed(tuple(part)))]


# ---------------------------------------------------------------------- places on a rendered page
BOX = "data-bbox"
"""The attribute that a script in a user's browser writes: four numbers in CSS pixels, between commas: left, top, width
and height, as ``getBoundingClientRect`` names them."""
LONGEST_BOX = 200
"""Maximum number of characters in the attribute."""

has_boxes = etree.XPath(f"boolean(descendant-or-self::*[@{BOX}])")


def box_of(element: etree._Element) -> Box | None:
    """Return the place of an element, or None if it has none, or none that makes sense."""
    value = element.get(BOX) or ""
    try:
        left, top, width, height = map(float, value.split(",") if len(value) <= LONGEST_BOX else ())
    except ValueError:
        return None
    box = left, top, left + width, top + height
    return box if width >= 0 and height >= 0 and all(map(isfinite, box)) else None


def _is_block(element: etree._Element) -> bool:
    return element.tag != "br" and ends_line(element.tag)


def with_boxes(enter_of: Mapping[Any, Enter], other: Enter) -> Enter:
    """Return the handler of all elements that also gives the items their boxes, in place of the handlers by tag.

    The box of an item is that of the innermost block that holds just the item, or the one around what is in the block.
    A block without blocks in it can make several items, and is the place of each.
    """
    within: list[list[Box]] = [[]]

    def enter(reader: Reader, element: etree._Element) -> Leave:
        is_block = _is_block(element)
        if is_block:
            reader.flush()
        items, before = reader.items, len(reader.items)
        within.append([])
        leave = enter_of.get(element.tag, other)(reader, element)

        def end() -> None:
            if leave is not None:
                leave()
            inner, box = within.pop(), box_of(element)
            if box is None and inner:
                left, top, right, bottom = zip(*inner, strict=True)
                box = min(left), min(top), max(right), max(bottom)
            if box is None:
                return
            within[-1].append(box)
            one = len(items) - before == 1
            if is_block and (one or not any(map(_is_block, element))):
                for i in range(before, len(items)):
                    item = items[i]
                    if isinstance(item, Boxed) and item.bbox is None:
                        items[i] = replace(item, bbox=box)

        if leave is not skip:
            return end
        end()
        return skip

    return enter
