"""Write simplified HTML: the short text of each block that a language model reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from lxml import etree, html

from scrapy_dripper.engines.qwen3.profile import V1Page, image_source
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.recover import xml_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

HTML = "{html}"
"""The placeholder for the blocks, which a prompt template must have exactly once."""
HEAD = '<html><head><meta charset="utf-8"></head><body>'
FOOT = "</body></html>"
"""The prompts of the published weights wrap the blocks in ``HEAD`` and ``FOOT``."""

MAX_NAME_CHARS = 40
"""Maximum length of a class or id attribute in the simplified HTML of the profile ``native``."""

ELLIPSIS = "..."
ITEM_ID = "_item_id"

_space = re.compile(r"\s+")


def simplify(page: Page, truncate_chars: int | None = 200) -> list[str]:
    """Return the simplified HTML of each block. Its outermost element has the attribute ``_item_id``, from 1 to n.

    Text is cut after ``truncate_chars`` characters, or never if that is None or 0. The limit applies to the text of a
    block in the profile ``native``, and to the text directly in an element in the profile ``v1.0``.
    """
    one = _v1 if isinstance(page, V1Page) else _native
    return [one(page, k, truncate_chars) for k in range(len(page.blocks))]  # type: ignore[arg-type]


def _native(page: Page, k: int, truncate_chars: int | None) -> str:
    """Return an element with the block's text, inside an ``<a>`` if most of the text is links."""
    node, text = page.tree.nodes[int(page.blocks.context[k])], page.blocks.text[k]
    root = _make(None, "div" if node.tag in ("html", "body") else node.tag)
    for name in ("class", "id"):
        value = _trimmed(node.get(name, ""))
        if value:
            root.set(name, value)
    linked = 2 * int(page.blocks.link_chars[k]) > len(text)
    inner = _make(root, "a") if linked and node.tag != "a" else root
    inner.text = _Budget(truncate_chars).cut(text)
    return _tagged(root, k)


def _trimmed(name: str) -> str:
    """Return as many names of a class or id attribute as fit into :data:`MAX_NAME_CHARS`."""
    names = xml_text(" ".join(name.split()))
    if len(names) <= MAX_NAME_CHARS:
        return names
    return names[: MAX_NAME_CHARS + 1].rpartition(" ")[0] or names[:MAX_NAME_CHARS]


class _Budget:
    """The remaining characters for the texts directly in one element. None or 0 means no limit."""

    __slots__ = ("left",)

    def __init__(self, chars: int | None) -> None:
        self.left = chars or None

    def cut(self, text: str | None) -> str | None:
        if not text:
            return None
        if self.left is not None and not text.isspace():
            if self.left == 0:
                return None
            if len(text) > self.left:
                text, self.left = text[: self.left] + ELLIPSIS, 0
            else:
                self.left -= len(text)
        return _space.sub(" ", xml_text(text))


def _v1(page: V1Page, k: int, truncate_chars: int | None) -> str:
    tree = page.tree
    context, last = int(page.blocks.context[k]), int(page.last[k])
    root, budget = _element(None, page.tag[k], tree.nodes[context]), _Budget(truncate_chars)
    root.text = budget.cut(page.lead[k])
    # The root also represents the container of a run, which is the parent of its nodes.
    made = {context: (root, budget, root.tag == "svg")}
    i = int(page.first[k])
    while i < last:
        if not page.shown[i]:
            i = int(tree.end[i])
            continue
        node = tree.nodes[i]
        parent, around, in_svg = made[int(tree.parent[i])]
        if page.ellipsis[i]:
            etree.SubElement(parent, "span").text = ELLIPSIS
        tag = node.tag
        if in_svg and tag == "img" and not node.get("src"):
            tag = "image"  # the parser turned it into <img>
        element, budget = _element(parent, tag, node), _Budget(truncate_chars)
        element.text, element.tail = budget.cut(node.text), around.cut(node.tail)
        made[i] = element, budget, in_svg or tag == "svg"
        i += 1
    if root.tag == "title":  # the reference implementation parses each block again, which wraps a title in a document
        title, root = root, _make(None, "html")
        _make(root, "head").append(title)
    return _tagged(root, k)


def _element(parent: HtmlElement | None, tag: str, source: HtmlElement) -> HtmlElement:
    element = _make(parent, tag)
    for name in ("src", "alt", "class", "id") if tag == "img" else ("class", "id"):
        value = source.get(name, "").strip()
        if name == "src":
            value = image_source(value)
        elif name == "class":
            value = " ".join(value.split())
        if value:
            element.set(name, xml_text(value))
    return element


def _make(parent: HtmlElement | None, tag: str) -> HtmlElement:
    try:
        made = html.Element(tag) if parent is None else etree.SubElement(parent, tag)
    except ValueError:  # a tag name such as ``p"x``
        made = _make(parent, "span")
    return cast("HtmlElement", made)


def _tagged(root: HtmlElement, k: int) -> str:
    root.set(ITEM_ID, str(k + 1))
    return etree.tostring(root, method="html", encoding="unicode")
