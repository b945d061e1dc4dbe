"""The metadata of documents that are no pages: those that cannot be parsed as a whole, or are over a limit."""

from __future__ import annotations

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Metadata
from scrapy_dripper.fallback.trees import limited_tree
from scrapy_dripper.page import PageError, metadata_of
from scrapy_dripper.page.charset import decode_html


def metadata(document: Document, config: Config) -> Metadata:
    """Return the metadata of a document, or of its first part. What cannot be read is None."""
    html = document.html[: config.max_bytes]
    try:
        root, _ = limited_tree(html if isinstance(html, str) else decode_html(html, document.charset))
    except (PageError, MemoryError):
        return Metadata()
    return metadata_of(root, document.url)
