"""Blocks as the published Qwen3 weights read them: cut by the profile ``v1.0``, and written as simplified HTML.

The rules are those of MinerU-HTML 1.0 (https://github.com/opendatalab/MinerU-HTML; Dripper paper, 3.2), because the
weights expect exactly its output. ``docs/internals/profiles.md`` lists them. A block element that holds no other is a
leaf, and the text and inline elements between two blocks are a run. A block refers to its nodes, so labels are mapped
back without comparing text. Simplified HTML has the short text of each block, of any profile.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from lxml import etree, html
from lxml.html.defs import block_tags

from scrapy_dripper.characters import xml_text
from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.page import NATIVE, Profile
from scrapy_dripper.page.nodes import BREAK, Nodes, collapsed, ints, is_silent_content
from scrapy_dripper.page.page import NOBODY, Blocks, Flag, Ints, Page, Tree, block_behind, gap_before, is_gap
from scrapy_dripper.page.parse import parse
from scrapy_dripper.page.tags import CELLS, KINDS, PLAYERS, TAGS, UNSEEN, VOID, Kind

if TYPE_CHECKING:
    from lxml.html import HtmlElement

DROPPED = frozenset("head header footer nav aside style script noscript link meta iframe frame".split())
"""Tags that the profile removes, together with their content and tail."""

DROPPED_NAMES = frozenset({"nav", "footer", "header"})
"""Class names, and hyphen-separated parts of ids, for which the profile removes an element in the same way."""

INLINE = frozenset(
    "a abbr acronym b basefont bdo big blink br button cccode-inline ccmath-inline cite code dd dfn dt em font i img "
    "input kbd label li map mark marked-tail marked-text nobr object optgroup option pic q s samp select small span "
    "strike strong sub sup svg textarea time u var".split()
)
"""Inline tags. All others are blocks, except that cells are blocks only in layout tables."""

LISTS = frozenset({"ul", "ol", "dl"})
"""Lists, of which only the first and the last item or group of items are shown."""

_DATA_PARTS = frozenset({"caption", "th", "thead", "tfoot", "colgroup", "col"})
_THEMSELVES = frozenset(tag for tag, kind in KINDS.items() if kind in (Kind.MEDIA, Kind.BREAK)) | PLAYERS | {"hr"}
_NOBODY = np.int32(NOBODY)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class V1Page(Page):
    """A page cut by the profile ``v1.0``.

    The model sees block k as an element ``tag[k]`` with the class and id of node ``blocks.context[k]``. The element
    holds the text ``lead[k]`` and those of the nodes ``first[k]`` to ``last[k]`` that are ``shown``. The tree's
    ``flags`` column only reflects tags.
    """

    tag: list[str]
    lead: list[str]
    first: Ints
    last: Ints
    """One past the last node."""
    shown: npt.NDArray[np.bool_]
    """False for each node that is removed from the page or in the middle of a list."""
    ellipsis: npt.NDArray[np.bool_]
    """True for each node before which the middle of a list is left out."""


class _Container:
    """An open element that holds blocks: its next child and its current run."""

    __slots__ = ("after", "first", "last", "lead", "next", "node")

    def __init__(self, node: int, lead: str | None) -> None:
        self.node = node
        self.next = node + 1
        self.begin(lead, -1)

    def begin(self, lead: str | None, after: int) -> None:
        """Begin a run with the text at the start of the container, or with the tail of node ``after``."""
        self.lead = lead.strip() if lead else ""
        self.after = after
        self.first = self.last = self.next


class _V1Cutter:
    """The state of the two passes over the nodes: their properties, and the columns being filled.

    For each node, ``dropped`` is True if the profile removes it, ``seen`` if its text is visible, ``divides`` if it
    ends the run before it, and ``holds`` if it is cut into several blocks. A node that only divides is a leaf.

    The tree is not changed.
    """

    def __init__(self, root: HtmlElement) -> None:
        self.nodes = nodes = Nodes(root, attributes=False)
        m = len(nodes.node)
        self.block_start, self.block_end = [0] * m, [0] * m
        self.text_owner, self.tail_owner, self.self_owner = [NOBODY] * m, [NOBODY] * m, [NOBODY] * m
        self.numbers: dict[tuple[int, str], int] = {}  # numbers of text-only blocks by container and text
        self.text: list[str] = []
        self.context: list[int] = []
        self.leaf: list[int] = []
        self.dropped, self.seen = [False] * m, [True] * m
        self._look()
        self.divides, self.holds = self._blocks()
        self.shown = [not dropped for dropped in self.dropped]
        self.ellipsis = [False] * m
        self.tag: list[str] = []
        self.lead: list[str] = []
        self.range: list[tuple[int, int]] = []

    def page(self, url: str, declared: Declared) -> V1Page:
        """Cut the tree, and return its page."""
        self._walk()
        tree = self._tree()
        ranges = np.array(self.range, dtype=np.int32).reshape(-1, 2)
        return V1Page(
            url=url,
            declared=declared,
            tree=tree,
            blocks=self._columns(tree),
            tag=self.tag,
            lead=self.lead,
            first=ranges[:, 0],
            last=ranges[:, 1],
            shown=np.array(self.shown),
            ellipsis=np.array(self.ellipsis),
        )

    # ------------------------------------------------------------------ properties of the nodes
    def _look(self) -> None:
        """Fill in which nodes the profile removes, and the text of which nodes is visible."""
        nodes, dropped, seen = self.nodes, self.dropped, self.seen
        for i, (tag, p) in enumerate(zip(nodes.tag, nodes.parent, strict=True)):
            if p < 0:
                continue
            # Removing the body would leave no page.
            dropped[i] = dropped[p] or (
                tag != "body"
                and (tag in DROPPED or _has_dropped_name(nodes.name[i], nodes.id[i], nodes.node[i].get("style", "")))
            )
            seen[i] = seen[p] and not dropped[i] and tag not in UNSEEN and nodes.tag[p] not in ("video", "audio")

    def _blocks(self) -> tuple[list[bool], list[bool]]:
        """Return for each node whether it is a block, and whether one of its children is."""
        nodes, m = self.nodes, len(self.nodes.node)
        parts = [
            not dropped and (tag in _DATA_PARTS or node.get("headers") is not None)
            for node, tag, dropped in zip(nodes.node, nodes.tag, self.dropped, strict=True)
        ]
        before = [0, *accumulate(parts)]
        is_block = [tag not in INLINE for tag in nodes.tag]
        has_blocks = [False] * m
        in_data = [False] * m  # inside a data table
        for i, (tag, p) in enumerate(zip(nodes.tag, nodes.parent, strict=True)):
            if i == 0:
                continue
            in_data[i] = in_data[p]
            if nodes.tag[p] == "table":
                get = nodes.node[p].get
                in_data[i] = before[nodes.end[p]] > before[p + 1] or bool(
                    get("summary") or get("role") == "table" or get("data-table")
                )
            if tag in ("td", "th"):
                is_block[i] = not in_data[i]
            if is_block[i] and not self.dropped[i]:
                has_blocks[p] = True
        return is_block, has_blocks

    # ------------------------------------------------------------------ the pass
    def _walk(self) -> None:
        """Number all blocks, and fill in the owners of their nodes."""
        nodes = self.nodes
        open_containers = [_Container(0, nodes.text[0])]
        while open_containers:
            here = open_containers[-1]
            child = here.next
            if child >= nodes.end[here.node]:
                self._flush(here)
                self.block_end[here.node] = len(self.text)
                open_containers.pop()
                continue
            here.next = nodes.end[child]
            if self.dropped[child] or not self.divides[child]:
                here.last = here.next
                continue
            self._flush(here)
            here.begin(nodes.tail[child], child)
            if self.holds[child]:
                self.block_start[child] = len(self.text)
                open_containers.append(_Container(child, nodes.text[child]))
            else:
                owner = self._number(child, nodes.text[child] or "", child + 1, nodes.end[child])
                self._own(owner, child, nodes.end[child])
                self.block_end[child] = len(self.text)

    def _flush(self, run: _Container) -> None:
        if run.lead or run.last > run.first:
            owner = self._number(run.node, run.lead, run.first, run.last)
            self._own(owner, run.first, run.last)
            if run.after < 0:
                self.text_owner[run.node] = owner
            else:
                self.tail_owner[run.after] = owner

    def _own(self, owner: int, first: int, last: int) -> None:
        size = last - first
        before = owner if owner >= 0 else block_behind(owner)
        self.block_start[first:last] = self.block_end[first:last] = [before] * size  # these nodes hold no blocks
        for column in (self.text_owner, self.tail_owner, self.self_owner):
            column[first:last] = [owner] * size

    # ------------------------------------------------------------------ blocks
    def _number(self, node: int, lead: str, first: int, last: int) -> int:
        """Return the owner number of a leaf or run: that of a new or repeated block, or that of the gap if it is empty.

        The leaf or run is an element like ``node``, with the text ``lead`` and the nodes from ``first`` up to ``last``.
        """
        nodes = self.nodes
        children = self._children(first, last)
        shown = node, lead, first, last
        if nodes.tag[node] in ("body", "html") and len(children) == 1 and not lead.strip():
            child = children[0]
            if not (nodes.tail[child] or "").strip():
                shown = child, nodes.text[child] or "", child + 1, nodes.end[child]
        around, words, start, end = shown
        self._shorten(around, start, end)
        for i in self._shown_nodes(start, end):
            self._shorten(i, i + 1, nodes.end[i])
        if not (words.strip() or self._is_image(around)) and all(map(self._is_blank, self._shown_nodes(start, end))):
            return gap_before(len(self.text))
        number = len(self.text)
        if not children and self.numbers.setdefault((node, lead), number) < number:
            return self.numbers[node, lead]  # repeated text in a container shares the number of the first block
        tag = nodes.tag[around]
        if tag in ("body", "html"):
            kept = (t for t, gone in zip(nodes.tag[start:end], self.dropped[start:end], strict=True) if not gone)
            tag = "span" if block_tags.isdisjoint(kept) else "div"
        text, leaf = self._read(node, lead, first, last)
        self.tag.append(tag)
        self.lead.append(words)
        self.range.append((start, end))
        self.text.append(text)
        self.leaf.append(leaf)
        self.context.append(around)
        return number

    def _children(self, first: int, last: int) -> list[int]:
        """Return the root nodes of a slice of whole subtrees that the profile does not remove."""
        children = []
        while first < last:
            if not self.dropped[first]:
                children.append(first)
            first = self.nodes.end[first]
        return children

    def _shown_nodes(self, first: int, last: int) -> Iterator[int]:
        """Yield the shown nodes of a slice. Skip the subtrees of nodes that are not shown."""
        i = first
        while i < last:
            if self.shown[i]:
                yield i
                i += 1
            else:
                i = self.nodes.end[i]

    def _is_blank(self, i: int) -> bool:
        if self.ellipsis[i]:
            return False
        if self.nodes.tag[i] == "img":
            return not self._is_image(i)  # its tail does not count
        text, tail = self.nodes.text[i], self.nodes.tail[i]
        return not (text and text.strip()) and not (tail and tail.strip())

    def _is_image(self, i: int) -> bool:
        return self.nodes.tag[i] == "img" and bool(image_source(self.nodes.node[i].get("src", "")))

    def _shorten(self, node: int, first: int, last: int) -> None:
        """Hide all but the first and the last item or group of a list, whose children are a slice."""
        nodes, tag = self.nodes, self.nodes.tag[node]
        if tag not in LISTS:
            return
        items = self._children(first, last)
        terms = [i for i, item in enumerate(items) if nodes.tag[item] == "dt"]
        if len(items) <= 2 or (tag == "dl" and len(terms) < 2):
            return
        hidden, final = items[1:-1], items[-1]
        if tag == "dl":
            hidden, final = items[: terms[0]] + items[terms[1] : terms[-1]], items[terms[-1]]
        self.ellipsis[final] = True
        for item in hidden:
            self.shown[item : nodes.end[item]] = [False] * (nodes.end[item] - item)

    def _read(self, around: int, lead: str, first: int, last: int) -> tuple[str, int]:
        """Return the text of a slice of whole subtrees, and the innermost node around its first word.

        ``lead`` is the text before the slice, directly in node ``around``. Nodes that are not seen are left out, but
        their tails are not. White space is collapsed as in a browser, and each line break becomes a newline.
        """
        nodes, seen = self.nodes, self.seen
        pieces: list[str] = []
        leaf = -1

        def add(text: str | None, where: int) -> None:
            nonlocal leaf
            if text and seen[where]:
                pieces.append(text)
                if leaf < 0 and not text.isspace():
                    leaf = where

        add(lead, around)
        open_nodes: list[int] = []
        i = first
        while i < last or open_nodes:
            if open_nodes and nodes.end[open_nodes[-1]] <= i:
                done = open_nodes.pop()
                pieces.append(self._edge(done))
                add(nodes.tail[done], nodes.parent[done])
            elif seen[i]:
                pieces.append(BREAK if nodes.kind[i] == Kind.BREAK else self._edge(i))
                add(nodes.text[i], i)
                open_nodes.append(i)
                i += 1
            else:
                add(nodes.tail[i], nodes.parent[i])
                i = nodes.end[i]
        leaf = leaf if leaf >= 0 else around
        return collapsed("".join(pieces), bool(nodes.flags[leaf] & Flag.PREFORMATTED)), leaf

    def _edge(self, i: int) -> str:
        """Return the separator at the beginning or the end of an element."""
        if self.nodes.kind[i] != Kind.BLOCK:
            return ""
        return " " if self.nodes.tag[i] in CELLS else BREAK

    # ------------------------------------------------------------------ columns
    def _tree(self) -> Tree:
        nodes = self.nodes
        seen = np.array(self.seen)
        around = seen[np.maximum(ints(nodes.parent), 0)]
        silent = np.array([is_silent_content(node) for node in nodes.node])
        itself = (seen & np.array([tag in _THEMSELVES for tag in nodes.tag])) | (around & silent)
        return nodes.tree(
            block_start=ints(self.block_start),
            block_end=ints(self.block_end),
            text_owner=np.where(seen, ints(self.text_owner), _NOBODY),
            tail_owner=np.where(around, ints(self.tail_owner), _NOBODY),
            self_owner=np.where(itself, ints(self.self_owner), _NOBODY),
        )

    def _columns(self, tree: Tree) -> Blocks:
        n = len(self.text)
        owner = np.concatenate([tree.text_owner, tree.tail_owner])
        chars = np.array([len(text.strip()) if text else 0 for text in (*self.nodes.text, *self.nodes.tail)])
        flags = np.concatenate([tree.flags, tree.flags[np.maximum(tree.parent, 0)]])

        def count(owners: Ints, mask: npt.NDArray[np.bool_], weights: npt.NDArray[np.int64] | None = None) -> Ints:
            mask &= (owners >= 0) & (owners < n)
            return np.bincount(owners[mask], None if weights is None else weights[mask], minlength=n).astype(np.int32)

        # Nodes in a gap count towards the next block.
        behind = np.where(is_gap(tree.self_owner), block_behind(tree.self_owner), tree.self_owner)
        return Blocks(
            text=self.text,
            context=ints(self.context),
            leaf=ints(self.leaf),
            links=count(tree.text_owner, tree.tag == TAGS["a"]),
            link_chars=count(owner, flags & Flag.LINK != 0, chars),
            bold_chars=count(owner, flags & Flag.STRONG != 0, chars),
            images=count(behind, tree.tag == TAGS["img"]),
        )


def image_source(src: str) -> str:
    """Return the ``src`` that the profile shows for an image. It is empty for ``data:`` images."""
    src = src.strip()
    return "" if src.startswith("data:image/") else src


def _has_dropped_name(name: str, identity: str, style: str) -> bool:
    if name and not DROPPED_NAMES.isdisjoint(name.split()):
        return True
    if identity and not DROPPED_NAMES.isdisjoint(identity.strip().split("-")):
        return True
    return "display: none" in style or "display:none" in style


# ---------------------------------------------------------------------- end tags
# libxml2 ignores ``</header>`` while a ``<div>`` in the header is open. The rest of the page then ends up in the
# header, and is dropped with it. This affects about 1 % of pages. Browsers end the header there, and so did the parser
# for the training data of the published weights.
_VOID = VOID | {
    "area", "base", "basefont", "br", "col", "frame", "hr", "img", "input", "isindex", "link", "menuitem", "meta",
    "nextid", "param", "spacer",
}  # fmt: skip
_OPTIONAL = frozenset("p li dd dt option optgroup tr td th thead tbody tfoot".split())
"""Tags whose end tag is optional. The parser knows where they end, often before the element around them does."""
_RAW = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
_raw_end = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.I) for tag in _RAW}
_start = re.compile(r"<(?:!--|(/?)([a-zA-Z][^\s/>]*))").search
_comment = re.compile(r"-?>|(?s:.*?)--!?>").match  # the rest of a comment (HTML standard, 13.2.5.43 to 52)
_inside = re.compile(r"""=\s*(["'])|>""").search


def balanced(text: str) -> str:
    """Return a document in which elements that end together with their parent have an end tag. Takes linear time.

    Elements whose end tag is optional get none. End tags without a start tag are removed, as are NULs, which the parser
    ignores.
    """
    text = text.replace("\0", "")
    out: list[str] = []
    open_tags: list[str] = []
    count: Counter[str] = Counter()
    done = 0
    for start, end, tag, is_end in _tags(text):
        if not is_end:
            open_tags.append(tag)
            count[tag] += 1
            continue
        out.append(text[done:start])
        if not count[tag]:
            done = end
            continue
        done = start
        while (inner := open_tags.pop()) != tag:
            count[inner] -= 1
            if inner not in _OPTIONAL:
                out.append(f"</{inner}>")
        count[tag] -= 1
    out.append(text[done:])
    return "".join(out)


def _tags(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield each start and end tag as start index, end index, name, and whether it is an end tag."""
    position = 0
    while True:
        token = _start(text, position)
        if token is None:
            return
        if not token[2]:
            comment = _comment(text, token.end())
            if comment is None:  # unclosed
                return
            position = comment.end()
            continue
        tag, is_end = token[2].lower(), bool(token[1])
        position = end = _tag_end(text, token.end())
        if end < 0:
            return
        if not is_end:
            if tag == "plaintext":  # everything after it is text
                return
            if tag in _VOID or _closes_itself(text, token.end(), end):
                continue
            if tag in _raw_end:
                raw = _raw_end[tag].search(text, end)
                if raw is None:
                    return
                position = raw.start()
        yield token.start(), end, tag, is_end


def _tag_end(text: str, position: int) -> int:
    """Return the end of a tag, or -1 if it is unclosed. A quotation mark only opens a value after an equals sign."""
    while True:
        found = _inside(text, position)
        if found is None:
            return -1
        if found[1] is None:
            return found.end()
        position = text.find(found[1], found.end()) + 1
        if position == 0:
            return -1


def _closes_itself(text: str, start: int, end: int) -> bool:
    """Return True for ``<br/>``, False for ``<a href=x/>``, where the slash is part of the value."""
    return text[end - 2] == "/" and (end - 2 == start or text[end - 3] in " \t\n\r\f\"'/")


PROFILES: dict[str, Profile] = {
    "native": NATIVE,
    "v1.0": Profile(
        "v1.0",
        lambda text, _=None: parse(balanced(text), streamed=False),
        lambda root, url, declared=None: _V1Cutter(root).page(url, declared or read_declared(root, url)),
    ),
}
"""The profiles by name, as a model's manifest refers to them."""


HTML = "{html}"
"""The placeholder for the blocks, which a prompt template must have exactly once."""
HEAD = '<html><head><meta charset="utf-8"></head><body>'
FOOT = "</body></html>"
"""The prompts of the published weights wrap the blocks in ``HEAD`` and ``FOOT``."""

MAX_NAME_CHARS = 40
"""Maximum length of a class or id attribute in the simplified HTML of the profile ``native``."""

ELLIPSIS = "..."
ITEM_ID = "_item_id"

_space = re.compile(r"\s+")


def simplify(page: Page, truncate_chars: int | None = 200) -> list[str]:
    """Return the simplified HTML of each block. Its outermost element has the attribute ``_item_id``, from 1 to n.

    Text is cut after ``truncate_chars`` characters, or never if that is None or 0. The limit applies to the text of a
    block in the profile ``native``, and to the text directly in an element in the profile ``v1.0``.
    """
    one = _v1 if isinstance(page, V1Page) else _native
    return [one(page, k, truncate_chars) for k in range(len(page.blocks))]  # type: ignore[arg-type]


def _native(page: Page, k: int, truncate_chars: int | None) -> str:
    """Return an element with the block's text, inside an ``<a>`` if most of the text is links."""
    node, text = page.tree.nodes[int(page.blocks.context[k])], page.blocks.text[k]
    root = _make(None, "div" if node.tag in ("html", "body") else node.tag)
    for name in ("class", "id"):
        value = _trimmed(node.get(name, ""))
        if value:
            root.set(name, value)
    linked = 2 * int(page.blocks.link_chars[k]) > len(text)
    inner = _make(root, "a") if linked and node.tag != "a" else root
    inner.text = _Budget(truncate_chars).cut(text)
    return _tagged(root, k)


def _trimmed(name: str) -> str:
    """Return as many names of a class or id attribute as fit into :data:`MAX_NAME_CHARS`."""
    names = xml_text(" ".join(name.split()))
    if len(names) <= MAX_NAME_CHARS:
        return names
    return names[: MAX_NAME_CHARS + 1].rpartition(" ")[0] or names[:MAX_NAME_CHARS]


class _Budget:
    """The remaining characters for the texts directly in one element. None or 0 means no limit."""

    __slots__ = ("left",)

    def __init__(self, chars: int | None) -> None:
        self.left = chars or None

    def cut(self, text: str | None) -> str | None:
        if not text:
            return None
        if self.left is not None and not text.isspace():
            if self.left == 0:
                return None
            if len(text) > self.left:
                text, self.left = text[: self.left] + ELLIPSIS, 0
            else:
                self.left -= len(text)
        return _space.sub(" ", xml_text(text))


def _v1(page: V1Page, k: int, truncate_chars: int | None) -> str:
    tree = page.tree
    context, last = int(page.blocks.context[k]), int(page.last[k])
    root, budget = _element(None, page.tag[k], tree.nodes[context]), _Budget(truncate_chars)
    root.text = budget.cut(page.lead[k])
    # The root also represents the container of a run, which is the parent of its nodes.
    made = {context: (root, budget, root.tag == "svg")}
    i = int(page.first[k])
    while i < last:
        if not page.shown[i]:
            i = int(tree.end[i])
            continue
        node = tree.nodes[i]
        parent, around, in_svg = made[int(tree.parent[i])]
        if page.ellipsis[i]:
            etree.SubElement(parent, "span").text = ELLIPSIS
        tag = node.tag
        if in_svg and tag == "img" and not node.get("src"):
            tag = "image"  # the parser turned it into <img>
        element, budget = _element(parent, tag, node), _Budget(truncate_chars)
        element.text, element.tail = budget.cut(node.text), around.cut(node.tail)
        made[i] = element, budget, in_svg or tag == "svg"
        i += 1
    if root.tag == "title":  # the reference implementation parses each block again, which wraps a title in a document
        title, root = root, _make(None, "html")
        _make(root, "head").append(title)
    return _tagged(root, k)


def _element(parent: HtmlElement | None, tag: str, source: HtmlElement) -> HtmlElement:
    element = _make(parent, tag)
    for name in ("src", "alt", "class", "id") if tag == "img" else ("class", "id"):
        value = source.get(name, "").strip()
        if name == "src":
            value = image_source(value)
        elif name == "class":
            value = " ".join(value.split())
        if value:
            element.set(name, xml_text(value))
    return element


def _make(parent: HtmlElement | None, tag: str) -> HtmlElement:
    try:
        made = html.Element(tag) if parent is None else etree.SubElement(parent, tag)
    except ValueError:  # a tag name such as ``p"x``
        made = _make(parent, "span")
    return cast("HtmlElement", made)


def _tagged(root: HtmlElement, k: int) -> str:
    root.set(ITEM_ID, str(k + 1))
    return etree.tostring(root, method="html", encoding="unicode")
