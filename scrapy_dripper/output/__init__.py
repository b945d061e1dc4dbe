"""Labels to text: Main-HTML, Markdown and plain text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_dripper.output.main_html import main_html
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.text import text
from scrapy_dripper.page.page import Page

__all__ = ["write"]


def write(page: Page, main: npt.NDArray[np.bool_]) -> tuple[str, str, str]:
    """Return the Main-HTML, the Markdown and the text of a page whose blocks are labelled."""
    html = main_html(page, main)
    return html, markdown(html, page.base_url), text(page, main)
