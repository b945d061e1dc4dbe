"""The walk over a tree: the line that grows, the items before it, and what is open around them.

What a tag does is looked up in a table (:mod:`~scrapy_dripper.output.content_list`). Lists, quotes and figures put what
is around them aside while they are open, so that a tree may be of any depth; only tables are read by recursion, and so
to a limited depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeAlias
from urllib.parse import urljoin, urlsplit

from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.output.bounds import UNBOUNDED, Allowance
from scrapy_dripper.output.code.blocks import Guess, code_of_lines
from scrapy_dripper.output.footnotes import FootnoteMarks
from scrapy_dripper.output.images import same_image
from scrapy_dripper.output.inline import Gap, Line, unbroken
from scrapy_dripper.output.items import (
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
)
from scrapy_dripper.output.math.delimiters import Notation
from scrapy_dripper.output.urls import unsafe_url
from scrapy_dripper.page.tags import LOOSE

MAX_NESTING = 10
"""Lists, quotes and figures in each other. Deeper ones are not kept, what is in them is."""
MAX_BASE_URL = 4_096
"""Characters of a base URL that relative links are resolved against: each of them carries a copy of it."""

_FORMAT = len('{"type":"sub","runs":[]}')

Leave: TypeAlias = "Callable[[], object] | None"
"""What is done at the end of an element."""
Enter: TypeAlias = "Callable[[Reader, etree._Element], Leave]"
"""What is done at its beginning; returns :func:`skip` for an element that is not descended into."""


def skip() -> None:
    """Stand for the end of an element that is not descended into."""


def resolver(base_url: str, growth: int = UNBOUNDED) -> Callable[[str], str]:
    """Return what makes URLs absolute. It never raises; a URL that could run code becomes empty.

    ``growth`` is how many characters it adds to all URLs together; those that would take more stay as they are.
    """
    base_url = without_controls(base_url) if len(base_url) <= MAX_BASE_URL else ""
    try:
        parts = urlsplit(base_url)
        origin = f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else ""
    except ValueError:
        base_url = origin = ""

    def join(url: str) -> str:
        if origin and url[:1] == "/" and url[1:2] != "/" and "/." not in url:
            return origin + url
        try:
            return urljoin(base_url, url)
        except ValueError:  # such as https://[your-domain]/
            return url

    def resolve(url: str) -> str:
        nonlocal growth
        url = url.strip()
        if url.startswith(("http://", "https://")):
            return url
        if unsafe_url(url):
            return ""
        if growth < len(base_url):  # what is the most that it adds
            return url
        joined = join(url)
        growth -= max(0, len(joined) - len(url))
        return joined

    return resolve


class Reader:
    """The state of the walk."""

    def __init__(
        self,
        root: etree._Element,
        base_url: str,
        notation: Notation,
        enter: Mapping[Any, Enter],
        other: Enter,
        most: int = UNBOUNDED,
    ) -> None:
        self._notation = notation
        self._enter, self._other = enter, other
        self.resolve = resolver(base_url, most // 2)
        self.formats = Allowance("content list", most)
        """Characters that the formats around paragraphs may have; each paragraph has all that are open."""
        self.tables = Allowance("content list", most)
        """Characters that the HTML of tables may have: in the list it stands beside their rows."""
        self.footnotes = FootnoteMarks(root)
        self.guess: Guess | None = None
        self.inline_notes: list[Footnote] = []
        """Footnotes that were written where their marks are."""
        self.captions: dict[etree._Element, int] = {}
        """Captions that were read with their figures, and before which of its items they stand."""
        self.line = self.new_line()
        self.items: list[Item] = []
        self.loose = False
        """Behind an element that pages set apart by style sheet."""
        self.flat = False
        """In something that holds one line: blocks in it do not end the line."""
        self.title = 0
        """Level of the title that is open, or 0."""
        self.anchor = ""
        """The id that leads to it."""
        self.in_cell = self.in_note = self.in_ruby = 0
        self.nesting = 0
        # Of the innermost list: its kind, what it holds so far, the labels of items that are footnotes, their numbers.
        self.kind: str | None = None
        self.entries: list[ListItem] = []
        self.terms: list[Runs] = []
        self.labels: dict[int, str] = {}
        self.numbers: dict[int, int] = {}
        self.number: int | None = None  # of the item that is open, where items have numbers of their own
        self.step = 1
        self.checked: bool | None = None
        """Whether the task of the item is done; None for no task."""

    def new_line(self) -> Line:
        """Return an empty line."""
        return Line(self._notation)

    def read(self, element: etree._Element) -> Items:
        """Return what is in an element, apart from what is around it."""
        if len(element) == 0:  # as most cells of tables
            text = unbroken(" ".join((element.text or "").split()))
            if (
                "$" not in text
                and "\\" not in text
                and "`" not in text
                and "[" not in text
                and (text.isascii() or "\n" not in text)
            ):
                return (Paragraph((Text(text),)),) if text else ()
        saved = self.__dict__.copy()
        self.line, self.items, self.kind, self.entries, self.terms, self.labels = self.new_line(), [], None, [], [], {}
        self.flat = self.loose = False
        self.title = 0
        self.walk(element)
        self.flush()
        items = tuple(self.items)
        self.__dict__.update(saved)
        return items

    def read_line(self, element: etree._Element) -> Runs:
        """Return what is in an element as one line."""
        saved = self.line, self.flat
        self.line, self.flat = self.new_line(), True
        self.walk(element)
        runs = self.line.take()
        self.line, self.flat = saved
        return runs

    def walk(self, root: etree._Element) -> None:
        """Add what is in an element."""
        line_text = self.line.text
        enter_of, other = self._enter.get, self._other
        open_elements: list[tuple[Any, Any, Leave]] = []
        if root.text:
            line_text(root.text)
        children = iter(root)
        while True:
            for child in children:
                tag = child.tag
                leave = enter_of(tag, other)(self, child)
                if leave is not skip:
                    text = child.text
                    if text:
                        self.loose = False
                        line_text(text)
                    if len(child):
                        open_elements.append((children, child, leave))
                        children = iter(child)
                        break
                    if leave is not None:
                        leave()
                text = child.tail
                if text:
                    line_text(text)
                self.loose = not text and tag in LOOSE
            else:
                if not open_elements:
                    return
                children, child, leave = open_elements.pop()
                if leave is not None:
                    leave()
                text = child.tail
                if text:
                    line_text(text)
                self.loose = not text and child.tag in LOOSE

    # ------------------------------------------------------------------ lines and items
    def touch(self) -> None:
        """Set an inline element that begins apart from one that ended, where pages do so by style sheet."""
        if self.loose:
            self.line.separate(Gap.LOOSE)

    def flush(self) -> None:
        """End the line: a paragraph, unless it is that of a title or the like."""
        line = self.line
        if not line.begun:
            line.gap = Gap.NOTHING
        elif self.flat:
            line.separate(Gap.SPACE)
        else:
            self.formats.spend(_FORMAT * line.formats)
            self.add(line.take())

    def add(self, runs: Runs) -> None:
        """Add runs as a paragraph; formulas on display and images that stand alone are items of their own."""
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
            lines = code_of_lines(runs) if type(runs[0]) is Code and not self.in_cell else None
            self.items.append(lines or Paragraph(runs))
            return
        for found in images:
            before = self.items[-1] if self.items else None
            if type(before) is not Image or not same_image(before, found):
                self.items.append(found)
            elif found.alt and not before.alt:
                self.items[-1] = replace(before, alt=found.alt)

    def end_title(self) -> None:
        """End the title that is open: at its end tag, or before a block that cannot be in one."""
        level, runs = self.title, self.line.take()
        self.title, self.flat = 0, False
        if len(runs) == 1 and type(runs[0]) is Strong:
            runs = runs[0].runs
        if runs and images_of(runs) is not None:
            self.add(runs)
        elif runs:
            self.items.append(Title(level, runs, self.anchor))
            self.anchor = ""  # what follows of a heading that a block divides has no other

    def is_caption(self, element: etree._Element) -> bool:
        """Return True for the caption of a figure, which has been read; what is before it ends there."""
        if element not in self.captions:
            return False
        self.flush()
        self.captions[element] = len(self.items)
        return True

    def begins_block(self) -> bool:
        """Return True if a block that is no part of a line can begin here. It ends a title that has text already."""
        if self.title and self.line.begun:
            self.end_title()
        return not self.flat

    def fits(self) -> bool:
        """Return True if something that holds items can begin here."""
        return self.begins_block() and self.nesting < MAX_NESTING

    def hold(self, make: Callable[[Items], Sequence[Item]]) -> Leave:
        """Collect the items of an element, and put others in their place at its end."""
        self.flush()
        outer, self.items = self.items, []
        kind, self.kind = self.kind, None
        self.nesting += 1

        def leave() -> None:
            self.flush()
            self.nesting -= 1
            self.kind = kind
            inner, self.items = self.items, outer
            self.items.extend(make(tuple(inner)))

        return leave


def _is_display(run: Run) -> bool:
    return type(run) is Formula and run.display


def images_of(runs: Runs) -> list[Image] | None:
    """Return the images that runs consist of, with the links around them; None if there is anything else."""
    images: list[Image] = []
    for run in runs:
        inner = run.runs[0] if type(run) is Link and len(run.runs) == 1 else run
        if type(inner) is Image:
            images.append(inner if type(run) is not Link else replace(inner, href=run.href))
        elif not (type(run) is LineBreak or (type(run) is Text and run.text.isspace())):
            return None
    return images


def trimmed(runs: Runs) -> Runs:
    """Return runs without line breaks and white space at both ends."""
    pieces = list(runs)
    for end in (0, -1):
        while pieces:
            run = pieces[end]
            if type(run) is Text:
                text = run.text.rstrip() if end else run.text.lstrip()
                if text:
                    pieces[end] = Text(text)
                    break
            elif type(run) is not LineBreak:
                break
            pieces.pop(end)
    return tuple(pieces)


def stanzas(paragraph: Paragraph) -> list[Paragraph]:
    """Return the parts of a paragraph that are set apart by empty lines."""
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
