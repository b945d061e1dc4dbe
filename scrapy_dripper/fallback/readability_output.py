"""The fallback ``readability``: the article that readability-lxml finds. Importing this module imports readability."""

from __future__ import annotations

import logging
from dataclasses import replace

from lxml import etree
from readability import Document

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.trees import limited_tree, parse_all, title_of
from scrapy_dripper.fallback.whole_page import whole_page
from scrapy_dripper.page.recover import drop_controls

# It logs each page that it cannot process, which the fallback reports anyway.
if logging.getLogger("readability").level == logging.NOTSET:
    logging.getLogger("readability").setLevel(logging.CRITICAL)


class _Document(Document):  # type: ignore[misc]
    def get_clean_html(self) -> str:
        """Return the article with all of its attributes. Readability's search for some of them takes quadratic time."""
        return etree.tostring(self.html, encoding="unicode", method="html")


def by_readability(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the main content of a page as extracted by readability, with its defaults.

    Scripts, event handlers and invisible elements are removed. ``size`` is the length of the original document, which
    limits the size of the output.
    """
    root, truncated = limited_tree(text, flat=True)
    title = title_of(root)
    parse_all(root)
    drop_controls(root)  # it assigns texts, and lxml refuses some that it has parsed
    found = whole_page(_Document(root).summary(), url, config, size)
    return replace(found, title=title, source="fallback:readability", truncated=truncated or found.truncated)
