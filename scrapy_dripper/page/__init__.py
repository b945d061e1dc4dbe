"""Bytes to a page: decode, parse, cut into blocks."""

from __future__ import annotations

from dataclasses import replace

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, FallbackReason
from scrapy_dripper.page.blocks import MAX_NODES
from scrapy_dripper.page.decode import decode
from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.profiles import PROFILES

__all__ = ["Page", "PageError", "read"]


def read(document: Document, config: Config, profile: str = "native") -> Page:
    """Return the page of a document, cut by a profile. Raise :exc:`PageError` with the reason why there is none."""
    html = document.html
    truncate = config.oversize == "truncate"
    oversize = len(html) > config.max_bytes
    if oversize and not truncate:
        raise PageError(FallbackReason.OVERSIZE, f"{len(html):,} bytes, over DRIPPER_MAX_BYTES = {config.max_bytes:,}")
    if oversize:
        html = html[: config.max_bytes]
    text = html if isinstance(html, str) else decode(html, document.charset)
    rules = PROFILES[profile]
    page = rules.cut(rules.parse(text), document.url)
    if page.truncated and not truncate:
        raise PageError(FallbackReason.OVERSIZE, f"more than {MAX_NODES:,} elements")
    n = len(page.blocks)
    if n == 0:
        raise PageError(FallbackReason.NO_BLOCKS, "no visible text")
    if n > config.max_blocks:
        if not truncate:
            raise PageError(FallbackReason.OVERSIZE, f"{n:,} blocks, over DRIPPER_MAX_BLOCKS = {config.max_blocks:,}")
        page = page.head(config.max_blocks)
    return replace(page, truncated=page.truncated or oversize, oversize=config.oversize)
