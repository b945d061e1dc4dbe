"""Hidden text, and what is only hidden until a click: tabs, accordions and answers.

Text that no script would show, such as prompts for language models, is detected by the attributes and the inline style
of elements, but not by style sheets. Tabs, accordions, "read more" and other content to unfold do not count as hidden.
Neither do the sources that formulas and code keep beside their display.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

import numpy as np
from lxml import etree

from scrapy_dripper.page.nodes import SHORT, short_text
from scrapy_dripper.page.page import Bools, Page, Tree
from scrapy_dripper.page.tags import LONGEST_CLASS, MEDIA, REFERENCES, TAGS, tag_mask
from scrapy_dripper.page.vocabulary import APPEARING, UNFOLDING, Group, either
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.code import has_code_class
from scrapy_dripper.structures.formulas import has_math_class
from scrapy_dripper.structures.items import Runs, Text

PAGE_BLOCKS = 30
"""A hidden element with more blocks than this, and more than half of the page's blocks, counts as the page itself."""

LEAST_ANSWERS = 2
"""Minimum number of hidden elements of the same tag, class and style that follow a question. They are its answers."""

# These expect lower case, which is searched several times as fast as any case.
# Off the screen are -9999px, -999em and the like. Layouts move what they show by hundreds of pixels.
_FAR = r"\s*:\s*-(?:\d{4}|999|\d{3}r?em)"
_hiding = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])"
    rf"|clip\s*:\s*rect\(\s*[01](?:px)?[\s,]|clip-path\s*:\s*inset\(\s*(?:50|100)%|text-indent{_FAR}"
    r"|transform\s*:\s*scale\(\s*0\s*\)"
).search
_none = re.compile(r"display\s*:\s*none").search
_no_size = re.compile(r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:px|em|rem|%)?\s*(?:;|$|!)").search
_cut_off = re.compile(r"overflow(?:-[xy])?\s*:\s*hidden").search
_away = re.compile(rf"(?:^|[;\s])(?:left|right|top|bottom|margin-(?:left|top)){_FAR}").search
_unfolds = re.compile(rf"tab(?:s|bed)?(?:[-_\s]|$)|tab-?(?:pane|panel|content)|{either(UNFOLDING, APPEARING)}").search
_QUESTION_MARKS, _CLOSING = ("?", "\uff1f", "\u061f", "\u037e"), " \t\r\n\f\xa0\"'\u2019\u201d\xbb)"
_is_page = tag_mask("html", "body", "main", "article", "h1", "math")
_references = (*REFERENCES, "href")
_expanded = etree.XPath("boolean(descendant-or-self::*[@aria-expanded])")
_OF_SOURCE = frozenset({"brush:", "hidden"})
_details, _pre = TAGS["details"], TAGS["pre"]
_media = frozenset(TAGS[tag] for tag in MEDIA)  # lazily loaded media are hidden at first
_BARS: Group = (
    *("tabs", "nav-tabs", "tabs-nav", "tab-nav", "tabs__nav", "tab-list", "tabs-list", "tablist", "tabbed-labels"),
    *("tab-buttons", "tab-titles", "tabs-header"),
)
"""Classes of lists of tabs, complete."""
_OF_BARS = ("tabs", "tab-", "tablist", "tabbed")
"""What each list of tabs has in its class, and the role ``tablist``."""
TAB_LEVELS = 3
"""Number of elements around a list of tabs or a panel that may have the class of a list of tabs, and of those that may
say by their class that hidden text unfolds, with its own."""

_is_bar = re.compile(rf"\s(?:{either(_BARS)})(?=\s|$)").search
_is_of_tabs = re.compile(r"tab(?!le)|pane", re.I).search
_PANELS = frozenset({"div", "section", "article", "aside", "p"})
_TITLES = frozenset("h1 h2 h3 h4 h5 h6 p div strong b summary button".split())


