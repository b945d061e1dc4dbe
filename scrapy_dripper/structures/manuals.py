"""The lines at the head and foot of a manual by which a reader turns its pages: next, previous, up, contents, index.

Texinfo, DocBook, LaTeX2HTML, man pages and authors write them as text within the content. Models take them for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from scrapy_dripper.page.nodes import SHORT, short_text
from scrapy_dripper.page.page import Bools, Flag, Page, Tree
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import Group, either

PANELS: Group = ("nav-?(?:header|footer|panel|buttons?)", "crosslinks", "prev-?next", "page-?nav(?:igation)?")
"""Classes of panels with such links, complete: of DocBook, Texinfo, TeX4ht and others."""
_PART = "(?: (?:page|chapter|section|topic|part|lesson|article|node))?"
TURNS: Group = (
    *(f"prev(?:ious)?{_PART}", f"next{_PART}", "up", "top", "home"),
    *("first", "last", "start", "node", "parent", "front"),
    *("forward", "backward", "prev-?tail", "tail", "main page", "home ?page", "title page", "(?:table of )?contents"),
    *("toc", "index", "(?:back|return|go back) to (?:the )?(?:main |table of )?(?:index|contents|toc|page|start|menu)"),
    *("zurück", "weiter", "hoch", "nach oben", "startseite", "inhalt", r"\w{0,9}verzeichnis", "zur übersicht"),
    *("(?:nächste|vorherige)[rs]?(?: seite| kapitel)?", "(?:page |chapitre )?(?:précédent|suivant)e?", "accueil"),
    *("sommaire", "table des matières", "remonter", "retour(?: au sommaire| à l.index)?", "anterior", "siguiente"),
    *("(?:volver al )?índice", "contenido", "inicio", "arriba", "próxim[oa]", "seguinte", "sumário", "conteúdo"),
    *("início", "acima", "precedente", "successiv[oa]", "indietro", "avanti", "indice", "sommario", "vorige"),
    *("volgende", "omhoog", "inhoud(?:sopgave)?", "terug", "poprzedni[ae]?", "następn[yae]", "w górę", "spis treści"),
    *("indeks", "powrót", "föregående", "nästa", "upp", "innehåll", "назад", "впер[её]д", "вверх", "наверх", "далее"),
    *("(?:предыдущ|следующ)(?:ая|ий|ее)(?: глава| раздел| страница)?", "содержание", "оглавление", "указатель"),
    *("на главную", "[前次上](?:へ|の(?:ページ|章|節))?", "目次", "索引", "トップ(?:へ)?", "ホーム", "戻る"),
    *("[上下]一[页頁章节節篇]", "上一级", "目[录錄]", "首[页頁]", "返回(?:目[录錄])?"),
    *("이전", "다음", "위로", "목차", "색인"),
)
"""What such links are called, complete, or what stands before the title of the page that they lead to."""
INDEX = r"(?:[\w-]{1,30} ){1,2}index"
"""The name of one of several indexes."""
ROLES = frozenset(
    {"prev", "previous", "next", "up", "index", "contents", "toc", "start", "first", "last", "top", "home"}
)
"""Values of ``rel`` of such links."""

_panel = re.compile(rf"\s(?:{either(PANELS)})(?=\s|$)")
_turns = re.compile(rf"(?:{either(TURNS)})").fullmatch
_is_index = re.compile(INDEX).fullmatch
_pieces = re.compile(r"[^\w\s'’-]+").split
_words = re.compile(r"\w[\w'’-]*").findall
_letter = re.compile(r"[^\W\d_]").search
_LINK = TAGS["a"]
MOST_CHARS, MOST_BLOCKS = 400, 24
"""Maximum number of characters and blocks of such a line."""
SENTENCE = 12
"""Minimum number of words of what is no title of a page."""
LEVELS = 5
"""Number of elements around a block that may be such a line: a cell, a row, a table, its part, and an element around
it."""
MOST_BESIDE = 4
"""Number of main blocks between such lines and the head or foot of the content, such as a headline or a copyright."""
MOST_LINES = 8
"""Maximum number of such lines at the head, and at the foot."""


def page_turns(page: Page, main: Bools, matching: Callable[..., list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the blocks a to b - 1 of each such line at the head or foot of the main content.

    What stands below a heading within the text is content, whatever it is called. ``matching`` returns the nodes with a
    class or id that a pattern finds.
    """
    shown = np.flatnonzero(main).tolist()
    if not page.blocks.links[shown].any():
        return
    spans = (page.tree.block_start, page.tree.block_end)
    panels = {tuple(int(column[node]) for column in spans) for node in matching(_panel, "nav", "cross", "prev")}
    is_heading = page.tree.flags[page.blocks.context] & Flag.HEADING != 0
    announces = is_heading.copy()
    announces[np.flatnonzero(main & is_heading)[:1]] = False  # the headline does so for the page
    for blocks in (shown, shown[::-1]):
        a = b = beside = found = 0
        for block in blocks:
            if a <= block < b:
                continue
            line = _line_around(page, block, panels, is_heading)
            if line is not None and not announces[shown[max(0, bisect_left(shown, line[0]) - 1)]]:
                yield line
                a, b = line
                found += 1
            else:
                beside += 1
            if beside > MOST_BESIDE or found == MOST_LINES:
                break


