"""The metadata of documents that have no page, because they exceed a limit or cannot be parsed as a whole."""

from __future__ import annotations

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Metadata
from scrapy_dripper.fallback.trees import limited_tree
from scrapy_dripper.page import PageError, metadata_of
from scrapy_dripper.page.charset import decode_html


def metadata(document: Document, config: Config) -> Metadata:
    """Return the metadata of a document, or of its first part. Values that cannot be read are None."""
    html = document.html[: config.limits.bytes]
    try:
        root, _ = limited_tree(html if isinstance(html, str) else decode_html(html, document.charset))
    except (PageError, MemoryError):
        return Metadata()
    return metadata_of(root, document.url)
