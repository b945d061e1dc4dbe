"""Cut a tree into the blocks that MinerU-HTML 1.1 and models of its kind were trained on: the profile ``v1.1``.

The rules are those of MinerU-HTML 1.1 (https://github.com/opendatalab/MinerU-HTML). ``docs/internals/profiles.md``
lists them. The reference implementation writes each block as XML and parses it again as HTML, which changes some
blocks. This module does the same, and keeps the result.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from lxml import etree, html

from scrapy_dripper.page.page import Page, gap_before
from scrapy_dripper.page.recover import xml_text
from scrapy_dripper.page.runs import RunCutter
from scrapy_dripper.page.tags import LONGEST_CLASS, VOID

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DROPPED = frozenset("title head style script link meta iframe frame nav".split())
"""Tags that the profile removes, together with their content and tail."""

HIDING = {"display": "none", "font-size": "0px", "color": "transparent", "visibility": "hidden", "opacity": "0"}
"""Declarations in the style of elements that the profile removes, in exactly this spelling. The tail of such an element
joins the text before it.
"""

INLINE = frozenset(
    "a abbr acronym b basefont bdo big blink button cccode-inline ccmath-inline cite code dfn em font i img input kbd "
    "label map mark marked-tail marked-text nobr object optgroup option pic q s samp script small span strike strong "
    "sub sup svg time u var".split()
)
"""Inline tags. All others are blocks, except the cells of data tables, the items of content lists, and formulas."""

HOLDING = VOID - {"image"}
"""Void elements that libxml2 does not know. For the model, the content after such an element is inside it."""
TABLE_PARTS = frozenset("caption colgroup col thead tbody tfoot tr td th br".split())
UNCOUNTED = frozenset({"math", "table"})
"""Tags in which texts neither count towards the length of a block nor are cut."""

_LISTS = {"ul": frozenset({"li"}), "ol": frozenset({"li"}), "dl": frozenset({"dt", "dd"})}
_ITEMS = {"li": ("ul", "ol"), "dt": ("dl",), "dd": ("dl",)}
_parser = html.HTMLParser(huge_tree=True, no_network=True)
_tag_or_text = re.compile(r"<[^>]+>?|[^<]+")
_space = re.compile(r"\s+")
_escaped_text = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_escaped_value = _escaped_text | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class V11Page(Page):
    """A page cut by the profile ``v1.1``."""

    shown: list[HtmlElement]
    """The simplified element of each block, before long texts are cut."""


def cut_v1_1(root: HtmlElement, url: str = "") -> V11Page:
    """Cut a parsed document into a page by the profile ``v1.1``. The tree is not changed.

    If the document has more than :data:`~scrapy_dripper.page.blocks.MAX_NODES` elements, only the first ones are used
    and the page is truncated.
    """
    cutter = _Cutter(root)
    return V11Page(**cutter.fields(url), shown=cutter.shown)


def written(page: V11Page, k: int, truncate_chars: int | None, number: str) -> str:
    """Return the simplified HTML of a block. The attribute that ``number`` names holds its number."""
    root = deepcopy(page.shown[k])
    if truncate_chars:
        _truncate(root, truncate_chars)
    root.set(number, str(k + 1))
    text = etree.tostring(root, method="html", encoding="unicode", with_tail=False).strip()
    end = text.rfind(">") + 1  # there is no tag after it, and before it each "<" has a ">"
    tags = _tag_or_text.sub(lambda found: found[0] if found[0][0] == "<" else _space.sub(" ", found[0]), text[:end])
    return tags + _space.sub(" ", text[end:])


class _Cutter(RunCutter):
    ends_run = "br"

    def __init__(self, root: HtmlElement) -> None:
        super().__init__(root)
        self.look()
        nodes, self.tree_seen = self.nodes, self.seen
        self.tree_columns = nodes.parent, nodes.end, nodes.text, nodes.tail
        self.moved = [*self._hold_what_follows(), *self._move_tails()]
        data = self._data_tables()
        blocks, content = self._is_block(data, {}), self._content_lists(data)
        if content:
            blocks = self._is_block(data, content)
        inside = self._holds(blocks)
        self.divides = [block or holds for block, holds in zip(blocks, inside, strict=True)]
        self.holds = [holds and not data.get(i, False) for i, holds in enumerate(inside)]
        self.shown: list[HtmlElement] = []
        self.begun: set[int] = set()

    # ------------------------------------------------------------------ removed nodes
    def drops(self, i: int) -> bool:
        """Return True for a tag that is removed, and for an element that :meth:`_is_hidden`."""
        tag = self.nodes.tag[i]
        return tag != "body" and (tag in DROPPED or self._is_hidden(i))  # removing the body would leave no page

    def _is_hidden(self, i: int) -> bool:
        nodes = self.nodes
        parent = nodes.parent[i]
        if nodes.tag[parent] == "body" and "nav" in (nodes.name[i], nodes.id[i]):
            return True
        for declaration in nodes.node[i].get("style", "").split(";"):
            key, colon, value = declaration.partition(":")
            if colon and HIDING.get(key.strip()) == value.strip():
                return True
        closed = nodes.tag[parent] == "details" and nodes.node[parent].get("open") is None
        return closed and nodes.tag[i] != "summary"

    def _hold_what_follows(self) -> list[tuple[int, list[int], int]]:
        """Move the content after a void element that libxml2 does not know into that element, up to the end of its
        parent.

        Return, for each such element, the element, and the column and the node that now own the text of its tail.
        """
        nodes = self.nodes
        voids = [i for i, tag in enumerate(nodes.tag) if tag in HOLDING]
        parent, end, text, tail = ([*column] for column in self.tree_columns)
        for p in dict.fromkeys(nodes.parent[i] for i in voids):
            around = p
            for child in nodes.children(p + 1, nodes.end[p]):
                parent[child] = around
                if nodes.tag[child] in HOLDING:
                    around, end[child] = child, nodes.end[p]
                    text[child], tail[child] = nodes.tail[child], None
        self.seen = [*self.tree_seen]
        for i in voids:
            self.seen[i] = self.tree_seen[nodes.parent[i]]
        nodes.parent, nodes.end, nodes.text, nodes.tail = parent, end, text, tail
        return [(i, self.text_owner, i) for i in voids]

    def _move_tails(self) -> list[tuple[int, list[int], int]]:
        """Move the tails of nodes that are removed, but not because of their tag.

        Such a tail joins the tail of the previous element; the text of that element, if it has no tail; or the text of
        the parent, if there is no previous element. Return, for each such node, the node, and the column and the node
        that now own the text of its tail.
        """
        nodes = self.nodes
        moved: list[tuple[int, list[int], int]] = []
        before = [-1] * len(nodes)  # for each node, its last child so far that is not removed
        texts, tails = ([None if text is None else [text] for text in column] for column in (nodes.text, nodes.tail))
        for i, p in enumerate(nodes.parent):
            if p < 0 or self.dropped[p] or nodes.tag[i] in DROPPED:
                continue
            if not self.dropped[i]:
                before[p] = i
                continue
            last = before[p]
            pieces = tails[last] if last >= 0 else None
            owners, at = self.tail_owner, last
            if pieces is None:
                owners, at = self.text_owner, last if last >= 0 else p
                pieces = texts[at] = texts[at] or []
            pieces.append(nodes.tail[i] or "")
            tails[i] = None
            moved.append((i, owners, at))
        nodes.text = [None if pieces is None else "".join(pieces) for pieces in texts]
        nodes.tail = [None if pieces is None else "".join(pieces) for pieces in tails]
        return moved

    def walk(self) -> None:
        """Number all blocks, and fill in the owners of their nodes."""
        super().walk()
        for i, owners, at in self.moved:
            self.tail_owner[i] = owners[at]
            if self.nodes.tag[i] in HOLDING:
                self.block_end[i] = self.block_start[i]
        nodes, self.seen = self.nodes, self.tree_seen
        nodes.parent, nodes.end, nodes.text, nodes.tail = self.tree_columns

    # ------------------------------------------------------------------ kinds of nodes
    def _nearest(self, *tags: str) -> list[int]:
        """Return, for each node, the nearest node with one of the tags (the node itself or an ancestor), or -1 if there
        is none.
        """
        nearest: list[int] = []
        for i, (tag, p) in enumerate(zip(self.nodes.tag, self.nodes.parent, strict=True)):
            nearest.append(i if tag in tags else nearest[p] if p >= 0 else -1)
        return nearest

    def _data_tables(self) -> dict[int, bool]:
        """Return, for each table, whether it is a data table, which is a single block."""
        nodes = self.nodes
        tables = [i for i, tag in enumerate(nodes.tag) if tag == "table" and not self.dropped[i]]
        if not tables:
            return {}
        nearest = self._nearest("table")
        marked, other = set(), []
        for i, tag in enumerate(nodes.tag):
            stays = not self.dropped[i]
            other.append(stays and tag not in TABLE_PARTS and tag not in INLINE)
            headed = tag in ("td", "th") and nodes.node[i].get("headers") is not None
            if stays and (headed or tag in ("caption", "col", "colgroup")):
                marked.add(nearest[i])
        others = [0, *accumulate(other)]
        found = {}
        for i in tables:
            get = nodes.node[i].get
            named = get("role") == "table" or bool(get("data-table"))
            found[i] = named or i in marked or others[nodes.end[i]] == others[i + 1]
        return found

    def _content_lists(self, data: dict[int, bool]) -> dict[int, bool]:
        """Return the lists that are a single block: they have only items, and no item holds a block."""
        nodes = self.nodes
        lists = [i for i, tag in enumerate(nodes.tag) if tag in _LISTS and not self.dropped[i]]
        inside = self._holds(self._is_block(data, {})) if lists else []
        found = {}
        for i in lists:
            children = [child for child in nodes.children(i + 1, nodes.end[i]) if not self.dropped[child]]
            words = (self.nodes.text[i], *(self.nodes.tail[child] for child in children))
            if (
                children
                and all(nodes.tag[child] in _LISTS[nodes.tag[i]] and not inside[child] for child in children)
                and not any(text and text.strip() for text in words)
            ):
                found[i] = True
        return found

    def _is_block(self, data: dict[int, bool], content: dict[int, bool]) -> list[bool]:
        """Return for each node whether it is a block element, given the data tables and the content lists."""
        tags = self.nodes.tag
        found = [tag not in INLINE and tag != "math" for tag in tags]
        wholes = {"td": data, "th": data, "li": content, "dt": content, "dd": content}
        nearest = {("table",): self._nearest("table"), **{of: self._nearest(*of) for of in set(_ITEMS.values())}}
        for i, tag in enumerate(tags):
            if tag in wholes:
                at = nearest[_ITEMS.get(tag, ("table",))][i]
                found[i] = at >= 0 and not wholes[tag].get(at, False)
        return found

    def _holds(self, blocks: list[bool]) -> list[bool]:
        """Return, for each node, whether there is a block in it. Blocks inside a formula do not count."""
        nodes = self.nodes
        holds = [False] * len(nodes)
        for i in range(len(nodes) - 1, 0, -1):
            p = nodes.parent[i]
            if (blocks[i] or holds[i]) and not self.dropped[i] and nodes.tag[p] != "math":
                holds[p] = True
        return holds

    # ------------------------------------------------------------------ blocks
    def number(self, node: int, lead: str, first: int, last: int) -> int:
        """Return the owner number of a leaf or run; see :meth:`RunCutter.number`."""
        nodes = self.nodes
        children = [child for child in nodes.children(first, last) if not self.dropped[child]]
        gap, number = gap_before(len(self.text)), len(self.text)
        if not children and not lead:
            return gap
        root = _parsed(self._xml(node, lead, first, last))
        if root is None:
            return gap
        _shorten(root)
        if not _shows_something(root):
            return gap
        if not children and self.numbers.setdefault((node, lead), number) < number:
            return self.numbers[node, lead]  # repeated text in a container shares the number of the first block
        self.shown.append(root)
        self.add(node, lead, first, last, node)
        return number

    def _xml(self, node: int, lead: str, first: int, last: int) -> str:
        """Return a leaf or run as XML, with the attributes that the profile keeps."""
        nodes, out = self.nodes, [self._start(node, again=node in self.begun), _escaped(lead)]
        self.begun.add(node)
        open_nodes: list[int] = []
        i = first
        while i < last or open_nodes:
            if open_nodes and nodes.end[open_nodes[-1]] <= i:
                done = open_nodes.pop()
                out.append(f"</{nodes.tag[done]}>")
            elif self.dropped[i]:
                i = nodes.end[i]
                continue
            else:
                done = -1
                empty = self.nodes.text[i] is None and self._is_empty(i)
                out.append(self._start(i, empty=empty))
                if empty:
                    done = i
                    i = nodes.end[i]
                else:
                    out.append(_escaped(self.nodes.text[i]))
                    open_nodes.append(i)
                    i += 1
            if done >= 0 and not (nodes.tag[done] == "br" and nodes.end[done] == last and not open_nodes):
                out.append(_escaped(self.nodes.tail[done]))
        out.append(f"</{nodes.tag[node]}>")
        return "".join(out)

    def _is_empty(self, i: int) -> bool:
        return all(self.dropped[child] for child in self.nodes.children(i + 1, self.nodes.end[i]))

    def _start(self, i: int, *, empty: bool = False, again: bool = False) -> str:
        """Return a start tag. Long attributes of a container are only written with its first run, because it can have
        many runs.
        """
        tag, get = self.nodes.tag[i], self.nodes.node[i].get
        parts = [tag]
        for name in ("src", "alt", "class", "id") if tag == "img" else ("class", "id"):
            value = get(name, "").strip()
            left_out = value.startswith("data:image/") if name == "src" else again and len(value) > LONGEST_CLASS
            if value and not left_out:
                parts.append(f'{name}="{xml_text(value).translate(_escaped_value)}"')
        return f"<{' '.join(parts)}{'/' if empty else ''}>"


def _escaped(text: str | None) -> str:
    return xml_text(text).translate(_escaped_text) if text else ""


def _parsed(xml: str) -> HtmlElement | None:
    """Return a block as an HTML parser reads it, or None if that is not a single element."""
    try:
        return html.fragment_fromstring(xml, create_parent=False, parser=_parser)
    except (etree.LxmlError, ValueError, AssertionError):
        return None


def _shorten(root: HtmlElement) -> None:
    """Leave out the middle of each list."""
    for node in list(root.iter(*_LISTS)):
        items = list(node)
        terms = [i for i, item in enumerate(items) if item.tag == "dt"]
        if len(items) <= 2 or (node.tag == "dl" and len(terms) < 2):
            continue
        kept, final = [items[0]], [items[-1]]
        if node.tag == "dl":
            kept, final = items[terms[0] : terms[1]], items[terms[-1] :]
        gap = etree.Element("span")
        gap.text = "..."
        node[:] = [*kept, gap, *final]


def _shows_something(root: HtmlElement) -> bool:
    """Return True if a block has text, or an image with a source. The tail of an image does not count."""
    for node in root.iter():
        if node.text and node.text.strip():
            return True
        if node.tag == "img":
            if (node.get("src") or "").strip():
                return True
        elif node is not root and node.tail and node.tail.strip():
            return True
    return False


def _truncate(root: HtmlElement, most: int) -> None:
    """Cut the text of a block, in document order, after ``most`` characters, and remove the elements after that place.

    In formulas and tables, texts are not counted but tails are, and neither are cut.
    """
    texts, total = [], 0
    uncounted: set[HtmlElement] = set()
    for event, node in etree.iterwalk(root, events=("start", "end")):
        above = node.getparent() in uncounted
        if event == "start":
            if above or node.tag in UNCOUNTED:
                uncounted.add(node)
            elif node.text:
                texts.append((node, "text", node.text, True))
                total += len(node.text)
        elif node is not root and node.tail:
            texts.append((node, "tail", node.tail, not above))
            total += len(node.tail)
    if total <= most:
        return
    left, cut = most, False
    for node, name, text, may_be_cut in texts:
        if cut:
            setattr(node, name, None)
        elif len(text) <= left or not may_be_cut:
            left -= len(text)
        else:
            setattr(node, name, xml_text(text[:left]) + "...")
            cut = True
            _remove_behind(node, root)


def _remove_behind(node: HtmlElement, root: HtmlElement) -> None:
    while node is not root:
        parent = node.getparent()
        for sibling in list(node.itersiblings()):
            parent.remove(sibling)
        node = parent
