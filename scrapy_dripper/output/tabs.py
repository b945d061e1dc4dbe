"""Titles of tab panels (WAI-ARIA 1.2: ``tablist``, ``tab``, ``tabpanel``), which stand in a list of tabs.

A browser shows one panel at a time, and its tab as its title. In a text, every panel begins with its title.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from scrapy_dripper.output.items import Runs, Text

MOST_TABS = 1_000
LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True, eq=False)
class Tabs:
    """The panels of a page by their elements, and the lists of tabs that only repeat the titles of panels."""

    titles: dict[etree._Element, str] = field(default_factory=dict)
    lists: set[etree._Element] = field(default_factory=set)
    runs: set[Runs] = field(default_factory=set)
    """The titles as runs."""


def tabs_of(root: etree._Element) -> Tabs:
    """Return the tabs of a tree whose panels are in it."""
    parts: dict[str, list[etree._Element]] = {"tab": [], "tablist": [], "tabpanel": []}
    for element in root.iter(etree.Element):
        found = parts.get(element.get("role", ""))
        if found is not None and len(found) < MOST_TABS:
            found.append(element)
    panels = parts["tabpanel"]
    if not panels:
        return Tabs()
    by_panel: dict[str, etree._Element] = {}
    by_id: dict[str, etree._Element] = {}
    for tab in parts["tab"]:
        target = tab.get("aria-controls") or (tab.get("href") or "").rpartition("#")[2]
        by_panel[target] = tab
        by_id[tab.get("id") or ""] = tab
    titles: dict[etree._Element, str] = {}
    used: set[etree._Element] = set()
    for panel in panels:
        title = by_panel.get(panel.get("id") or " ")
        title = by_id.get(panel.get("aria-labelledby") or " ") if title is None else title
        text = "" if title is None else " ".join("".join(map(str, title.itertext())).split())
        if title is not None and text and len(text) <= LONGEST_TITLE:
            titles[panel] = text
            used.add(title)
    lists = {
        one
        for one in parts["tablist"]
        if (own := [tab for tab in one.iter() if tab.get("role") == "tab"]) and used.issuperset(own)
    }
    return Tabs(titles, lists, {(Text(title),) for title in titles.values()})
