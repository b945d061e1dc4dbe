"""Prepare pages for labelling: cut them into blocks, record what identifies them, and list a line for each block."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from lxml.html import HtmlElement

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.parse import parse

PROFILE = "native"
_BOM = b"\xef\xbb\xbf"
_STEM = 80  # characters of an input's name in an id

_unsafe = re.compile(r"[^\w.+,=@()-]+")  # not portable in file names


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A page to label."""

    id: str
    """Name of the input and the first 8 digits of its hash: stable across runs and unique for each page."""
    name: str
    """The input as given."""
    url: str
    """The URL of the page, or its canonical URL; empty if both are unknown."""
    title: str
    sha256: str
    """Hash of the uncompressed document."""
    cut: str
    """SHA-256 of the texts of the blocks, because labels are only valid for these blocks."""
    document: Document
    page: Page

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.page.blocks)

    def utf8(self) -> bytes:
        """Return the document in UTF-8, with a byte order mark if it was in another encoding."""
        data = self.document.html
        if isinstance(data, str):
            return _BOM + data.encode("utf-8", "replace")
        text = decode_html(data, self.document.charset)
        return data if data.removeprefix(_BOM) == text.encode() else _BOM + text.encode("utf-8", "replace")


def sheet(document: Document, name: str, stem: str) -> Sheet:
    """Return the sheet of a document. Raise :exc:`PageError` if it has no blocks."""
    page = read(document, Config())
    html = document.html if isinstance(document.html, str) else decode_html(document.html, document.charset)
    data = document.html if isinstance(document.html, bytes) else document.html.encode("utf-8", "replace")
    sha256 = hashlib.sha256(data).hexdigest()
    cut = hashlib.sha256("\0".join(page.blocks.text).encode("utf-8", "replace")).hexdigest()
    return Sheet(
        id=f"{_unsafe.sub('-', stem)[:_STEM]}-{sha256[:8]}",
        name=name,
        url=one_line(document.url or declared_url(parse(html))),
        title=one_line(page.title or ""),
        sha256=sha256,
        cut=cut,
        document=document,
        page=page,
    )


def declared_url(root: HtmlElement) -> str:
    """Return the URL that a page declares as its own, or an empty string. Training needs it to separate hosts."""
    links = (n.get("href", "") for n in root.iter("link") if "canonical" in (n.get("rel") or "").lower().split())
    metas = (n.get("content", "") for n in root.iter("meta") if n.get("property") == "og:url")
    addresses = (address.strip() for address in (*links, *metas))
    return next((str(one) for one in addresses if one.lower().startswith(("http://", "https://"))), "")


MAX_CHARS = 400
"""Number of characters to show of a block."""

_LEVELS = 4  # ancestors in a path
_NAME = 24  # characters of a class name
# Flags must not have the name of a label.
FLAGS = {
    Flag.NAV: "nav",
    Flag.HEADER: "header",
    Flag.FOOTER: "footer",
    Flag.ASIDE: "aside",
    Flag.MAIN: "main-element",
    Flag.ARTICLE: "article",
    Flag.FORM: "form",
    Flag.DIALOG: "dialog",
    Flag.BUTTON: "button",
    Flag.HEADING: "heading",
    Flag.HIDDEN: "hidden",
    Flag.NOSCRIPT: "noscript",
}
"""Names of the flags that are shown to annotators."""
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class BlockLine:
    """The line of a block. No field holds line breaks or control characters."""

    id: int
    path: str
    """The block's element and its ancestors, each with its first class: ``div.post>p``."""
    flags: tuple[str, ...]
    linked: int
    """Percentage of the text in links."""
    same_as: int
    """Id of the first block with the same text, or 0 if this is the first."""
    text: str


def listing(page: Page) -> list[BlockLine]:
    """Return one line per block, in document order. Texts over :data:`MAX_CHARS` are shortened in the middle."""
    blocks, tree = page.blocks, page.tree
    seen: dict[str, int] = {}
    lines = []
    for i, text in enumerate(blocks.text):
        context = int(blocks.context[i])
        flags = int(tree.flags[context] | tree.flags[int(blocks.leaf[i])])
        text = one_line(text)
        first = seen.setdefault(text, i + 1)
        lines.append(
            BlockLine(
                id=i + 1,
                path=_path(page, context),
                flags=tuple(name for flag, name in FLAGS.items() if flags & flag),
                linked=min(100, round(100 * int(blocks.link_chars[i]) / max(1, len(text)))),
                same_as=first if first <= i else 0,
                text=shorten(text, MAX_CHARS),
            )
        )
    return lines


def one_line(text: str) -> str:
    """Return the text on one line, without control and other invisible characters."""
    text = " ".join(text.split())  # all characters that can end a line count as white space here
    if text.isascii() and text.isprintable():
        return text
    return " ".join("".join(c for c in text if _visible(c)).split())


def shorten(text: str, most: int) -> str:
    """Return the text, or its beginning and end with the number of omitted characters between them."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head].rstrip()} [... {len(text) - most} characters ...] {text[-tail:].lstrip()}"


def _visible(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def _path(page: Page, i: int) -> str:
    tree = page.tree
    parts: list[str] = []
    while i > 0 and len(parts) < _LEVELS:
        names = tree.names[i].split()
        name = "".join(c for c in names[0] if c.isalnum() or c in "-_")[:_NAME] if names else ""
        tag = "".join(c for c in str(tree.nodes[i].tag) if c.isalnum() or c in "-_:")[:_NAME]
        parts.append(f"{tag}.{name}" if name else tag)
        i = int(tree.parent[i])
    return ">".join(reversed(parts)) or "html"
