"""Turn a document into a page: decode it, parse it, and cut it into blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason, Metadata, attempt
from scrapy_dripper.declared import read_declared
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.charset import decoded, in_utf8
from scrapy_dripper.page.nodes import is_math_script
from scrapy_dripper.page.page import Over, Page, PageError
from scrapy_dripper.page.parse import accepted, enforce, parse
from scrapy_dripper.page.tags import DRAWN

if TYPE_CHECKING:
    from lxml.html import HtmlElement

__all__ = ["NATIVE", "Page", "PageError", "Profile", "document_tree", "read"]


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules for turning a document into a page."""

    name: str
    parse: Callable[..., HtmlElement]
    """Text to tree, given also as UTF-8 if the caller has that. Raises :exc:`PageError`."""
    cut: Callable[..., Page]
    """Tree and URL to page, given also what the page says of itself if the caller has read that."""


NATIVE = Profile("native", parse, cut)
"""The profile of the tagger."""


def document_tree(
    document: Document, config: Config, profile: Profile = NATIVE, flat: bool = False
) -> tuple[HtmlElement, Over | None]:
    """Return the tree of a document within the limits of the configuration, and the limit that cut it off, if any.

    With ``flat``, deeply nested elements become siblings. Raise :exc:`PageError` if the document cannot be parsed or
    exceeds a limit.
    """
    html = document.html
    text, data = (html, in_utf8(html)) if isinstance(html, str) else decoded(html, document.charset)
    root = parse(text, data, flat=True) if flat else profile.parse(text, data)
    return root, enforce(root, data, config)


def read(document: Document, config: Config, profile: Profile = NATIVE, engine_limit: int | None = None) -> Page:
    """Return the page of a document, cut by a profile. Raise :exc:`PageError` with the reason if that is not possible.

    ``engine_limit`` is the maximum number of blocks that the engine accepts, or None for no limit. A document without
    visible text is an error unless it has formulas that scripts would show. Its page then has no blocks.
    """
    limits, over = config.limits, None
    if len(document.html) > limits.bytes:
        setting = 'DRIPPER_LIMITS["bytes"]'
        over = accepted(Over(f"over {setting} = {limits.bytes:,} bytes", setting), config)
        document = replace(document, html=document.html[: limits.bytes])
    root, cut_off = document_tree(document, config, profile, False)
    # Cutting removes the head and scripts.
    declared = read_declared(root, document.url)
    metadata: Metadata | None = None
    if config.reads_metadata:
        from scrapy_dripper.declared.metadata import read_metadata  # for crawls that ask for it

        metadata = attempt("metadata", lambda: read_metadata(declared, root), [])  # the extractor tries again and tells
    page = profile.cut(root, document.url, declared)
    if page.tree.depth.max() >= limits.depth:
        root, cut_off = document_tree(document, config, profile, True)
        page = profile.cut(root, document.url, declared)
    over = over or cut_off
    n = len(page.blocks)
    if n == 0 and not _has_formula(page):
        raise PageError(FallbackReason.NO_BLOCKS, "no visible text")
    most, setting = limits.blocks, 'DRIPPER_LIMITS["blocks"]'
    too_many = Over(f"{n:,} blocks, over {setting} = {most:,}", setting)
    if engine_limit is not None and engine_limit < most:
        most, too_many = engine_limit, Over(f"{n:,} blocks, over the engine's limit of {engine_limit:,}")
    if n > most:
        over = over or accepted(too_many, config)
        page = page.first_blocks(most)
    return replace(page, over=over, config=config, metadata=metadata)


def _has_formula(page: Page) -> bool:
    """Return True if a page has a formula that is drawn or in a script. Not every script is a formula."""
    return any(node.tag == DRAWN or is_math_script(node) for node in page.tree.nodes)