def hidden_nodes(tree: Tree) -> Bools:
    """Return for each node whether the text directly in it is hidden."""
    hidden = np.zeros(len(tree.nodes), dtype=np.bool_)
    nodes = tree.nodes
    # MDN Web Docs hides code that only the live samples of the page need.
    listings = ((i, (nodes[i].get("class") or "")[:LONGEST_CLASS]) for i in np.flatnonzero(tree.tag == _pre).tolist())
    sources = {i for i, name in listings if _OF_SOURCE.issubset(name.split())}
    styled = zip(tree.may_hide, tree.tag[tree.may_hide].tolist(), strict=True)
    hiding = (i for i, tag in styled if tag not in _media and _hides(nodes[i].get("style"), nodes[i].get("hidden")))
    found = sorted(sources.union(hiding))
    if not found:
        return hidden
    blocks = int(tree.block_end[0]) - int(tree.block_start[0])
    spared = _is_page[tree.tag]  # the page itself, and formulas that are drawn elsewhere
    inside = np.concatenate([[0], np.cumsum(spared)])
    targets = _targets(tree) if any(nodes[i].get("id") for i in found) else set()
    answers = _answers([nodes[i] for i in found])
    end = tree.end.tolist()
    done = 0
    for i in found:
        if i < done or inside[end[i]] > inside[i]:
            continue
        held = int(tree.block_end[i]) - int(tree.block_start[i])
        is_page = held > PAGE_BLOCKS and 2 * held > blocks  # a script shows it once the page has loaded
        node = nodes[i]
        if i in sources or not (is_page or node in answers or _can_unfold(tree, i, targets)):
            hidden[i : end[i]] = True
            done = end[i]
    return hidden


def hidden_blocks(page: Page, hidden: Bools, *, whole: bool) -> Bools:
    """Return for each block of a page whether some or, with ``whole``, all of its text is hidden, given
    :func:`hidden_nodes`.
    """
    tree, n = page.tree, len(page.blocks)
    inside = {True: np.zeros(n, dtype=np.bool_), False: np.zeros(n, dtype=np.bool_)}
    for owners, unseen in ((tree.text_owner, hidden), (tree.tail_owner, hidden[np.maximum(tree.parent, 0)])):
        for state, found in inside.items():
            found[owners[(owners >= 0) & (unseen == state)]] = True
    return inside[True] & ~inside[False] if whole else inside[True]


def _hides(style: str | None, attribute: str | None) -> bool:
    if attribute is not None and attribute.lower() != "until-found":
        return True
    return _is_hiding_style(style[:LONGEST_CLASS]) if style else False


@lru_cache(1_024)
def _is_hiding_style(style: str) -> bool:
    placed = "absolute" in style or "fixed" in style or "margin" in style
    style = style.lower()
    return bool(_hiding(style) or (_no_size(style) and _cut_off(style)) or (placed and _away(style)))


def _targets(tree: Tree) -> set[str]:
    """Return the ids that other elements refer to."""
    found: set[str] = set()
    for i in tree.refers:
        for value in filter(None, map(tree.nodes[i].get, _references)):
            found.update(part.lstrip("#") for part in value[:LONGEST_CLASS].split())
    return found - {""}  # "#" leads to no element


def _answers(hiding: list[etree._Element]) -> set[etree._Element]:
    """Return the hidden elements that a question unfolds: several alike, each after a question."""
    alike: dict[tuple[str | None, ...], list[etree._Element]] = {}
    for node in hiding:
        before = node.getprevious()
        if before is not None and _is_question(before):
            alike.setdefault((str(node.tag), node.get("class"), node.get("style")), []).append(node)
    return {node for nodes in alike.values() if len(nodes) >= LEAST_ANSWERS for node in nodes}


def _is_question(element: etree._Element) -> bool:
    """Return True if a short text ends with a question mark."""
    return (short_text(element) or "").rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def _is_disclosed(node: etree._Element) -> bool:
    """Return True if a small element with a disclosure button (``aria-expanded`` of ARIA) comes just before."""
    before = node.getprevious()
    return before is not None and next(islice(before.iter(), NEAR, None), None) is None and bool(_expanded(before))


def _is_further_row(node: etree._Element) -> bool:
    """Return True for one of several hidden rows of a table that shows its header cells, and some rows at first."""
    table = node.getparent()
    if node.tag != "tr" or table is None:
        return False
    before = table.getprevious()
    head = (before if before is not None and before.tag == "thead" and len(before) else table)[0]
    if _is_put_away(head, len(node)) or any(cell.tag != "th" for cell in head) or not _is_put_away(node, len(head)):
        return False
    return any(row is not None and _is_put_away(row, len(head)) for row in (node.getprevious(), node.getnext()))


def _is_put_away(row: etree._Element, cells: int) -> bool:
    return _none(row.get("style") or "") is not None and len(row) == cells > 0


def _can_unfold(tree: Tree, i: int, targets: set[str]) -> bool:
    """Return True for content that unfolds on a click, and for code or a formula that is displayed elsewhere."""
    node = tree.nodes[i]
    if (node.get("id") or "") in targets or node.get("role") == "tabpanel":
        return True
    if _is_disclosed(node) or _is_further_row(node):
        return True
    names = tree.names[i][:LONGEST_CLASS]
    if names and (has_math_class(names) or has_code_class(names)):
        return True
    for _ in range(TAB_LEVELS):
        if tree.names[i] and _unfolds(tree.names[i][:LONGEST_CLASS].lower()):
            return True
        i = int(tree.parent[i])
        if i < 0 or tree.tag[i] == _details:
            return i >= 0
    return False


