"""Convert Main-HTML to a list of typed items, in one walk over the tree."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from lxml import etree

from scrapy_dripper.declared.notation import Notation
from scrapy_dripper.output import block_tags, inline_tags
from scrapy_dripper.output.items import Footnotes, Image, Item, Items, Post, Rule, Title, without_empty_posts
from scrapy_dripper.output.reader import Enter, Leave, Reader, skip
from scrapy_dripper.page.nodes import in_sentence
from scrapy_dripper.page.tags import UNSEEN


def content_list(
    root: etree._Element,
    base_url: str = "",
    notation: Notation | None = None,
    growth: int = sys.maxsize,
    posts: Mapping[etree._Element, Post] | None = None,
) -> Items:
    """Return the content of a tree, such as that of Main-HTML, as items in document order.

    Relative URLs are resolved against ``base_url``; URLs that cannot be resolved are kept as they are. ``notation``
    is how the page writes formulas; by default, scripts in the tree tell. ``growth`` limits the characters that
    resolving relative URLs adds in total. ``posts`` are the marks of the posts of a thread, by their elements.
    """
    if notation is None:
        notation = Notation([text for one in root.iter("script") for text in (one.get("src"), one.text) if text])
    enter, other = (_ENTER, _other) if not posts else ({}, _in_thread(posts))
    reader = Reader(root, base_url, notation, enter, other, growth)
    items = _without_copies(_gathered(reader.read(root)))
    if reader.inline_notes:
        items = (*items, Footnotes(tuple(reader.inline_notes)))
    return without_empty_posts(items) if posts else items


def _in_thread(posts: Mapping[etree._Element, Post]) -> Enter:
    """Return the handler of all elements of a page with posts, which reads the elements around posts as plain blocks.

    The list or table by which a site arranges the posts says nothing about their text.
    """
    around: set[etree._Element] = set()
    for post in posts:
        element: etree._Element | None = post
        while element is not None and element not in around:
            around.add(element)
            element = element.getparent()
    opened = [Post()]

    def enter(reader: Reader, element: etree._Element) -> Leave:
        if element not in around:
            return _ENTER.get(element.tag, _other)(reader, element)
        reader.flush()
        mark = posts.get(element)
        if mark is None:
            return reader.flush
        reader.items.append(mark)
        opened.append(mark)

        def leave() -> None:
            reader.flush()
            opened.pop()
            reader.items.append(opened[-1])

        return leave

    return enter


def _gathered(items: Sequence[Item]) -> Items:
    """Move the items after the heading of a footnote into it, up to a rule, a title or the next footnote.

    Such a heading was read as an empty footnote.
    """
    made: list[Sequence[Item]] = []
    labels: dict[int, str] = {}
    inside: list[Item] | None = None
    for item in items:
        if type(item) is Footnotes and not item.notes[0].items:
            labels[len(made)] = item.notes[0].label
            inside = []
            made.append(inside)
        elif inside is None or type(item) in (Rule, Title, Footnotes):
            inside = None
            made.append((item,))
        else:
            inside.append(item)
    for i, label in labels.items():
        made[i] = block_tags.footnotes([(label, tuple(made[i]))])
    return tuple(chain.from_iterable(made))


def _without_copies(items: Items) -> Items:
    """Return the items with each picture of a gallery once. A carousel holds its pictures again, to go round."""
    made: list[Item] = []
    gallery: set[Image] = set()
    for item in items:
        if type(item) is not Image:
            gallery.clear()
        elif item in gallery:
            continue
        else:
            gallery.add(item)
        made.append(item)
    return tuple(made)


def _other(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element without a handler: a comment, a custom element, or an inline element."""
    tag = element.tag
    if not isinstance(tag, str):
        return skip
    if "-" in tag and not in_sentence(element):
        return block_tags.block_with_class(reader, element)
    return inline_tags.inline(reader, element)


def _button(reader: Reader, element: etree._Element) -> Leave:
    if in_sentence(element):
        return inline_tags.inline(reader, element)
    return block_tags.ENTER["button"](reader, element)


_ENTER: dict[Any, Enter] = {
    **dict.fromkeys(UNSEEN, lambda _reader, _element: skip),
    **inline_tags.ENTER,
    **block_tags.ENTER,
    "button": _button,
}
