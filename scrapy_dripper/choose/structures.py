"""Keep structures whole: all blocks of a list, a table, a code listing or a call-out get the same label.

A structure is something that an author wrote as a unit. Lists and tables used for layout (menus, cards, threads) are
not structures. They contain elements that running text does not have, such as ``<div>``, headings and forms, or mostly
links. A list of links is part of the text that introduces it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, Bools, ScoredPage, found_in
from scrapy_dripper.page.page import Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS, TAGS, tag_mask
from scrapy_dripper.page.vocabulary import CLOSING, SOURCES, TEASES, either
from scrapy_dripper.structures.callouts import callout_names, has_callout_class
from scrapy_dripper.structures.code import CODE_BOXES, code_box, has_code_class
from scrapy_dripper.structures.footnotes import FootnoteMarks

LEAST_MEANS = {
    "code": 0.2,
    "list": 0.3,
    "links": 0.2,
    "introduced links": 0.2,
    "headed links": 0.35,
    "call-out": 0.3,
    "quotation": 0.3,
    "table": 0.4,
    "definitions": 0.4,
    "details": 0.4,
    "figure": 0.2,
}
"""Minimum mean probability of a structure in running text to be main. Kinds that are rarely boilerplate need less."""
MAY_END_TEXT = frozenset({"code", "list", "links", "table", "call-out", "quotation"})
"""Structures that may also end a text, with the same threshold. Figures after a text are boilerplate."""
ONLY_ADDED = frozenset({"introduced links", "headed links"})
"""Structures that become main as a whole, between main blocks. Otherwise their blocks are labelled one by one."""
MOST_BLOCKS = 200
"""Maximum number of blocks in a structure. Anything larger is a section of the page."""
LINKED_SHARE = 0.5
"""A structure with a larger share of text in links than this is a list of links to other pages."""
LONGEST_CELLS = 1_500
"""Maximum mean length of the cells of a data table, in characters."""
# Plain integers, because the operators of IntFlag are slow Python methods.
_CODE, _HEADING = int(Flag.CODE), int(Flag.HEADING)
_PROSE = int(Flag.HEADING | Flag.PARAGRAPH | Flag.LIST | Flag.QUOTE)
_KINDS = {
    TAGS[tag]: kind
    for kind, tags in {
        "code": "pre listing xmp code",
        "list": "ul ol",
        "quotation": "blockquote",
        "table": "table",
        "definitions": "dl",
        "details": "details",
        "figure": "figure",
    }.items()
    for tag in tags.split()
}
_is_kind = np.isin(np.arange(len(TAGS) + 1), list(_KINDS))
_is_written = tag_mask(
    *"p li ul ol dl dt dd pre code listing xmp blockquote table caption thead tbody tfoot tr td th figure".split(),
    *"figcaption details summary".split(),
)
_OF_LAYOUTS = frozenset({"list", "table", "definitions", "quotation"})
"""Structures that are also used for layout. They then contain elements that authors do not write."""
_CELL, _HEADER, _ROW = TAGS["td"], TAGS["th"], TAGS["tr"]
_boilerplate = re.compile(either(CLOSING), re.I).search
_sources = re.compile(rf"[\W\d_]*(?:{either(SOURCES)})[\W_]*", re.I).fullmatch
_teases = re.compile(rf"(?:{either(TEASES)})\b", re.I).match


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure of a page: its kind (a key of :data:`LEAST_MEANS`), its node, and its blocks a to b - 1."""

    kind: str
    node: int
    a: int
    b: int


