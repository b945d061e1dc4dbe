"""Give items their places on a rendered page, which few pages have.

The attribute ``data-bbox``, which a script in a user's browser writes, has four numbers in CSS pixels, between commas:
left, top, width and height, as ``getBoundingClientRect`` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from lxml import etree

from scrapy_dripper.output.reader import Enter, Leave, Reader, skip
from scrapy_dripper.page.nodes import ends_line
from scrapy_dripper.structures.items import Box, Boxed

BOX = "data-bbox"
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
