"""Repair trees in which libxml2 differs from browsers.

libxml2 implements HTML 4. It treats ``<source>`` and ``<embed>`` as elements with content, puts HTML5 content before
the first HTML 4 tag into the ``<head>``, and does not end a paragraph at a ``<section>``. An unclosed ``<svg>``, or a
``<template>`` with an unclosed tag, absorbs the rest of the page. It knows no shadow trees.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from lxml import etree

from scrapy_dripper.page.recover import set_attributes, xml_text
from scrapy_dripper.page.tags import ENDS_PARAGRAPH, METADATA, SVG_BREAKOUT, SVG_HTML, UNSEEN, VOID

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_EMPTIED = "dripper-emptied"
_raw = b"template|script|style|textarea|title|xmp|iframe|noembed|noframes|plaintext"
# A template must not hold raw text or comments, because its apparent start tag may be inside a script.
_template = re.compile(rb"<template\b[^<>]*>[^<]*(?:<(?!/?(?:" + _raw + rb")\b|!--)[^<]*)*</template\s*>", re.I)
_NESTED_TEMPLATES = 4
SHADOW_ROOT = b"shadow-root"
"""The tag of a shadow tree. As a custom element, it may stand in a line or hold blocks."""
_template_tags = re.compile(rb"<(/?)template\b([^<>]*)>", re.I)
_is_shadow = re.compile(rb"\sshadowrootmode\s*=\s*[\"']?(?:open|closed)\b", re.I).search


def without_templates(data: bytes) -> bytes:
    """Return a document without its templates, which are never shown.

    libxml2 ignores ``</template>`` while a ``<div>`` in the template is open, so the rest of the page would end up in
    it.
    """
    for _ in range(_NESTED_TEMPLATES):
        if b"<template" not in data:
            break
        data, found = _template.subn(b"", data)
        if not found:
            break
    return data


def with_shadow_trees(data: bytes) -> bytes:
    """Return a document with its declarative shadow trees as elements, in linear time. Other templates stay.

    A browser attaches ``<template shadowrootmode="open">`` to the element around it (HTML standard, 4.12.3). It is the
    one template that is shown. What a ``<slot>`` in it shows is the content of that element, which follows.
    """
    if b"shadowrootmode" not in data:
        return data
    is_shown: list[bool] = []  # of the templates that are open

    def tag(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"</%s>" % SHADOW_ROOT if is_shown and is_shown.pop() else match[0]
        is_shown.append(_is_shadow(match[2]) is not None)
        return b"<%s>" % SHADOW_ROOT if is_shown[-1] else match[0]

    return _template_tags.sub(tag, data)


def repair(root: HtmlElement) -> None:
    """Change a parsed tree to match that of a browser, in linear time."""
    special = list(root.iter("svg", *VOID))
    if special:
        pictures = [element for element in special if element.tag == "svg"]
        if len(pictures) < len(special):
            _empty([element for element in special if element.tag in VOID and (len(element) or element.text)], root)
        if pictures:
            _leave_pictures(pictures, root)
        if len(pictures) < len(special):
            for image in root.iter("image"):  # this includes SVG images, which are never used
                image.tag = "img"
    _end_paragraphs(root)
    _leave_head(root)


def _end_paragraphs(root: HtmlElement) -> None:
    """End paragraphs before HTML5 elements that end them in a browser (HTML standard, 13.2.6.4.7).

    Some sites omit ``</p>`` to save bytes. Without this, a whole article could end up in the paragraph before it, and
    be hidden with it.
    """
    ended: dict[HtmlElement, HtmlElement] = {}  # paragraph to the first element that ends it
    for element in root.iter(*ENDS_PARAGRAPH):
        paragraph = element.getparent()
        if paragraph is not None and paragraph.tag == "p":
            ended.setdefault(paragraph, element)
    for paragraph, first in ended.items():
        # A copy before the paragraph gets the content that it keeps; then its own tags are stripped. The rest of its
        # content, which can be most of the page, is not moved.
        twin = paragraph.makeelement("p")
        set_attributes(twin, paragraph.attrib)
        twin.text = xml_text(paragraph.text or "")
        paragraph.text = None
        paragraph.addprevious(twin)
        twin.extend(paragraph[: paragraph.index(first)])
        paragraph.tag = _EMPTIED
    if ended:
        etree.strip_tags(root, _EMPTIED)


def _empty(elements: list[HtmlElement], root: HtmlElement) -> None:
    """Move the content of each element to after the element."""
    for element in elements:
        # Insert an empty copy before the element, then strip its tags. Its content is not moved, however deep it is.
        twin = element.makeelement(element.tag)
        set_attributes(twin, element.attrib)
        element.addprevious(twin)
        element.tag = _EMPTIED
    if elements:
        etree.strip_tags(root, _EMPTIED)


def _leave_pictures(pictures: list[HtmlElement], root: HtmlElement) -> None:
    """End each SVG where a browser does: at the first HTML tag in it, such as ``<p>``, if text follows."""
    seen: set[HtmlElement] = set()
    ended: list[tuple[HtmlElement, HtmlElement]] = []
    for picture in pictures:
        if picture not in seen:
            ended += _ends(picture, seen)
    for first, picture in ended:
        _end_before(first, picture)
    if ended:
        etree.strip_tags(root, _EMPTIED)


def _ends(outermost: HtmlElement, seen: set[HtmlElement]) -> list[tuple[HtmlElement, HtmlElement]]:
    """Return the SVGs inside ``outermost`` that end early, each as a pair of the first HTML element in it and the SVG.

    All SVGs are added to ``seen``.
    """
    found: list[tuple[HtmlElement, HtmlElement]] = []
    # The SVGs around the current node, each with its first HTML element once there is one. All but the last have one.
    # None stands for an element whose content does not belong to the SVGs around it.
    around: list[tuple[HtmlElement, HtmlElement | None] | None] = []
    for event, node in etree.iterwalk(outermost, events=("start", "end")):
        tag = node.tag
        apart = tag in SVG_HTML or (tag in UNSEEN and tag != "svg")
        last = around[-1] if around else None
        if event == "end":
            if around and (last is None if apart else last is not None and last[0] is node):
                around.pop()
            continue
        if last is not None and last[1] is None and _breaks_out(node):
            around[-1] = (last[0], node)
        if node is not outermost and _is_text(node.tail):
            _end(around, found)
        if tag == "svg":
            seen.add(node)
            if not around or around[-1] is None or around[-1][1] is not None:
                around.append((node, None))
        if apart:
            around.append(None)
        elif tag == "img" or _is_text(node.text):
            _end(around, found)
    return found


def _end(
    around: list[tuple[HtmlElement, HtmlElement | None] | None], found: list[tuple[HtmlElement, HtmlElement]]
) -> None:
    """Move the SVGs that have an HTML element to ``found``, because text has followed it."""
    kept = []
    if around and around[-1] is not None and around[-1][1] is None:
        kept.append(around.pop())
    while around and around[-1] is not None:
        picture, first = cast("tuple[HtmlElement, HtmlElement]", around.pop())
        found.append((first, picture))
    around += kept


def _breaks_out(node: HtmlElement) -> bool:
    """Return True for a tag that ends an SVG (HTML 13.2.6.5)."""
    if node.tag == "font":
        return any(node.get(name) is not None for name in ("color", "face", "size"))
    return node.tag in SVG_BREAKOUT


def _is_text(text: str | None) -> bool:
    return bool(text) and not cast(str, text).isspace()


def _end_before(first: HtmlElement, picture: HtmlElement) -> None:
    """Remove everything before an element of an SVG, and mark the tags around the element to be stripped."""
    node = first
    while node is not picture:
        up = node.getparent()
        for sibling in list(node.itersiblings(preceding=True)):
            up.remove(sibling)
        up.text = None
        up.tag = _EMPTIED
        node = up


def _leave_head(root: HtmlElement) -> None:
    """Move everything in the head, from the first tag on that is not allowed there, to the start of the body."""
    head, body = root.find("head"), root.find("body")
    if head is None or body is None:
        return
    for i, child in enumerate(head):
        stays = child.tag in METADATA
        if stays and (not child.tail or child.tail.isspace()):
            continue
        lead = child.tail if stays else None  # for example, text after an always empty element such as <bgsound>
        moved = head[i + stays :]
        if stays:
            child.tail = None
        if moved:
            _add_tail(moved[-1], [body.text])
            body.text = lead
        else:
            body.text = xml_text((lead or "") + (body.text or ""))
        body[0:0] = moved
        return


def _add_tail(element: HtmlElement, texts: list[str | None]) -> None:
    text = "".join(filter(None, texts))
    texts.clear()
    if text:
        element.tail = xml_text((element.tail or "") + text)
