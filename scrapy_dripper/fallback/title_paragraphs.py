"""The fallback ``title_paragraphs``: the title and all paragraphs of a page.

It is the baseline of Yadav, "Main Content Extraction from Business Web Pages" (section 3.5): the text of the elements
``<title>`` and ``<p>``, with nothing filtered but scripts and styles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.characters import without_controls
from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.chosen import blocks_in, by_blocks
from scrapy_dripper.fallback.trees import title_of
from scrapy_dripper.page import Page

if TYPE_CHECKING:
    from lxml.html import HtmlElement


def by_title_and_paragraphs(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the title of a page as a heading, and its paragraphs.

    ``size`` is the length of the original document, which limits the size of the output.
    """
    headings: list[HtmlElement] = []

    def add_heading(root: HtmlElement) -> None:
        title, body = title_of(root), root.find("body")
        if title is None or body is None:
            return
        heading = body.makeelement("h1")
        heading.text, heading.tail, body.text = without_controls(title), body.text, None
        body.insert(0, heading)
        headings.append(heading)

    def choose(page: Page) -> npt.NDArray[np.bool_]:
        tree = page.tree
        inside = np.zeros(len(tree.nodes), dtype=np.bool_)
        for i, node in enumerate(tree.nodes):
            inside[i] = node.tag == "p" or node in headings or (i > 0 and inside[tree.parent[i]])
        return blocks_in(page, inside)

    return by_blocks("title_paragraphs", choose, text, url, config, size, add_heading)
