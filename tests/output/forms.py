"""The output of a page that is main as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.output import Written, write
from scrapy_dripper.page import read


def forms_of(html: str, url: str = "https://example.org/", **options: Any) -> Written:
    """Return all forms of a page of which every block is main."""
    config = Config(**options)
    page = read(Document(html, url), config)
    return write(page, mask_of(page, np.ones(len(page.blocks), dtype=np.bool_)), config)
