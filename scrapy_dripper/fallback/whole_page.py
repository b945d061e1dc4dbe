"""The fallback ``html``: all visible content of a page counts as main content."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Extraction
from scrapy_dripper.fallback.trees import limited_tree
from scrapy_dripper.output import write
from scrapy_dripper.page.blocks import cut


def whole_page(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return an extraction in which every block is main. Scripts, event handlers and invisible elements are removed.

    ``size`` is the length of the original document, which limits the size of the output.
    """
    root, truncated = limited_tree(text)
    page = cut(root, url)
    written = write(page, np.ones(len(page.blocks), dtype=np.bool_), replace(config, oversize="truncate"), size)
    return Extraction(
        url=url,
        title=page.title,
        main_html=written.main_html,
        markdown=written.markdown,
        text=written.text,
        content=written.content,
        source="fallback:html",
        truncated=truncated or written.truncated,
    )