def with_whole_structures(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the same label for all blocks of a structure.

    A structure is main if most of its text is main, or if its mean probability is above one half. A lower mean is
    enough (:data:`LEAST_MEANS`) in running text: between main blocks of the same parent, or after the last one. Hidden
    blocks do not vote and do not become main; neither do labels and buttons in a code listing.
    """
    if not main.any():
        return main
    page, flags = scored.page, scored.flags
    labels: Bools = main.copy()
    seen = flags & UNSEEN == 0
    for run in _runs(page, structures(scored)):
        between, last = _place(page, main, seen, run)
        for one in run:
            voters = one.a + np.flatnonzero(seen[one.a : one.b])
            if one.kind == "code" and (flags[voters] & _CODE).any():
                voters = voters[flags[voters] & _CODE != 0]
            if not len(voters):
                continue
            weights = scored.chars[voters] / scored.chars[voters].sum()
            votes, mean = float(weights @ main[voters]), float(weights @ scored.probabilities[voters])
            if one.kind in ONLY_ADDED:
                labels[voters] |= between and mean > LEAST_MEANS[one.kind]
                continue
            name = page.tree.names[one.node][:LONGEST_CLASS]
            in_text = between or (last and one.kind in MAY_END_TEXT and not _boilerplate(name))
            if votes > 0 or in_text:
                labels[voters] = max(votes, mean) > 0.5 or (in_text and mean > LEAST_MEANS[one.kind])
    return labels


def _runs(page: Page, found: Iterator[Structure]) -> Iterator[list[Structure]]:
    """Group adjacent structures with the same parent, because they share the text before and after them."""
    run: list[Structure] = []
    around = -1
    for one in found:
        outer = page.around(one.node, one.a, one.b)
        if run and (outer != around or one.a != run[-1].b):
            yield run
            run = []
        run.append(one)
        around = outer
    if run:
        yield run


def _place(page: Page, main: Bools, seen: Bools, run: list[Structure]) -> tuple[bool, bool]:
    """Return whether structures are between main blocks of their parent, and whether they are after the last one.

    Blocks that are not seen make no difference.
    """
    around = page.around(run[0].node, run[0].a, run[0].b)
    if around < 0:
        return False, False
    first, end = int(page.tree.block_start[around]), int(page.tree.block_end[around])
    before = next((i for i in range(run[0].a - 1, first - 1, -1) if seen[i]), -1)
    if before < 0 or not main[before]:
        return False, False
    after = next((i for i in range(run[-1].b, end) if seen[i]), end)
    return bool(after < end and main[after]), not main[after:end].any()


# ---------------------------------------------------------------------- finding structures
def structures(scored: ScoredPage) -> Iterator[Structure]:
    """Yield the outermost structures of a page, in order."""
    finder = _Finder(scored)
    tree = scored.page.tree
    done = 0
    nodes = finder.candidates()
    starts, ends = tree.block_start[nodes].tolist(), tree.block_end[nodes].tolist()
    for node, a, b in zip(nodes.tolist(), starts, ends, strict=True):
        if a >= done:
            kind = finder.kind(node, a, b)
            if kind:
                yield Structure(kind, node, a, b)
                done = b


class _Finder:
    """Running totals over the blocks and nodes of a page, to query the content of an element in constant time."""

    def __init__(self, scored: ScoredPage) -> None:
        tree, blocks = scored.page.tree, scored.page.blocks
        self._tree, self._blocks, self._names = tree, blocks, scored.names
        flags, chars = scored.flags, scored.chars
        code = flags & _CODE != 0
        layout = flags & (_HEADING | ELSEWHERE) != 0
        self._code, self._layout = _sums(code), _sums(layout)
        self._foreign = _sums(layout | ~(_is_written[tree.tag[blocks.context]] | code))
        self._prose = _sums(flags & _PROSE != 0)
        self._chars, self._linked = _sums(chars), _sums(blocks.link_chars - LINKED_SHARE * chars)

    def candidates(self) -> npt.NDArray[np.int64]:
        """Return the elements that may be structures, judging by tag, class, or language of code."""
        tree = self._tree
        size = tree.block_end - tree.block_start
        nodes = np.flatnonzero((size > 0) & (size <= MOST_BLOCKS))
        callouts = (i for i in self._names.matching(callout_names) if has_callout_class(self._class(i)))
        named = [*callouts, *self._names.matching(code_box, *CODE_BOXES)]
        chosen = _is_kind[tree.tag[nodes]] | np.isin(nodes, named)
        code = np.array(self._code)
        for i in np.flatnonzero(~chosen & (code[tree.block_end[nodes]] > code[tree.block_start[nodes]])).tolist():
            name = self._class(nodes[i])
            chosen[i] = (name and has_code_class(name)) or bool(tree.nodes[nodes[i]].get("data-lang"))
        return nodes[chosen]

    def _class(self, node: int) -> str:
        return (self._tree.nodes[node].get("class") or "")[:LONGEST_CLASS]

    def kind(self, node: int, a: int, b: int) -> str:
        """Return the kind of structure of an element with blocks a to b - 1, or an empty string if it is none."""
        found = _KINDS.get(int(self._tree.tag[node]), "")
        name = self._class(node)
        if found != "code" and self._is_code(node, name, a, b):
            return "code"
        if not found and name and has_callout_class(name):
            found = "call-out"
        if not found or self._layout[b] > self._layout[a]:
            return ""
        if found in _OF_LAYOUTS and self._foreign[b] > self._foreign[a]:
            return ""
        if found != "code" and self._linked[b] >= self._linked[a]:
            return self._kind_of_links(a) if found == "list" else ""
        return found if found != "table" or self._is_data(node, a, b) else ""

    def _is_code(self, node: int, name: str, a: int, b: int) -> bool:
        """Return True for a code listing, judging by its class. It has no paragraphs, lists or headings.

        It also has elements of code, unless its class leaves no doubt.
        """
        if self._prose[b] > self._prose[a]:
            return False
        if self._code[b] == self._code[a]:
            return found_in(name, code_box)
        return bool(self._tree.nodes[node].get("data-lang")) or (name != "" and has_code_class(name))

    def _kind_of_links(self, a: int) -> str:
        """Return the kind of the list of links that starts at block a, judging by the block before it."""
        if not a:
            return ""
        before = self._blocks.text[a - 1]
        start, is_heading = before[:LONGEST_CLASS], self._tree.flags[self._blocks.context[a - 1]] & _HEADING
        if is_heading and _sources(start):
            return "links"
        if _teases(start):
            return ""
        if before.rstrip().endswith((":", "：")):
            return "introduced links"
        return "headed links" if is_heading else ""

    @cached_property
    def _of_tables(self) -> tuple[list[float], list[float], list[float]]:
        """The running totals of header cells, of all cells and of rows, which are only needed for tables."""
        headers, cells, rows = (self._tree.tag == tag for tag in (_HEADER, _CELL, _ROW))
        return _sums(headers), _sums(headers | cells), _sums(rows)

    def _is_data(self, node: int, a: int, b: int) -> bool:
        """Return True for a data table: it has a header cell, at least two rows and columns, and no very long cells."""
        end = self._tree.end[node]
        headers, cells, rows = (totals[end] - totals[node] for totals in self._of_tables)
        chars = self._chars[b] - self._chars[a]
        return bool(headers > 0 and rows > 1 and cells > rows and chars <= LONGEST_CELLS * cells)


def _sums(values: npt.ArrayLike) -> list[float]:
    sums: list[float] = np.concatenate(([0.0], np.cumsum(values))).tolist()
    return sums


NOTE_PROBABILITY = 0.2
"""Minimum mean probability of the blocks of a footnote for it to become main."""

_LINK = TAGS["a"]


def with_footnotes(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with each footnote labelled like its marks.

    Marks and footnotes are recognised in the same way as for Markdown.
    """
    page, tree = scored.page, scored.page.tree
    links = [i for i in tree.refers if tree.tag[i] == _LINK and (tree.nodes[i].get("href") or "")[:1] == "#"]
    if not links or not main.any():
        return main
    marks = FootnoteMarks(tree.nodes[0])
    kept: dict[object, bool] = {}  # footnote to whether one of its marks is main
    for i in links:
        note = marks.note(tree.nodes[i], tree.nodes[i].get("href"))
        if note is not None:
            owners = tree.text_owner[i : tree.end[i]]
            owner = int(owners.max(initial=-1))
            kept[note] = kept.get(note, False) or (owner >= 0 and bool(main[owner]))
    if not kept:
        return main
    labels: Bools = main.copy()
    for i, node in enumerate(tree.nodes):
        if node in kept:
            a, b = _blocks(page, i)
            if not kept[node]:
                labels[a:b] = False
            elif b > a and not tree.flags[i] & Flag.HIDDEN and scored.probabilities[a:b].mean() >= NOTE_PROBABILITY:
                labels[a:b] = True
    return labels


def _blocks(page: Page, node: int) -> tuple[int, int]:
    """Return the range of blocks of a footnote. If it is a heading, this includes everything up to the next heading."""
    tree = page.tree
    a, b = int(tree.block_start[node]), int(tree.block_end[node])
    if tree.flags[node] & _HEADING and b > a:
        end = int(tree.block_end[tree.parent[node]])
        while b < end and not tree.flags[page.blocks.context[b]] & _HEADING:
            b += 1
    return a, b
