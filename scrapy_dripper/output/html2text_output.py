"""Convert Main-HTML to Markdown with html2text, as papers on main content extraction do."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from html import unescape
from itertools import zip_longest
from typing import TypeAlias
from urllib.parse import urljoin

import html2text
from html2text.elements import ListElement

from scrapy_dripper.output.bounds import UNBOUNDED, TooLongError
from scrapy_dripper.output.urls import unsafe_url

MAX_DEPTH = 10
"""Maximum nesting of quotes and of lists, because html2text begins each line with the marks of all of them."""

MAX_BASE_URL = 4_096
"""Maximum length of a base URL that is used to resolve relative links, because each link contains a copy of it."""

_WITHOUT_MARKS = frozenset(
    "article aside button caption center cite figcaption figure font footer form header html label main nav picture "
    "section small source span sub summary sup svg tbody tfoot thead time use path video wbr".split()
)

_LT = "&dripperlt;"  # not an HTML entity, so it reaches handle_entityref
_mark = re.compile(r"&lt;(?=[A-Za-z/!?<])").sub  # "<<" counts, because html2text may drop a tag in between
_live = re.compile(r"<(?=[A-Za-z/!?])").sub
_white_space = re.compile(r"\s{2,}").sub
_fine_automatic_link = re.compile(r"[^\s\"'<>`]+").fullmatch
_start_number = re.compile(r"\s*-?[0-9]{1,9}\s*").fullmatch
_blank_lines = re.compile(r"\A(?:[^\S\n]*\n)+").sub
_ticks = re.compile(r"`+").findall
_destination = re.compile(r"\](?=[(:]\s*<?([^\s)>]{1,400}))").sub
_escaped = re.compile(r"\\(?=[!-/:-@\[-`{-~])").sub


def markdown(html: str, base_url: str = "", links: bool = True, most: int = UNBOUNDED) -> str:
    """Convert HTML to Markdown with absolute links, unwrapped lines, and no HTML.

    ``links=False`` only keeps the text of links. Relative links are resolved against ``base_url``; URLs that cannot be
    resolved are kept as they are. Markdown is limited to about ten times the length of the HTML: if it would be longer,
    it is written without quotes, lists and absolute links. Raise :exc:`~scrapy_dripper.output.bounds.TooLongError` if
    even that has more than ``most`` characters.
    """
    marked = _mark(_LT, html)
    if len(base_url) > MAX_BASE_URL:
        base_url = ""
    try:
        writer = _Writer(base_url, MAX_DEPTH, min(most, 100_000 + 10 * len(html)))
        writer.ignore_links = not links
        written = writer.handle(marked)
    except TooLongError:
        writer = _Writer("", 0, most)
        writer.ignore_links = not links
        written = writer.handle(marked)
    # html2text does not escape brackets. Text may thus become a link, but not one that runs code.
    written = _destination(_disarmed, written.replace(_LT, "&lt;"))
    return _blank_lines("", written).rstrip() if writer.begins_with_code else written.strip()


_Attributes: TypeAlias = "dict[str, str | None]"


class _Writer(html2text.HTML2Text):
    """An html2text that takes linear time and limited space, and never turns text into markup."""

    def __init__(self, base_url: str, max_depth: int, limit: int) -> None:
        # URLs are resolved beforehand, because html2text does not catch the exceptions of urljoin.
        super().__init__(baseurl="", bodywidth=0)
        self.unicode_snob = True  # keep Unicode characters instead of replacing them by ASCII
        self.mark_code = False
        self.pad_tables = False
        self.single_line_break = False
        self.emphasis_mark = "*"
        self.use_automatic_links = True
        self._base_url = base_url
        self._max_depth = max_depth
        self._limit = limit
        self._written = 0
        self._depths = dict.fromkeys(("blockquote", "list", "pre", "code"), 0)
        self._items: list[str] = []  # the code indents of the open list items
        self._list_indent = ""  # the deepest indent of the last list that was closed
        self._list_end = 0  # the index in outtextlist at which that list ended
        self._borrowed = False  # True if the open code is not in a list but becomes part of one in Markdown
        self._begun = False
        self.begins_with_code = False
        self._block = 0  # the index in outtextlist at which the Markdown block begins
        self._codes: list[int] = []  # the indexes in outtextlist at which inline code of the block begins and ends
        self._live_code = False  # True if the block has inline code that would be HTML outside of code

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_tag(tag, {name: value or "" for name, value in attrs}, start=True)

    def handle_tag(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if tag in _WITHOUT_MARKS and self.maybe_automatic_link is None:
            self.current_tag, self.lastWasList = tag, False  # skips the 40 comparisons of html2text
            return
        handler = _HANDLERS.get(tag)
        if handler is None:
            super().handle_tag(tag, attrs, start)
        else:
            handler(self, tag, attrs, start)
        if self.p_p == 2 and not self.code and not self.astack:
            self._end_block()

    def handle_charref(self, c: str) -> None:
        if c.lower().lstrip("x0") in ("60", "3c"):
            self.handle_entityref(_LT[1:-1])
        else:
            super().handle_charref(c)

    def handle_entityref(self, c: str) -> None:
        if c == _LT[1:-1]:
            self.handle_data("<" if self.pre or self.code else "&lt;", True)
            self._live_code |= self.code
        else:
            super().handle_entityref(c)

    def handle_data(self, data: str, entity_char: bool = False) -> None:
        if self.pre:
            # These characters also end a line in Markdown, and thus code.
            data = data.replace("\r\n", "\n").replace("\r", "\n")
            prefix = self.blockquote + len(self.list_code_indent) + 5
            if self._written + data.count("\n") * prefix > self._limit:
                raise TooLongError("Markdown")
        else:
            # The regular expressions of html2text take quadratic time on white space. They depend on line breaks.
            data = _white_space(lambda run: "\n" if "\n" in run[0] else " ", data)
            if "<" in data and not self.code:
                data = _live("&lt;", data)
        if self.maybe_automatic_link is not None and not _fine_automatic_link(data):
            self.maybe_automatic_link = ""  # never equal to data, so it is written as an ordinary link
        if self.abbr_data is not None and len(self.abbr_data) > 1_000:
            self.abbr_title = self.abbr_data = None  # html2text would copy it for each piece of data
        super().handle_data(data, entity_char)

    def outtextf(self, s: str) -> None:
        self._written += len(s)
        if self._written > self._limit:
            raise TooLongError("Markdown")
        super().outtextf(s)

    def finish(self) -> str:
        self.close()
        self._end_block()
        written: str = super().finish()
        return written

    def _end_block(self) -> None:
        """Make sure that no inline code of the block becomes HTML if backticks are paired in another way."""
        out = self.outtextlist
        if self._live_code:
            spans = list(zip_longest(self._codes[::2], self._codes[1::2], fillvalue=len(out)))
            block = "".join(out[self._block :])
            safe = (
                _ticks(block) == ["`"] * (2 * len(spans))
                and "\\`" not in block
                and not any(_ends_code("".join(out[start:end])) for start, end in spans)
            )
            for start, end in [] if safe else spans:
                code = _live("&lt;", "".join(out[start:end]))
                out[start:end] = [code, *[""] * (end - start - 1)]
        self._codes.clear()
        self._live_code = False
        self._block = len(out)

    def _enter(self, name: str, start: bool) -> int:
        """Return the nesting depth, from 1, of the element that starts or ends, among elements of the same name."""
        depth = self._depths[name]
        self._depths[name] = depth + 1 if start else max(0, depth - 1)
        return depth + start

    def _quote(self, tag: str, attrs: _Attributes, start: bool) -> None:
        fits = self._enter("blockquote", start) <= self._max_depth
        super().handle_tag(tag if fits else "div", attrs, start)

    def _list(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if not _start_number(attrs.get("start") or ""):
            attrs.pop("start", None)
        fits = self._enter("list", start) <= self._max_depth
        if start and self.startpre:
            self.startpre = self.start = False  # otherwise, html2text would not indent the list and its code
        super().handle_tag(tag if fits else "span", attrs, start)
        if not self.list:
            self._list_end = len(self.outtextlist)

    def _item(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if not self._max_depth:
            super().handle_tag("div", attrs, start)
            return
        if not self.list and len(self._items) < 2:  # outside any list
            self.p()  # Markdown joins code items to preceding text, and following text to the item
        super().handle_tag(tag, attrs, start)
        if start:
            # With numbers of 10 and more, html2text does not indent code enough.
            digits = sum(len(str(one.num)) - 1 for one in self.list if one.name == "ol")
            self._items.append(self.list_code_indent + " " * digits)
        elif self._items:
            # In Markdown, content after an inner list belongs to its last item, unless it is indented less.
            self._list_indent = max(self._items.pop(), self._list_indent, key=len)
            if self._items:
                self._items[-1] = max(self._items[-1], self._list_indent, key=len)
            self._list_end = len(self.outtextlist)
        self.list_code_indent = self._items[-1] if self._items else ""

    def _pre(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if self._enter("pre", start) > 1:
            return  # the end tag of the inner element would end all of them
        if self.astack if start else not self.pre:
            self.p()  # a Markdown link cannot hold a code block: its lines would be interpreted as text
            return
        if start and not self._begun:
            self._begun = len(self.outtextlist) > 100 or any(piece.strip() for piece in self.outtextlist)
            self.begins_with_code |= not self._begun
        if start and self.start and (self.list or self._items):
            # html2text would put the first line right after the list marker, where it is not code. And an item that
            # begins with an empty line cannot interrupt the text of an outer item (CommonMark 5.2).
            self.o("&nbsp;")
            self.start = False
        super().handle_tag(tag, attrs, start)
        if start and self._items and not self.list:
            self._borrow(self.list_code_indent)  # html2text does not indent code in an item outside of lists
        if start and not self.list and self._list_indent:
            # Right after a list, indented code is only code if it is part of the last item.
            if len(self.outtextlist) - self._list_end < 10 and not "".join(self.outtextlist[self._list_end :]).strip():
                self._borrow(self._list_indent)
            else:
                self._list_indent = ""
        elif not start and self._borrowed:
            self.list.clear()
            self.list_code_indent = self._items[-1] if self._items else ""
            self._borrowed = False
            self._list_end = len(self.outtextlist)

    def _borrow(self, indent: str) -> None:
        self.list.append(ListElement("ul", 0))
        self.list_code_indent = indent
        self._borrowed = True

    def _code(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if not self.pre:
            if self._enter("code", start) > 1:
                return  # html2text would treat the inner start tag as the end of the outer element
            if start:
                self._codes.append(len(self.outtextlist))
        super().handle_tag(tag, attrs, start)
        if not self.pre and not start:
            self._codes.append(len(self.outtextlist))

    def _anchor(self, tag: str, attrs: _Attributes, start: bool) -> None:
        written = attrs.get("href")
        if written is not None and not written.startswith("#"):
            attrs["href"] = self._absolute(written)
        if attrs.get("title"):
            attrs["title"] = _as_text(attrs["title"])
        super().handle_tag(tag, attrs, start)
        if self.maybe_automatic_link is not None:
            self.maybe_automatic_link = written

    def _image(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if attrs.get("src") is not None:
            attrs["src"] = self._absolute(attrs["src"] or "")
        if attrs.get("alt"):
            attrs["alt"] = _as_text(attrs["alt"])
        super().handle_tag(tag, attrs, start)

    def _abbreviation(self, tag: str, attrs: _Attributes, start: bool) -> None:
        if attrs.get("title"):
            attrs["title"] = _as_text(attrs["title"])
        super().handle_tag(tag, attrs, start)

    def _absolute(self, url: str) -> str:
        with suppress(ValueError):  # such as https://[your-domain]/
            url = urljoin(self._base_url, url)
        return url.replace(_LT, "%3C").replace("<", "%3C")


def _disarmed(match: re.Match[str]) -> str:
    return "]\\" if unsafe_url(unescape(_escaped("", match[1]))) else "]"


def _as_text(value: str | None) -> str:
    return _live("&lt;", (value or "").replace(_LT, "<"))


def _ends_code(span: str) -> bool:
    """Return True if Markdown does not accept a span as inline code: empty, multi-line, or across table cells."""
    return "\n" in span or "|" in span or not span.strip("` ")


_HANDLERS: dict[str, Callable[[_Writer, str, _Attributes, bool], None]] = {
    "blockquote": _Writer._quote,
    "ul": _Writer._list,
    "ol": _Writer._list,
    "li": _Writer._item,
    "pre": _Writer._pre,
    "code": _Writer._code,
    "kbd": _Writer._code,
    "tt": _Writer._code,
    "a": _Writer._anchor,
    "img": _Writer._image,
    "abbr": _Writer._abbreviation,
}
