"""Parse as MinerU-HTML 1.1 does: with an HTML5 parser, and what that writes with libxml2.

The HTML5 parser itself is not used, because hostile pages make it crash, or write thousands of times what it read. Its
differences from libxml2 that occur on real pages are made here.
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
