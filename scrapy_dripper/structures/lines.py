"""Lines that only a style keeps: those of poems, chats, posts and code in an element with ``white-space: pre``."""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
from lxml import etree

from scrapy_dripper.page.nodes import ends_line, in_sentence, inner_text
from scrapy_dripper.page.page import Flag, Styles, Tree
from scrapy_dripper.page.tags import tag_mask
from scrapy_dripper.structures.code import has_code_class

KEEPING = frozenset({"pre", "pre-wrap", "pre-line", "break-spaces", "preserve", "preserve-breaks"})
"""Values of ``white-space`` and ``white-space-collapse`` that show a line break of the source as one."""
_value = re.compile(r"white-space(?:-collapse)?\s{0,9}:\s{0,9}([a-z-]{1,20})", re.I).findall
_class = re.compile(
    r"(?:^|\s)(?:(?:[a-z]{1,12}-)?pre-(?:wrap|line)|(?:white-?space|ws)-(?:pre|break-spaces))(?=\s|$)"
).search
"""Finds the class of a framework for such a value, such as ``whitespace-pre-wrap`` of Tailwind CSS."""
_CODE = frozenset({"code", "samp", "kbd", "tt"})
_is_preformatted = tag_mask("pre", "listing", "xmp", "plaintext")


class Lines:
    """Which text of a page has lines to keep, and which elements are code for this reason.

    The nodes have to be entered in their order.
    """

    def __init__(self, tree: Tree, known: Styles) -> None:
        self._decided = _decided(tree, known)
        self._kept: dict[int, bool] = {}
        self._asked: set[int] = set()
        """The nodes that are in an element that could have been code, and was not."""

    def enter(self, i: int, around: int, element: etree._Element) -> bool:
        """Return True if the element of node i, in node ``around``, holds lines of code, and no block."""
        if not self._decided:
            return False
        self._kept[i] = kept = self._decided.get(i, self._kept.get(around, False))
        if around in self._asked:  # each element is read to its end once
            self._asked.add(i)
        elif kept and (element.tag in _CODE or has_code_class(element.get("class") or "")):
            self._asked.add(i)
            has_lines = "\n" in inner_text(element).strip() and not any(
                ends_line(node.tag) for node in islice(element.iter(), 1, None)
            )
            is_code = has_lines and not in_sentence(element)
            self._kept[i] = not (is_code or element.tag in _CODE)
            return is_code
        return False

    def kept(self, i: int) -> bool:
        """Return True if line breaks in the text of a node are shown."""
        return self._kept.get(i, False)


def _decided(tree: Tree, known: Styles) -> dict[int, bool]:
    """Return for each node whose tag, style or class decides it whether line breaks in its text are to be kept."""
    named = {name: _last(rule) for name, rule in known.items() if "white-space" in rule}
    found: dict[int, bool] = {}
    if named or _class(" ".join(tree.names)):
        for i, names in enumerate(tree.names):
            said = [named[name] for name in names.split() if name in named] if names and named else []
            if said or (names and _class(names)):
                found[i] = said[-1] if said else True
    for i in tree.may_hide:
        style = tree.nodes[i].get("style") or ""
        if "white-space" in style:
            found[i] = _last(style)
    if not any(found.values()):
        return {}
    # What is preformatted has its own lines.
    outside = {i: kept for i, kept in found.items() if not tree.flags[i] & Flag.PREFORMATTED}
    return outside | dict.fromkeys(np.flatnonzero(_is_preformatted[tree.tag]).tolist(), False)


def _last(declarations: str) -> bool:
    values = _value(declarations)
    return bool(values) and values[-1].lower() in KEEPING
