"""Text that a page hides from its readers, and that no script of its would show: a way to talk to language models.

What an element says of itself is looked at (attributes and inline style), not the style sheets of the page. Tabs,
accordions, "read more" and whatever else waits to be unfolded are no hidden text, nor is what formulas and code keep
beside what they draw.
"""

from __future__ import annotations

import re
from typing import cast

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.output.code.blocks import has_code_class
from scrapy_dripper.output.math.formulas import has_math_class
from scrapy_dripper.page.page import Tree
from scrapy_dripper.page.tags import LONGEST_CLASS, MEDIA, TAGS

MAX_STYLE = 2_000
"""Characters of an inline style that are looked at."""

MOST_BLOCKS = 30
"""Blocks of a hidden element that is not the page itself, if they are more than half of the page's."""

_with_style = etree.XPath("descendant-or-self::*[@style or @hidden]")
_hiding = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])"
    r"|clip\s*:\s*rect\(\s*[01](?:px)?[\s,]|clip-path\s*:\s*inset\(\s*(?:50|100)%|text-indent\s*:\s*-\d{3,}"
    r"|transform\s*:\s*scale\(\s*0\s*\)",
    re.I,
).search
_no_size = re.compile(r"(?:^|[;\s])(?:max-)?(?:width|height)\s*:\s*[01](?:px|em|rem|%)?\s*(?:;|$|!)", re.I).search
_cut_off = re.compile(r"overflow(?:-[xy])?\s*:\s*hidden", re.I).search
_away = re.compile(r"(?:^|[;\s])(?:left|right|top|bottom|margin-(?:left|top))\s*:\s*-\d{3,}", re.I).search
_unfolds = re.compile(
    r"tab(?:s|bed)?(?:[-_\s]|$)|tab-?(?:pane|panel|content)|pane|accord|collaps|expand|toggl|fold|more|slid|carousel|"
    r"swiper|faq|answer|spoiler|reveal|fade|anim|aos|wow|lazy|drop-?down|step|solution|translat|transcript|full-?text",
    re.I,
).search
_page = frozenset(TAGS[tag] for tag in ("html", "body", "main", "article", "h1", "math"))
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "data-toggle-target", "href", "data-href", "for")
_leading = etree.XPath(
    "descendant::*[starts-with(@href, '#') or @aria-controls or @data-target or @data-bs-target or @data-toggle-target "
    "or @data-href or @for]"
)
_details = TAGS["details"]
_media = frozenset(TAGS[tag] for tag in MEDIA)  # what loads late is hidden until then


def hidden_nodes(tree: Tree) -> npt.NDArray[np.bool_]:
    """Return whether the text right in each node is hidden."""
    hidden = np.zeros(len(tree.nodes), dtype=np.bool_)
    may_hide = cast("list[etree._Element]", _with_style(tree.nodes[0]))
    hiding = {node for node in may_hide if _hides(node.get("style"), node.get("hidden"))}
    if not hiding:
        return hidden
    found = [i for i, node in enumerate(tree.nodes) if node in hiding and tree.tag[i] not in _media]
    blocks = int(tree.block_end[0]) - int(tree.block_start[0])
    spared = np.isin(tree.tag, list(_page))  # the page itself, and formulas that are drawn elsewhere
    inside = np.concatenate([[0], np.cumsum(spared)])
    targets = _targets(tree.nodes[0]) if any(tree.nodes[i].get("id") for i in found) else set()
    end = tree.end.tolist()
    done = 0
    for i in found:
        if i < done or inside[end[i]] > inside[i]:
            continue
        held = int(tree.block_end[i]) - int(tree.block_start[i])
        is_page = held > MOST_BLOCKS and 2 * held > blocks  # that a script shows when it has loaded
        if not (is_page or _can_unfold(tree, i, targets)):
            hidden[i : end[i]] = True
            done = end[i]
    return hidden


def _hides(style: str | None, attribute: str | None) -> bool:
    if attribute is not None and attribute.lower() != "until-found":
        return True
    if not style:
        return False
    style = style[:MAX_STYLE]
    return bool(
        _hiding(style)
        or (_no_size(style) and _cut_off(style))
        or (("absolute" in style or "fixed" in style or "margin" in style) and _away(style))
    )


def _targets(root: etree._Element) -> set[str]:
    """Return the names that other elements lead to."""
    found: set[str] = set()
    for node in cast("list[etree._Element]", _leading(root)):
        for value in filter(None, map(node.get, _REFERENCES)):
            found.update(part.lstrip("#") for part in value[:LONGEST_CLASS].split())
    return found


def _can_unfold(tree: Tree, i: int, targets: set[str]) -> bool:
    """Return True for what waits for a reader's click, and for code or a formula that is drawn elsewhere."""
    node = tree.nodes[i]
    if (node.get("id") or "") in targets or node.get("role") == "tabpanel":
        return True
    names = tree.names[i][:LONGEST_CLASS]
    if names and (has_math_class(names) or has_code_class(names)):
        return True
    for _ in range(3):
        if tree.names[i] and _unfolds(tree.names[i][:LONGEST_CLASS]):
            return True
        i = int(tree.parent[i])
        if i < 0 or tree.tag[i] == _details:
            return i >= 0
    return False