# ---------------------------------------------------------------------- tabs
@dataclass(frozen=True, slots=True, eq=False)
class Tabs:
    """The panels of a page by their elements, and the lists of tabs that only repeat the titles of panels.

    A browser shows one panel, with its tab as its title. In a text, every panel begins with its title.
    """

    titles: dict[etree._Element, str] = field(default_factory=dict)
    lists: set[etree._Element] = field(default_factory=set)
    runs: set[Runs] = field(default_factory=set)
    """The titles as runs."""


def tabs_of(root: etree._Element, html: str) -> Tabs:
    """Return the tabs of a tree whose panels are in it, given also as HTML.

    A tab refers to its panel, or the panel to its tab. Where neither does, the panels are in the order of the tabs: the
    children of the element behind the list of tabs, or the elements behind it.
    """
    if not any(map(html.__contains__, _OF_BARS)):
        return Tabs()
    bars: dict[etree._Element, list[etree._Element]] = {}
    for element in root.iter(etree.Element):
        name, role = element.get("class") or "", element.get("role") or ""
        if "tab" not in name and "tab" not in role:
            continue
        if role in ("tablist", "tabpanel"):  # an element around these is no list of tabs, whatever its class
            for around in islice(element.iterancestors(), TAB_LEVELS):
                bars.pop(around, None)
        if role == "tablist" or ("tab" in name and _is_bar(f" {name[:LONGEST_CLASS]}")):
            own = [tab for tab in element.iter() if tab.get("role") == "tab"] if role else []
            bars[element] = (own or [child for child in element if isinstance(child.tag, str)])[:SHORT]
            if len(bars) == SHORT:
                break
    if not bars:
        return Tabs()
    by_id: dict[str, etree._Element] = {}
    by_tab: dict[str, etree._Element] = {}
    for panel in root.iter(*_PANELS):
        by_id.setdefault(panel.get("id") or "", panel)
        by_tab.setdefault(panel.get("aria-labelledby") or "", panel)
    by_id.pop("", None)
    by_tab.pop("", None)
    titled: dict[etree._Element, etree._Element] = {}
    for bar, own in bars.items():
        targets = [_target(tab) for tab in own]
        panels = [by_id.get(target, by_tab.get(tab.get("id") or "")) for target, tab in zip(targets, own, strict=True)]
        found = {panel: tab for panel, tab in zip(panels, own, strict=True) if panel is not None}
        titled |= found if found or any(targets) else zip(_panels_behind(bar, len(own)), own, strict=False)
    texts = {panel: text for panel, tab in titled.items() if (text := _tab_title(tab))}
    used = {titled[panel] for panel in texts}
    lists = {bar for bar, own in bars.items() if own and used.issuperset(own)}
    titles = {panel: text for panel, text in texts.items() if not _has_title(panel, text)}
    return Tabs(titles, lists, {(Text(title),) for title in titles.values()})


def _target(tab: etree._Element) -> str:
    """Return the id of the panel to which a tab, or the link or button in it, refers; empty if there is none."""
    for element in islice(tab.iter(etree.Element), 4):
        target = element.get("aria-controls") or (element.get("href") or "").rpartition("#")[2]
        if target:
            return str(target)
    return ""


def _panels_behind(bar: etree._Element, count: int) -> list[etree._Element]:
    """Return the panels of a list of so many tabs, judging by their place."""
    behind = bar.getnext()
    if behind is None or not 1 < count <= SHORT:
        return []
    inside = list(behind) if len(behind) == count else []
    for panels in (inside, [behind, *islice(behind.itersiblings(), count - 1)]):
        if len(panels) < count or panels[0].tag not in _PANELS:
            continue
        # The class of the open panel may have a further part.
        shapes = {(panel.tag, *(panel.get("class") or "").split()[:1]) for panel in panels[:count]}
        names = f"{panels[0].get('class') or ''} {behind.get('class') or ''}"[:LONGEST_CLASS]
        if len(shapes) == 1 and (panels[0].get("role") == "tabpanel" or _is_of_tabs(names)):
            return panels[:count]
    return []


def _tab_title(tab: etree._Element) -> str:
    return " ".join((short_text(tab) or "").split())


def _has_title(panel: etree._Element, title: str) -> bool:
    """Return True if a panel begins with an element that says just its title."""
    for element in islice(panel.iter(etree.Element), 1, NEAR):
        if element.tag in _TITLES and _tab_title(element) == title:
            return True
        if (element.text or "").strip():
            break
    return False
