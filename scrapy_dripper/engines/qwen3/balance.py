"""Insert missing end tags, so that each element ends at its own end tag even if elements inside it are still open.

libxml2 ignores ``</header>`` while a ``<div>`` in the header is open. The rest of the page then ends up in the header,
and is dropped with it. This affects about 1 % of pages. Browsers end the header there, and so did the parser for the
training data of the published weights.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from scrapy_dripper.page.tags import VOID

_VOID = VOID | {
    "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "menuitem", "meta",
    "nextid", "param", "spacer",
}  # fmt: skip
_OPTIONAL = frozenset("p li dd dt option optgroup tr td th thead tbody tfoot".split())
"""Tags whose end tag is optional. The parser knows where they end, often before the element around them does."""
_RAW = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
_raw_end = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.I) for tag in _RAW}
_start = re.compile(r"<(?:!--|(/?)([a-zA-Z][^\s/>]*))").search
_comment = re.compile(r"-?>|(?s:.*?)--!?>").match  # the rest of a comment (HTML standard, 13.2.5.43 to 52)
_inside = re.compile(r"""=\s*(["'])|>""").search


def balanced(text: str) -> str:
    """Return a document in which elements that end together with their parent have an end tag. Takes linear time.

    Elements whose end tag is optional get none. End tags without a start tag are removed, as are NULs, which the parser
    ignores.
    """
    text = text.replace("\0", "")
    out: list[str] = []
    open_tags = _OpenTags()
    done = 0
    for start, end, tag, is_end in _tags(text):
        if not is_end:
            open_tags.start(tag)
            continue
        out.append(text[done:start])
        forgotten = open_tags.end(tag)
        done = end if forgotten is None else start
        out += [f"</{name}>" for name in forgotten or () if name not in _OPTIONAL]
    out.append(text[done:])
    return "".join(out)


class _OpenTags:
    """The stack of open elements."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.count: Counter[str] = Counter()

    def start(self, tag: str) -> None:
        self.stack.append(tag)
        self.count[tag] += 1

    def end(self, tag: str) -> list[str] | None:
        """Close an element. Return the tags still open inside it, or None if no such element is open."""
        if not self.count[tag]:
            return None
        inner: list[str] = []
        while True:
            last = self.stack.pop()
            self.count[last] -= 1
            if last == tag:
                return inner
            inner.append(last)


def _tags(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield each start and end tag as start index, end index, name, and whether it is an end tag."""
    position = 0
    while True:
        token = _start(text, position)
        if token is None:
            return
        if not token[2]:
            comment = _comment(text, token.end())
            if comment is None:  # unclosed
                return
            position = comment.end()
            continue
        tag, is_end = token[2].lower(), bool(token[1])
        position = end = _tag_end(text, token.end())
        if end < 0:
            return
        if not is_end:
            if tag == "plaintext":  # everything after it is text
                return
            if tag in _VOID or _closes_itself(text, token.end(), end):
                continue
            if tag in _raw_end:
                raw = _raw_end[tag].search(text, end)
                if raw is None:
                    return
                position = raw.start()
        yield token.start(), end, tag, is_end


def _tag_end(text: str, position: int) -> int:
    """Return the end of a tag, or -1 if it is unclosed. A quotation mark only opens a value after an equals sign."""
    while True:
        found = _inside(text, position)
        if found is None:
            return -1
        if found[1] is None:
            return found.end()
        position = text.find(found[1], found.end()) + 1
        if position == 0:
            return -1


def _closes_itself(text: str, start: int, end: int) -> bool:
    """Return True for ``<br/>``, False for ``<a href=x/>``, where the slash is part of the value."""
    return text[end - 2] == "/" and (end - 2 == start or text[end - 3] in " \t\n\r\f\"'/")
