"""What a page says about itself: Trafilatura's metadata. Importing this module imports Trafilatura."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from trafilatura.metadata import extract_metadata

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Metadata
from scrapy_dripper.fallback import limited_tree
from scrapy_dripper.output.reader import resolver
from scrapy_dripper.page.decode import decode
from scrapy_dripper.page.recover import drop_controls
from scrapy_dripper.trafilatura_output import limit_caches

if TYPE_CHECKING:
    from lxml.html import HtmlElement

logger = logging.getLogger(__name__)

_language = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*").fullmatch


def metadata(document: Document, config: Config) -> Metadata:
    """Return what a document says about itself. Never raises: what cannot be read is not there."""
    html = document.html[: config.max_bytes]
    limit_caches(len(html))
    try:
        root, _ = limited_tree(html if isinstance(html, str) else decode(html, document.charset))
        drop_controls(root)
        language = _language_of(root)
        # Not the extensive search for dates, which takes as long as all the rest and guesses more.
        found = extract_metadata(root, default_url=document.url or None, extensive=False)
        resolve = resolver(found.url or document.url)
        return Metadata(
            title=found.title or None,
            author=found.author or None,
            date=found.date or None,
            language=language,
            site_name=found.sitename or None,
            url=found.url or None,
            description=found.description or None,
            image=resolve(found.image) or None if found.image else None,
        )
    except Exception:
        logger.debug("no metadata of %(url)s", {"url": document.url}, exc_info=True)
        return Metadata()


def _language_of(root: HtmlElement) -> str | None:
    """Return the language that a document is marked with; Trafilatura's own is a guess from the text."""
    meta = root.find(".//meta[@http-equiv='content-language']")
    for written in (root.get("lang"), root.get("xml:lang"), None if meta is None else meta.get("content")):
        match = _language((written or "").strip())
        if match:
            return match[0].replace("_", "-")
    return None
