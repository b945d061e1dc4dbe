"""Parse a document as MinerU-HTML 1.1 does: with an HTML5 parser first, and then its output with libxml2.

The HTML5 parser itself is not used, because hostile pages make it crash, or make it write thousands of times as much as
it has read. Instead, this module makes the changes of that parser that occur on real pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_dripper.page.balance import balanced
from scrapy_dripper.page.parse import parse

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_break = re.compile(r"</br\s*>", re.I)


def parse_twice(text: str) -> HtmlElement:
    """Return the tree of a document. Raises :exc:`~scrapy_dripper.page.errors.PageError` as ``parse`` does."""
    root = parse(balanced(_break.sub("<br>", text)), streamed=False)
    for table in root.iter("table"):
        _add_bodies(table)
    for item in list(root.iter("dt", "dd")):
        around = item.getparent()
        if around is not None and around.tag in ("dt", "dd") and item.getnext() is None:
            around.addnext(item)  # it has no end tag, and libxml2 ends it with the list
    for node in root.iter("pre", "listing", "textarea"):
        if node.text and node.text[0] == "\n":
            node.text = node.text[1:]
    return root


def _add_bodies(table: HtmlElement) -> None:
    """Put the rows that are directly in a table into bodies."""
    body = None
    for child in list(table):
        if child.tag != "tr":
            body = None
            continue
        if body is None:
            body = table.makeelement("tbody")
            child.addprevious(body)
        body.append(child)
