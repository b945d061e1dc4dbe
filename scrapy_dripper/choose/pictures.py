"""Choose the images and players at the edges of the main content, between a main block and one that is not."""

from __future__ import annotations

import re

import numpy as np
from lxml import etree

from scrapy_dripper.page.page import Bools, Flag, Page, Tree, block_behind
from scrapy_dripper.page.tags import LONGEST_CLASS, MEDIA, PLAYERS, TAGS
from scrapy_dripper.page.vocabulary import BESIDE, either
from scrapy_dripper.structures import NEARLY_ALL

_CAPTIONS = 2
"""Maximum number of blocks beside an image, such as captions, if it is to belong to the text around it."""
_LONGEST_CAPTION = 600
_LEAD_BLOCKS, _SMALLEST = 3, 120
"""Most main blocks above a lead picture, and most blocks between; and its least width and height in pixels."""
_CONTROLS = 5
"""Most links and buttons that may be between them as well, above a picture that is in no link, list or table."""
_PART_OF_OTHER = int(Flag.LINK | Flag.LIST | Flag.TABLE)  # the operators of IntFlag are slow

_media = frozenset(TAGS[tag] for tag in MEDIA)
_players = PLAYERS | {"iframe", "mjx-container"}
_beside = re.compile(rf"(?:^|[\s_-])(?:{either(BESIDE)})(?=[\s_-]|$)").search
_parts = re.compile(r"[/.?&=]+").sub


def pictures(page: Page, main: Bools, left: list[int]) -> list[int]:
    """Return those of the nodes in gaps that belong to main content on one side, such as the first image of an article.

    The smallest element with blocks around a node decides. Nodes with a class or id of icons, advertisements and the
    like are skipped.
    """
    tree = page.tree
    total: list[int] = np.concatenate([[0], np.cumsum(main)]).tolist()  # how many blocks before each one are main
    start, end, parent, owner = (
        column.tolist() for column in (tree.block_start, tree.block_end, tree.parent, tree.self_owner)
    )
    found: list[int] = []
    holders: dict[int, int] = {}  # element without blocks to the smallest element with blocks around it, or -1
    for i in left:
        if not (tree.tag[i] in _media or tree.nodes[i].tag in _players):
            continue
        gap = block_behind(owner[i])
        controls = 0 if tree.flags[i] & _PART_OF_OTHER else _CONTROLS
        beside, leads = bool(main[max(gap - 1, 0) : gap + 1].any()), _leads(page, main, total, gap, controls)
        if not (beside or leads):
            continue
        way = []
        at = i
        while at not in holders and start[at] == end[at] and not _is_beside(tree.names[at]):
            way.append(at)
            at = parent[at]
        around = holders.get(at, at if start[at] < end[at] else -1)
        holders |= dict.fromkeys(way, around)
        if around >= 0 and _belongs(page, main, total, i, around, beside=beside, leads=leads):
            found.append(i)
    return found


def _belongs(page: Page, main: Bools, total: list[int], node: int, around: int, *, beside: bool, leads: bool) -> bool:
    """Return True if a node belongs to main content, given the smallest element with blocks around it.

    It leads the text, with only a byline or a caption between them; or all text of its element is main, or the main
    text beside it and not the other text; or it is a figure with its caption, between main texts or at their end.
    """
    tree, texts, n = page.tree, page.blocks.text, len(main)
    gap, a, b = block_behind(int(tree.self_owner[node])), int(tree.block_start[around]), int(tree.block_end[around])
    if leads and not _is_beside(tree.names[around]) and _is_picture(tree.nodes[node]):
        return True
    if not beside or total[b] - total[a] == b - a:
        return beside
    before, behind = a <= gap - 1 < b, a <= gap < b
    if 0 < gap < n and before != behind and main[gap - 1 if before else gap]:
        return True
    if b - a > _CAPTIONS or any(len(text) > _LONGEST_CAPTION for text in texts[a:b]):
        return False
    if a > 0 and b < n and main[a - 1] and main[b] and total[b] == total[a]:
        return not (page.blocks.links[a:b].any() or _is_beside(tree.names[around]))
    return _ends_text(tree, around, main)


def _ends_text(tree: Tree, around: int, main: Bools) -> bool:
    """Return True for a figure with a caption that is not main, right behind main text in the same element."""
    a, up = int(tree.block_start[around]), int(tree.parent[around])
    return tree.nodes[around].tag == "figure" and up >= 0 and int(tree.block_start[up]) < a and bool(main[a - 1])


def _leads(page: Page, main: Bools, total: list[int], gap: int, controls: int) -> bool:
    """Return True for a gap near the beginning of the main content, with main blocks a few short blocks away."""
    if not 0 < total[min(gap, len(main))] <= _LEAD_BLOCKS:
        return False
    first = next((k for k in range(gap - 1, max(-1, gap - 2 - _LEAD_BLOCKS - controls), -1) if main[k]), -1)
    last = next((k for k in range(gap, min(len(main), gap + 1 + _CAPTIONS)) if main[k]), -1)
    if first < 0 or last < 0 or page.blocks.links[gap:last].any():
        return False
    lines = sum(not _is_control(page, k) for k in range(first + 1, gap)) if controls else gap - 1 - first
    return lines <= _LEAD_BLOCKS and all(len(text) <= _LONGEST_CAPTION for text in page.blocks.text[first + 1 : last])


def _is_control(page: Page, block: int) -> bool:
    """Return True for a block that is a button, or nothing but links."""
    blocks = page.blocks
    is_button = bool(page.tree.flags[blocks.context[block]] & Flag.BUTTON)
    return is_button or bool(blocks.link_chars[block] >= NEARLY_ALL * len(blocks.text[block]))


def _is_picture(element: etree._Element) -> bool:
    """Return True for an image that is large enough for a picture, judging by its attributes."""
    if element.tag != "img" or _beside(" " + _parts(" ", (element.get("src") or "")[:LONGEST_CLASS].lower())):
        return False
    sizes = [
        int(value) for name in ("width", "height") if (value := element.get(name, "")).isdecimal() and len(value) < 6
    ]
    return min(sizes, default=_SMALLEST) >= _SMALLEST


def _is_beside(names: str) -> bool:
    return _beside(names[:LONGEST_CLASS].lower()) is not None
