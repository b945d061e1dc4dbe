"""The fallback ``html``: all visible content of a page counts as main content."""

from __future__ import annotations

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.chosen import by_blocks


def whole_page(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return an extraction in which every block is main. Scripts, event handlers and invisible elements are removed.

    ``size`` is the length of the original document, which limits the size of the output.
    """
    return by_blocks("html", lambda page: np.ones(len(page.blocks), dtype=np.bool_), text, url, config, size)
