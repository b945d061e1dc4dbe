"""Tabs: the panels of which a browser shows one at a time, with its tab as its title."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from lxml import etree

from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import Group, either
from scrapy_dripper.structures.items import Runs, Text

_BARS: Group = (
    *("tabs", "nav-tabs", "tabs-nav", "tab-nav", "tabs__nav", "tab-list", "tabs-list", "tablist", "tabbed-labels"),
    *("tab-buttons", "tab-titles", "tabs-header"),
)
"""Classes of lists of tabs, complete."""
MOST_TABS = 1_000
TAB_LEVELS = 3
"""Number of elements around a list of tabs or a panel that may have the class of a list of tabs."""
LONGEST_TITLE = 200

_is_bar = re.compile(rf"\s(?:{either(_BARS)})(?=\s|$)").search
_may_be_of_tabs = etree.XPath("descendant-or-self::*[contains(@role, 'tab') or contains(@class, 'tab')]")
_is_of_tabs = re.compile(r"tab(?!le)|pane", re.I).search
_PANELS = frozenset({"div", "section", "article", "aside", "p"})
_TITLES = frozenset("h1 h2 h3 h4 h5 h6 p div strong b summary button".split())
MOST_BEFORE_TITLE = 10
"""Number of elements at the beginning of a panel that may hold its own title."""


@dataclass(frozen=True, slots=True, eq=False)
class Tabs:
    """The panels of a page by their elements, and the lists of tabs that only repeat the titles of panels.

    A browser shows one panel, with its tab as its title. In a text, every panel begins with its title.
    """

    titles: dict[etree._Element, str] = field(default_factory=dict)
    lists: set[etree._Element] = field(default_factory=set)
    runs: set[Runs] = field(default_factory=set)
    """The titles as runs."""


def tabs_of(root: etree._Element) -> Tabs:
    """Return the tabs of a tree whose panels are in it.

    A tab refers to its panel, or the panel to its tab. Where neither does, the panels are in the order of the tabs: the
    children of the element behind the list of tabs, or the elements behind it.
    """
    bars: dict[etree._Element, list[etree._Element]] = {}
    for element in cast("list[etree._Element]", _may_be_of_tabs(root)):
        name = element.get("class") or ""
        role = element.get("role")
        if role in ("tablist", "tabpanel"):  # an element around these is no list of tabs, whatever its class
            for around in islice(element.iterancestors(), TAB_LEVELS):
                bars.pop(around, None)
        if role == "tablist" or ("tab" in name and _is_bar(f" {name[:LONGEST_CLASS]}")):
            own = [tab for tab in element.iter() if tab.get("role") == "tab"] if role else []
            bars[element] = (own or [child for child in element if isinstance(child.tag, str)])[:MOST_TABS]
            if len(bars) == MOST_TABS:
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
    texts = {panel: text for panel, tab in titled.items() if (text := _title_of(tab))}
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
    if behind is None or not 1 < count <= MOST_TABS:
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


def _title_of(tab: etree._Element) -> str:
    text = " ".join("".join(map(str, tab.itertext())).split())
    return text if len(text) <= LONGEST_TITLE else ""


def _has_title(panel: etree._Element, title: str) -> bool:
    """Return True if a panel begins with an element that says just its title."""
    for element in islice(panel.iter(etree.Element), 1, MOST_BEFORE_TITLE):
        if element.tag in _TITLES and _title_of(element) == title:
            return True
        if (element.text or "").strip():
            break
    return False
