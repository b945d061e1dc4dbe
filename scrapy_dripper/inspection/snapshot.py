"""A static copy of a page: HTML that runs and loads nothing, with a mark on each block."""

from __future__ import annotations

import re
from typing import cast

from lxml import etree

from scrapy_dripper.characters import without_controls
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.output.main_html import ATTRIBUTES, MATHML
from scrapy_dripper.page import Page, PageError, document_tree
from scrapy_dripper.page.tags import TAGS

MARK = "data-dripper-block"
"""Attribute with the number of a block, from 1, on the element of the block or on each piece of its text."""
STYLE = "data-dripper-style"
"""Attribute with the ``style`` of an element. The outer document applies it, because its policy allows no styles."""
PIECE = "dripper-piece"
"""Element around a piece of text that has no element of its own."""
MAX_PICTURE = 30_000
"""Maximum length of an embedded image, in characters. Larger images are left out."""
MAX_VALUE = 1_000
"""Maximum length of a ``data-*`` attribute, in characters. Longer values are data, which style sheets do not use."""
MAX_STYLES = 1_000_000
"""Maximum length of all style sheets of a page, in characters."""

# Attributes that load, link, run, or shadow a property of the document or of a form.
_ATTRIBUTES = (ATTRIBUTES | {"bgcolor", "hidden", "aria-label"}) - frozenset(
    "href src srcset poster data cite name form usemap content headers media sizes".split()
)
_PLAIN = frozenset(
    "form frameset noscript xmp listing plaintext noframes template textarea title iframe script video audio picture "
    "source track image dialog".split()
)
"""Tags that become a plain element, because of what they do or because browsers parse their content differently."""
_BARE_ID = frozenset("button fieldset input object output select".split())
_picture = re.compile(r"data:image/(?:png|jpe?g|gif|webp|avif|bmp|x-icon)[;,]", re.I).match
# The policy would block these, too, but browsers would report each of them. The bound keeps the pattern linear.
_address = re.compile(r"url\((?!\s{0,9}[\"']?data:image/)[^()]*\)", re.I)
_custom = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+").fullmatch
_name = re.compile(r"[a-z][a-z0-9-]*").fullmatch


def snapshot(page: Page) -> str:
    """Return the page as HTML with its blocks marked, in time linear in the page.

    Scripts, frames, links and forms are removed, and so are all URLs except small embedded images. The result must
    still be shown in a frame without scripts, under a policy that loads nothing.
    """
    tree = page.tree
    alone = _alone(page)
    inside = -1  # the end of the subtree of the element that is marked as a whole
    made: list[etree._Element] = []
    end, parent = tree.end.tolist(), tree.parent.tolist()
    text_owner, tail_owner = tree.text_owner.tolist(), tree.tail_owner.tolist()
    for i, source in enumerate(tree.nodes):  # in document order, so what is appended to a parent is at its place
        above = made[parent[i]] if parent[i] >= 0 else None
        element = _element(source, above)
        made.append(element)
        if i in alone:
            element.set(MARK, str(alone[i] + 1))
            inside = end[i]
        whole = i < inside
        text = "" if element.tag == "img" or source.tag in ("script", "iframe") else source.text
        if text and not _piece(element, text, -1 if whole else text_owner[i]):
            element.text = without_controls(text)
        # A tail belongs to the parent, so it is not part of an element that is marked as a whole.
        owner = -1 if whole and i not in alone else tail_owner[i]
        if above is not None and source.tail and not _piece(above, source.tail, owner):
            element.tail = without_controls(source.tail)
    root = made[0]
    root.tag = "html"
    return etree.tostring(root, method="html", encoding="unicode")


def style_sheets(document: Document, config: Config) -> list[tuple[str, str]]:
    """Return the style sheets in a page, each with its media query, or an empty string if it has none."""
    try:
        root, _ = document_tree(document, config)
    except PageError:
        return []
    sheets: list[tuple[str, str]] = []
    left = MAX_STYLES
    for style in root.iter("style"):
        text = without_controls(style.text or "").strip()
        if not text or len(text) > left or style.getparent().tag == "noscript":
            continue
        left -= len(text)
        sheets.append((" ".join((style.get("media") or "").split())[:200], _address.sub("none", text)))
    return sheets


def _alone(page: Page) -> dict[int, int]:
    """Return the blocks that are the only content of their element, by the number of the element."""
    tree = page.tree
    single = tree.block_end - tree.block_start == 1
    return {
        i: k
        for k, i in enumerate(page.blocks.context.tolist())
        if single[i] and tree.nodes[i].tag not in ("html", "body", "tr", "tbody", "frameset")
    }


def _piece(parent: etree._Element, text: str, owner: int) -> bool:
    """Append a text to its parent as a piece of a block. Return False if it is of none, or only white space."""
    text = without_controls(text)
    if owner < 0 or text.isspace():
        return False
    etree.SubElement(parent, PIECE, {MARK: str(owner + 1)}).text = text
    return True


def _element(source: etree._Element, parent: etree._Element | None) -> etree._Element:
    original = str(source.tag)
    tag = original
    if tag in _PLAIN or not (tag in TAGS or tag in MATHML or _custom(tag)):
        tag = "div" if tag in ("form", "frameset", "noscript", "noframes", "dialog") else "span"
    if tag.startswith("dripper-"):
        tag = "span"
    attributes: dict[str, str] = {}
    for name, value in cast("list[tuple[str, str]]", source.items()):
        if name == "style":
            attributes[STYLE] = _address.sub("none", without_controls(value))
        elif name == "href" and tag == "a":
            attributes["href"] = "#"  # looks like a link, and leads nowhere
        elif name == "src" and tag == "img" and _picture(value) and len(value) <= MAX_PICTURE:
            attributes["src"] = without_controls(value)
        elif (name in _ATTRIBUTES and not (name == "id" and tag in _BARE_ID)) or _shown_data(name, value):
            attributes[name] = without_controls(value)
    if original == "dialog" and "open" not in attributes:
        attributes["hidden"] = ""
    return etree.Element(tag, attributes) if parent is None else etree.SubElement(parent, tag, attributes)


def _shown_data(name: str, value: str) -> bool:
    """Return True for ``data-*`` attributes that style sheets may use, except our own."""
    ours = name.startswith("data-dripper")
    return name[:5] == "data-" and len(value) <= MAX_VALUE and not ours and _name(name) is not None
