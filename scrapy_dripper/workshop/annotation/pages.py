"""Prepare documents for labelling: cut them into blocks, and record what identifies them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from lxml.html import HtmlElement

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import Page, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.workshop.annotation.listing import one_line

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
