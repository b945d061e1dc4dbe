"""Trees as rows, and back: exactly the same tree, whatever names and characters the parser let through.

But for one thing: of a tag with more attributes than a recovered one would have, only the first come back. Setting
them takes as long as parsing them did: the square of their number.
"""

from __future__ import annotations

import json
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from lxml import etree, html

from scrapy_dripper.page.recover import MAX_ATTRIBUTES

if TYPE_CHECKING:
    from lxml.html import HtmlElement


def to_json(root: HtmlElement) -> bytes:
    """Return a tree of elements as JSON: for each, in document order, parent, tag, attributes, text and tail.

    The parent is a row's number, -1 for that of the root.
    """
    number: dict[Any, int] = {None: -1}
    rows = []
    for i, node in enumerate(root.iter()):
        number[node] = i
        attributes = dict(islice(node.items(), MAX_ATTRIBUTES)) or 0
        rows.append((number[node.getparent()], node.tag, attributes, node.text or 0, node.tail or 0))
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def from_json(data: bytes, most: int) -> HtmlElement:
    """Return the tree of at most so many rows. Raise ValueError if the data is no tree, or one that is larger."""
    try:
        rows = json.loads(data)
        if len(rows) > most:
            raise ValueError(f"{len(rows):,} rows")
        made: list[HtmlElement] = []
        for parent, tag, attributes, text, tail in rows:
            if (parent < 0) != (not made):
                raise ValueError("a tree has one root")
            made.append(_element(made[parent] if made else None, tag, attributes or {}, text or None, tail or None))
        return made[0]
    except (TypeError, IndexError, AttributeError, RecursionError, etree.LxmlError) as error:
        raise ValueError(f"not a tree ({type(error).__name__}: {error})") from None


def _element(
    parent: HtmlElement | None, tag: str, attributes: dict[str, str], text: str | None, tail: str | None
) -> HtmlElement:
    made: Any = None
    if len(attributes) > MAX_ATTRIBUTES:
        raise ValueError(f"{len(attributes):,} attributes")
    try:
        if not any(name[0] == "{" for name in attributes):  # which would be a namespace to lxml
            if parent is None:
                made = cast(Any, html.HTMLParser()).makeelement(tag, attributes)
            else:
                made = etree.SubElement(parent, tag, attributes)
            made.text, made.tail = text, tail
            return cast("HtmlElement", made)
    except ValueError:  # a tag such as ``p"x``, or a control character
        if parent is not None and made is not None:
            made.tail = None
            parent.remove(made)
    made = _parsed(tag, attributes, text, tail)
    if parent is None:
        made.getparent().remove(made)
    else:
        parent.append(made)
    return cast("HtmlElement", made)


def _parsed(tag: str, attributes: dict[str, str], text: str | None, tail: str | None) -> Any:
    """Return an element that only the parser can make. Strings that lxml takes are set as they are."""
    name = tag if not _settable("tag", tag) else "x"
    written = "".join(f' {key}="{_written(value)}"' for key, value in attributes.items())
    odd_text = _written(text) if text and not _settable("text", text) else ""
    odd_tail = _written(tail) if tail and not _settable("text", tail) else ""
    source = f"<body><x></x><{name}{written}>{odd_text}</{name}>{odd_tail}"
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True)
    element: Any = etree.fromstring(source.encode("utf-8", "replace"), parser)[0][1]
    if name != tag:
        element.tag = tag
    if not odd_text:
        element.text = text
    if not odd_tail:
        element.tail = tail
    return element


def _written(value: str) -> str:
    return escape(value).replace("\r", "&#13;")


def _settable(what: str, value: str) -> bool:
    try:
        setattr(cast(Any, html.HTMLParser()).makeelement("x"), what, value)
    except ValueError:
        return False
    return not (what == "tag" and value[:1] == "{")
