"""Collect the items of a tree during a walk over it: the frames that are open, and the line that is being read.

Tags are handled by functions from a table (:mod:`~scrapy_dripper.output.content_list`). Lists, quotes and figures put a
frame on a stack while they are open, so a tree can have any depth. Only tables are read recursively, up to a limit. A
line collapses white space, opens and closes formats, and merges adjacent runs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias

from lxml import etree

from scrapy_dripper.characters import WIDE, is_wide, spaced, unbroken
from scrapy_dripper.declared import Notation
from scrapy_dripper.declared.elements import LOOSE, are_apart
from scrapy_dripper.output.urls import comparable, resolver
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.structures.code import code_of_lines, with_code_lines
from scrapy_dripper.structures.footnotes import FootnoteMarks
from scrapy_dripper.structures.formulas import NOTATION, join_formulas
from scrapy_dripper.structures.hidden import Tabs
from scrapy_dripper.structures.images import same_image
from scrapy_dripper.structures.items import (
    Code,
    Deleted,
    Emphasis,
    Footnote,
    FootnoteMark,
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
    Sub,
    Sup,
    Text,
    Title,
    line_text,
    trimmed,
)

MAX_NESTING = 12
"""Maximum nesting of formats, of tables, and of lists, quotes and figures. Of deeper ones, only the content is kept."""

Format: TypeAlias = "type[Emphasis | Strong | Deleted | Sub | Sup | Link]"

_BREAK = LineBreak()
_JOINED = frozenset({Strong, Emphasis, Deleted})
_is_joined = _JOINED.__contains__
_line_in_wide = re.compile(f"(?<={WIDE})[^\\S\\n]*\\n\\s*(?={WIDE})").sub
_is_url = re.compile(r"https?:|www\.").match
_invisible = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\\s]*").fullmatch
_collapsible = re.compile(r"[ \t\r\n\f]+").sub
_word = re.compile(r"\w").search
numbers_of = re.compile(r"\d[\d.,]*(?<=\d)").findall
"""Returns the numbers in a text."""
_tells_of_window = re.compile(r"\bnew (?:window|tab)\b|external link", re.I).search


class Separator:
    """The separator before the next piece of text. The greatest one wins."""

    NOTHING = 0
    LOOSE = 1
    """A space between words, for elements that are spaced by style sheets."""
    LINE = 2
    """A line break in the source: a space, unless both sides are CJK (CSS Text 3, 4.1.3)."""
    SPACE = 3
    BREAK = 4
    BREAKS = 5
    """An empty line."""


class _Code(str):
    """A piece of inline code."""

    __slots__ = ()


_Buffer: TypeAlias = "list[str | Run]"


class Line:
    """Collects runs. White space is held back until text follows, so no line or format begins or ends with it."""

    __slots__ = ("_code", "_code_begun", "_last", "_notation", "_numbers", "_outer", "_runs", "begun", "pending")

    def __init__(self, notation: Notation = NOTATION) -> None:
        self._notation = notation
        self._runs: _Buffer = []
        self._outer: list[tuple[Format, tuple[str, ...], _Buffer]] = []  # open formats with their outer buffers
        self._code = 0
        self._code_begun = False
        self._last = ""
        self._numbers: tuple[str, frozenset[str]] = "", frozenset()  # the last text checked, and its numbers
        self.begun = False
        """True if the line is not empty."""
        self.pending = Separator.NOTHING
        """The separator that has been held back."""

    # ------------------------------------------------------------------ content
    def text(self, text: str) -> None:
        """Add text, with white space collapsed and without characters that only mark optional line breaks.

        In code, these characters and non-collapsing spaces are kept.
        """
        if self._code:
            self._code_text(text)
            return
        if not text.isascii():
            text = unbroken(text)
            if not text:
                return
        words = text.split()
        if not words:
            if self.begun and self.pending < Separator.SPACE:
                self.pending = Separator.SPACE
            return
        joined = " ".join(words)
        after = Separator.SPACE if text[-1].isspace() else Separator.NOTHING
        before = Separator.SPACE if text[0].isspace() else Separator.NOTHING
        if "\n" in text and not text.isascii():
            joined = " ".join(_line_in_wide("", text).split())
            before = Separator.LINE if before and "\n" in text[: len(text) - len(text.lstrip())] else before
            after = Separator.LINE if after and "\n" in text[len(text.rstrip()) :] else after
        if self.begun:
            if self.pending < before:
                self.pending = before
            if self.pending:
                self._fill(joined)
        self.begun = True
        self.pending = after
        self._last = joined
        self._runs.append(joined)

    def _code_text(self, text: str) -> None:
        collapsed = _collapsible(" ", text)
        joined = collapsed.strip(" ")
        if not joined or joined.isspace():
            self.separate(Separator.SPACE if text else Separator.NOTHING)
            return
        if collapsed[0] == " ":
            self.separate(Separator.SPACE)
        if self.pending and self.begun:
            self._fill(joined)
        self.begun = self._code_begun = True
        self.pending = Separator.SPACE if collapsed[-1] == " " else Separator.NOTHING
        self._last = joined
        self._runs.append(_Code(joined))

    def run(self, run: Run) -> None:
        """Add a complete run."""
        if self.pending and self.begun:
            self._fill("")
        self.begun = True
        self.pending = Separator.NOTHING
        self._last = ""
        self._runs.append(run)

    def image(self, image: Image, same: Callable[[Image, Image], bool]) -> None:
        """Add an image. Of two that are the same, keep the first one, with the alternative text that there is."""
        before = self._runs[-1] if self._runs else None
        if type(before) is not Image or not same(before, image):
            self.run(image)
        elif image.alt and not before.alt:
            self._runs[-1] = replace(before, alt=image.alt)

    def says(self, numbers: list[str]) -> bool:
        """Return True if there are numbers and the last text contains all of them."""
        if not numbers:
            return False
        if self._numbers[0] is not self._last:
            self._numbers = self._last, frozenset(numbers_of(self._last))
        return self._numbers[1].issuperset(numbers)

    def separate(self, separator: int) -> None:
        """Separate the next piece of text from the previous one."""
        if self.begun and self.pending < separator:
            self.pending = separator

    def _fill(self, following: str) -> None:
        separator = self.pending
        if separator < Separator.SPACE:
            before, after = self._last[-1:], following[:1]
            if separator == Separator.LINE:
                if is_wide(before) and is_wide(after):
                    return
            elif before and after and not are_apart(self._last, following, in_code=self._code > 0):
                return
            elif before.isalpha() and after.islower() and not (self._code or self._parts_links or _is_url(following)):
                return  # style sheets part names and labels, which have a capital: "K" and "aspar" are one word
        runs = self._runs
        if self._code and self._code_begun and separator < Separator.BREAK and runs and type(runs[-1]) is _Code:
            runs.append(_Code(" "))
            return
        i = len(self._outer)
        while i and not runs:  # put white space outside of a format that has just begun
            i -= 1
            runs = self._outer[i][2]
        if separator < Separator.BREAK:
            runs.append(" ")
        else:
            runs.append(_BREAK)
            if separator == Separator.BREAKS:
                runs.append(_BREAK)

    @property
    def _parts_links(self) -> bool:
        """True at the beginning of a link right behind a link to another place."""
        form, arguments, outer = self._outer[-1] if self._outer and not self._runs else (None, (), [])
        before = outer[-1] if outer else None
        return form is Link and type(before) is Link and before.href != arguments[0]

    # ------------------------------------------------------------------ formats
    def open(self, form: Format, *arguments: str) -> bool:
        """Open a format. Return False if it is dropped; it then needs no :meth:`close`.

        ``arguments`` are the URL of a link and its title, if there is one. Links and emphasis are not nested in formats
        of the same kind, and code only holds links.
        """
        outer = self._outer
        if len(outer) >= MAX_NESTING or (self._code and form is not Link):
            return False
        if form is not Sub and form is not Sup and any(opened[0] is form for opened in outer):
            return False
        outer.append((form, arguments, self._runs))
        self._runs = []
        return True

    def close(self) -> None:
        """Close the format that was opened last."""
        form, arguments, outer = self._outer.pop()
        runs = self._runs
        self._runs = outer
        if runs:
            outer.extend(_formatted(form, arguments, merged(runs, self._notation)))

    def open_code(self) -> None:
        """Treat the following text as code until :meth:`close_code`. It is not merged with code that ends here."""
        self._code += 1
        if self._code == 1:
            self._code_begun = False
            if self._runs and type(self._runs[-1]) is _Code:
                self.separate(Separator.SPACE)

    def close_code(self) -> None:
        """End the code."""
        self._code -= 1

    # ------------------------------------------------------------------ the end
    def take(self) -> Runs:
        """Return the runs and begin a new line. Open formats continue in it."""
        if self._outer:
            runs = self._runs
            still: list[tuple[Format, tuple[str, ...], _Buffer]] = []
            for form, arguments, outer in reversed(self._outer):
                again = arguments
                if runs:
                    inner = merged(runs, self._notation)
                    if form is Link and _word(line_text(inner)):
                        again = ("", "")  # only the first block with text in a link becomes the link
                    outer.extend(_formatted(form, arguments, inner))
                still.append((form, again, []))
                runs = outer
            self._outer = still[::-1]
        else:
            runs = self._runs
        self._runs = []
        self.begun = False
        self.pending = Separator.NOTHING
        self._last = ""
        if len(runs) == 1 and type(runs[0]) is str and _invisible(runs[0]):
            return ()
        return merged(runs, self._notation) if runs else ()


def _formatted(form: Format, arguments: tuple[str, ...], runs: Runs) -> Iterable[str | Run]:
    """Return the content of a format as runs."""
    if form is Link:
        href, title = arguments
        if not href:
            return runs
        return (Link(href, runs, title if title and _is_news(title, href, runs) else ""),)
    if form is Sup:
        marks = [run for run in runs if type(run) is FootnoteMark]
        if marks and not any(_word(run.text) for run in runs if type(run) is Text):
            return marks  # without brackets around them
    elif all(type(run) is Image or type(run) is FootnoteMark for run in runs):
        return runs
    return (form(runs),)  # type: ignore[arg-type, call-arg]


def tells_of_window(text: str) -> bool:
    """Return True for a text such as "(opens in a new tab)"."""
    return _tells_of_window(text) is not None


def _is_news(title: str, href: str, runs: Runs) -> bool:
    """Return True if the title of a link adds information to its text and URL. A very long title does not count."""
    said = "" if len(title) > LONGEST_CLASS else _beside_url(title, href[:LONGEST_CLASS])
    return bool(said) and said not in spaced(line_text(runs))


@lru_cache(256)  # a link around blocks is checked once for each block
def _beside_url(title: str, href: str) -> str:
    """Return the words of a title, each between spaces, or an empty string if it only repeats the URL."""
    said, url = spaced(title), spaced(href)
    site = spaced(href.partition("//")[2].partition("/")[0])
    if tells_of_window(title) or said.isspace() or said in url or (not site.isspace() and site in said):
        return ""
    return said


def merged(buffer: _Buffer, notation: Notation) -> Runs:
    """Merge adjacent pieces of text and adjacent formats of the same kind, and split formulas from text."""
    if len(buffer) == 1 and type(buffer[0]) is str:
        text = buffer[0]
        return join_formulas((Text(text),), notation)
    if len(buffer) > 2 and sum(map(_is_joined, map(type, buffer))) > 1:
        buffer = _bridged(buffer)
    runs: list[Run] = []
    for kind, group in groupby(buffer, type):
        if kind is str:
            runs.append(Text("".join(group)))  # type: ignore[arg-type]
        elif kind is _Code:
            runs.append(Code("".join(group)))  # type: ignore[arg-type]
        elif kind in _JOINED:
            runs.append(_joined(kind, list(group), notation))  # type: ignore[arg-type]
        else:
            runs.extend(group)  # type: ignore[arg-type]
    return join_formulas(tuple(runs), notation)


def _bridged(buffer: _Buffer) -> _Buffer:
    """Put a space between two formats of the same kind into that format, so that they can be merged."""
    spaces = [
        i
        for i, (before, run, after) in enumerate(zip(buffer, buffer[1:], buffer[2:], strict=False), start=1)
        if type(before) is type(after) and type(before) in _JOINED and type(run) is str and run.isspace()
    ]
    if spaces:
        buffer = buffer.copy()
        for i in spaces:
            buffer[i] = type(buffer[i - 1])((Text(" "),))  # type: ignore[call-arg, arg-type]
    return buffer


def _joined(kind: Callable[[Runs], Run], group: list[Strong | Emphasis | Deleted], notation: Notation) -> Run:
    if len(group) == 1:
        return group[0]
    pieces: _Buffer = []
    for part in group:
        for run in part.runs:
            pieces.append(run.text if type(run) is Text else _Code(run.text) if type(run) is Code else run)
    return kind(merged(pieces, notation))


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
        self._pictures: Counter[str] = Counter()
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

    def count_image(self, src: str) -> int:
        """Count an image, and return how often it was counted."""
        self._pictures[src] += 1
        return self._pictures[src]

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
