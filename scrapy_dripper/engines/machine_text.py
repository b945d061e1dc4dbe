"""Remove text that nobody wrote for readers from the main content.

Some shops use style sheets to hide scrambled labels, and lists of fields for scripts. Some authors forget to remove the
placeholder text of a template.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import TAGS

Bools = npt.NDArray[np.bool_]

LEAST = 4
"""Minimum number of UUIDs in a scrambled label."""
LONGEST = 2
"""Maximum length of its other words. They are single letters, perhaps with punctuation."""
IMAGES = 8
"""Minimum number of URLs of images in a list of fields."""
SHARE = 0.2
"""Minimum share of the blocks of such a list that are URLs of images."""

_uuid = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I).fullmatch  # RFC 9562
_image = re.compile(r"https?://[^\s?]{1,500}\.(?:jpe?g|png|gif|webp|avif|svg)(?:\?\S{0,500})?", re.I).fullmatch
_is_placeholder = re.compile(r"lorem ipsum dolor sit amet", re.I).match
_LISTED = Flag.CODE | Flag.PREFORMATTED | Flag.TABLE
"""Elements in which UUIDs and placeholder text are content."""
_LIST = TAGS["dl"]


def without_machine_text(page: Page, main: Bools) -> Bools:
    """Return the labels, with False for text that is not for readers. All arrays have shape (n,) for n blocks.

    A *scrambled label*, such as "Sponsored", is written as single letters, each followed by a UUID, so that filters do
    not recognise it. A *list of fields* is a ``<dl>`` in which many blocks are URLs of images that are not links.
    *Placeholder text* begins with "Lorem ipsum dolor sit amet". It is kept if it is most of the main content, as on a
    test page, or if the title of the page contains "lorem".
    """
    texts = page.blocks.text
    kept = np.flatnonzero(main).tolist()
    scrambled = [i for i in kept if texts[i].count("-") >= 4 * LEAST and _is_scrambled(texts[i])]
    images = [i for i in kept if texts[i][:4] == "http" and not page.blocks.link_chars[i] and _image(texts[i])]
    placeholders = [i for i in kept if texts[i][:1] in "Ll" and _is_placeholder(texts[i])]
    if placeholders and ("lorem" in (page.title or "").lower() or _is_most(placeholders, kept, texts)):
        placeholders = []
    if not scrambled and not placeholders and len(images) < IMAGES:
        return main
    flags = page.tree.flags[page.blocks.context]
    labels: Bools = main.copy()
    labels[[i for i in (*scrambled, *placeholders) if not flags[i] & _LISTED]] = False
    for node, count in Counter(_list_around(page, i) for i in images).items():
        a, b = (int(page.tree.block_start[node]), int(page.tree.block_end[node])) if node >= 0 else (0, 0)
        if count >= max(IMAGES, SHARE * (b - a)):
            labels[a:b] = False
    return labels


def _is_scrambled(text: str) -> bool:
    words = text.split()
    ids = sum(_uuid(word) is not None for word in words)
    return ids >= LEAST and ids == sum(len(word) > LONGEST for word in words)


def _is_most(some: Sequence[int], all_of: Sequence[int], texts: Sequence[str]) -> bool:
    """Return True if some blocks are most of the text of all blocks. A text that is repeated counts once."""
    own, whole = ({texts[i] for i in blocks} for blocks in (some, all_of))
    return 2 * sum(map(len, own)) > sum(map(len, whole))


def _list_around(page: Page, block: int) -> int:
    """Return the innermost ``<dl>`` around a block, or -1."""
    tree = page.tree
    node = int(page.blocks.context[block])
    while node >= 0 and tree.tag[node] != _LIST:
        node = int(tree.parent[node])
    return node