def _line_around(page: Page, block: int, panels: set[tuple[int, ...]], stops: Bools) -> tuple[int, int] | None:
    """Return the blocks of the largest line around a block, without any that stops it, or None if it is in none."""
    node, a, b = int(page.blocks.context[block]), block, block + 1
    found = None
    for _ in range(LEVELS):
        if node < 0 or b - a > MOST_BLOCKS or sum(map(len, page.blocks.text[a:b])) > MOST_CHARS or stops[a:b].any():
            break
        if (a, b) in panels or (page.blocks.links[a:b].any() and _turns_pages(page, node, a, b)):
            found = a, b
        node = page.around(node, a, b)
        a, b = int(page.tree.block_start[node]), int(page.tree.block_end[node])
    return found


def _turns_pages(page: Page, node: int, a: int, b: int) -> bool:
    """Return True if at least half of the links and names in some blocks of a node turn pages.

    These are two or more, or one link outside of a list, and nothing else.
    """
    tree = page.tree
    links: set[int] = set()
    names: list[str] = []
    for owners, is_tail in ((tree.text_owner, False), (tree.tail_owner, True)):
        within = owners[node : tree.end[node]]
        found = (np.flatnonzero((within >= a) & (within < b)) + node).tolist()
        if len(found) > SHORT:
            return False
        for i in found:
            link = _link_around(tree, int(tree.parent[i]) if is_tail else i)
            if link is None:
                names += _pieces((tree.nodes[i].tail if is_tail else tree.nodes[i].text) or "")
            else:
                links.add(link)
    by_role = {i for i in links if not ROLES.isdisjoint((tree.nodes[i].get("rel") or "").lower().split())}
    names += (short_text(tree.nodes[i]) or "" for i in links - by_role)
    called = [" ".join(_words(name.lower())) for name in names if _letter(name)]
    turning = len(by_role) + sum(map(bool, map(_turns, called)))
    indexes = sum(map(bool, map(_is_index, called)))
    turning += indexes if turning or indexes > 1 else 0
    others = len(by_role) + len(called) - turning
    if any(name.count(" ") >= SENTENCE for name in called):
        return False
    if turning == 1:
        return not others and not tree.flags[page.blocks.context[a]] & Flag.LIST
    return turning > 1 and others <= turning


def _link_around(tree: Tree, node: int) -> int | None:
    """Return the link around the text of a node, or None if there is none near."""
    for _ in range(LEVELS):
        if tree.tag[node] == _LINK:
            return node
        node = max(0, int(tree.parent[node]))
    return None
