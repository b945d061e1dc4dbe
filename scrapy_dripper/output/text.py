"""Labels to plain text."""

from __future__ import annotations

from itertools import compress

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Page


def text(page: Page, main: npt.NDArray[np.bool_]) -> str:
    """Return the text of the main blocks, one per line or more, white space collapsed outside preformatted text."""
    return "\n".join(compress(page.blocks.text, main.tolist()))
