"""Extract the blocks that a fallback chooses. The fallbacks ``html``, ``r4`` and ``title_paragraphs`` share this
module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.trees import limited_tree
from scrapy_dripper.output import NOTHING, write
from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.retrieval import plain_content

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Bools = npt.NDArray[np.bool_]


def by_blocks(
    name: str,
    choose: Callable[[Page], Bools],
    text: str,
    url: str,
    config: Config,
    size: int,
    prepare: Callable[[HtmlElement], None] | None = None,
) -> Extraction:
    """Return an extraction with the blocks that ``choose`` returns as a mask of shape (n,).

    Scripts, event handlers and invisible elements are removed. ``prepare`` may change the tree first. ``size`` is the
    length of the original document, which limits the size of the output.
    """
    root, truncated = limited_tree(text)
    if prepare is not None:
        prepare(root)
    page = cut(root, url)
    main = choose(page)
    some = main.any() or not len(main)  # a page of images has no blocks
    written = write(page, main, replace(config, oversize="truncate"), size) if some else NOTHING
    return Extraction(
        url=url,
        title=page.title,
        main_html=written.main_html,
        markdown=written.markdown,
        text=written.text,
        content=plain_content(written.content, config),
        source=f"fallback:{name}",
        truncated=truncated or written.truncated,
    )


def blocks_in(page: Page, nodes: Bools) -> Bools:
    """Return which blocks of a page have at least half of their text in nodes, which are a mask of shape (m,)."""
    tree, n = page.tree, len(page.blocks)
    owners = np.concatenate([tree.text_owner, tree.tail_owner])
    sizes = np.array(
        [len(node.text or "") for node in tree.nodes] + [len(node.tail or "") for node in tree.nodes], dtype=np.float64
    )
    inside = np.concatenate([nodes, nodes[tree.parent] & (tree.parent >= 0)])
    known = owners >= 0
    owners, sizes, inside = owners[known], sizes[known], inside[known]
    share = np.bincount(owners, sizes * inside, minlength=n)
    total = np.bincount(owners, sizes, minlength=n)
    return np.asarray((total > 0) & (2 * share >= total))
