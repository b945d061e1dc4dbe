"""The fallback ``r4``: the main content by the method of Alarte and Silva, "Page-Level Main Content Extraction from
Heterogeneous Webpages" (2020).

Each element is a point in four dimensions: words, links, children and position. The elements that are farthest from the
mean are candidates. The main content is the candidate with the most words per tag, with those of its siblings that are
candidates too. The numbers of definitions and algorithms below are those of the paper.

The paper leaves some choices open. Here, the depth of an element is counted from ``<body>``, white space between tags
is not a child, each Han character or kana is a word, and all text inside a link counts as linked, at any depth. A group
of links has at least two links. If the post-processing would remove everything, it is skipped.

In one point, this differs from the paper: a paragraph is a candidate only if no other element is one. Otherwise, a page
with few elements would lose all paragraphs but the longest, because that one has the most words per tag.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction
from scrapy_dripper.fallback.chosen import blocks_in, by_blocks
from scrapy_dripper.page import Page

CANDIDATES = 3
"""Number of candidates: the elements that are farthest from the mean (c in Algorithm 2 and Table 1 of the paper)."""
TEXT_RATIO, LINKS = 1.5, 7
"""An element is a group of links if its ratio of text to text outside of links, and its number of links, exceed these
values (tr and hr in Algorithm 5 and Table 2 of the paper).
"""
POINTS = 32
"""Number of points of the quadrature in :func:`word_ratios`, which is exact up to twice as many edges."""

_UNRATED = frozenset("a nav hr span em body script header h1 h2 h3 h4 h5 br iframe".split())
_words = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+").findall

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def by_r4(text: str, url: str, config: Config, size: int, *, paper: bool = False) -> Extraction:
    """Return the main content of a page. ``size`` is the length of the original document, which limits the output.

    With ``paper``, paragraphs are candidates as well, as in the paper.
    """
    return by_blocks("r4", lambda page: blocks_in(page, main_nodes(page, paper=paper)), text, url, config, size)


def main_nodes(page: Page, *, paper: bool = False) -> Bools:
    """Return which nodes of a page are main content, shape (m,). Takes linear time.

    No node is main if the page has no body or no words. With ``paper``, paragraphs are candidates as well.
    """
    tree = page.tree
    main = np.zeros(len(tree.nodes), dtype=np.bool_)
    body = next((i for i, node in enumerate(tree.nodes) if node.tag == "body"), None)
    if body is not None:
        part = slice(body, int(tree.end[body]))
        tags = [str(node.tag) for node in tree.nodes[part]]
        texts = [(node.text or "", node.tail or "") for node in tree.nodes[part]]
        parent, end = (column[part].astype(np.int64) - body for column in (tree.parent, tree.end))
        main[part] = chosen(Elements.of(tags, texts, parent, end), paper=paper)
    return main


class Elements(NamedTuple):
    """The elements of a body in document order, as columns of length m. The first one is the body."""

    parent: Ints
    end: Ints
    """One past the last element of the subtree."""
    depth: Ints
    tag: Ints
    """A number for each distinct tag."""
    rated: Bools
    """True for elements that are points. Leaves are not, and neither are elements whose tag is never the root of main
    content.
    """
    paragraph: Bools
    links: Ints
    """Number of links in the subtree. A subtree includes the element itself."""
    images: Ints
    children: Ints
    """Number of child elements and of child texts that are not blank."""
    is_link: Bools
    own: Ints
    """Number of words in the texts that are children of the element."""
    unlinked: Ints
    """Number of these words that are outside of links."""
    words: Ints
    """Number of words in the subtree."""
    characters: Ints
    """Number of characters in the subtree, without white space."""
    unlinked_characters: Ints

    @classmethod
    def of(cls, tags: list[str], texts: list[tuple[str, str]], parent: Ints, end: Ints) -> Elements:
        """Return the columns of elements, given their tags, and their texts and tails."""
        m = len(tags)
        number: dict[str, int] = {}
        is_link = np.array([tag == "a" for tag in tags])
        depth, linked = np.zeros(m, dtype=np.int64), is_link.copy()
        for i in range(1, m):
            depth[i] = depth[parent[i]] + 1
            linked[i] |= linked[parent[i]]

        def own(values: Ints) -> Ints:
            """Return, for each element, the sum of the values of the texts that are its children. ``values`` are those
            of texts and tails.
            """
            return values[:, 0] + np.bincount(parent[1:], values[1:, 1], minlength=m).astype(np.int64)

        def whole(values: Ints) -> Ints:
            """Return the sum over each subtree."""
            before: Ints = np.concatenate([[0], np.cumsum(values)])
            return np.asarray(before[end] - before[:-1])

        words = own(np.array([[len(_words(text)) for text in pair] for pair in texts], dtype=np.int64))
        characters = own(np.array([[_visible(text) for text in pair] for pair in texts], dtype=np.int64))
        filled = own(np.array([[bool(text.strip()) for text in pair] for pair in texts], dtype=np.int64))
        children = filled + np.bincount(parent[1:], minlength=m)
        return cls(
            parent=parent,
            end=end,
            depth=depth,
            tag=np.array([number.setdefault(tag, len(number)) for tag in tags]),
            rated=(children > 0) & np.array([tag not in _UNRATED for tag in tags]),
            paragraph=np.array([tag == "p" for tag in tags]),
            links=whole(is_link.astype(np.int64)),
            images=whole(np.array([tag == "img" for tag in tags], dtype=np.int64)),
            children=children,
            is_link=is_link,
            own=words,
            unlinked=np.where(linked, 0, words),
            words=whole(words),
            characters=whole(characters),
            unlinked_characters=whole(np.where(linked, 0, characters)),
        )


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def chosen(e: Elements, *, paper: bool = False) -> Bools:
    """Return which elements are in the main content, shape (m,). With ``paper``, paragraphs are candidates as well."""
    main = np.zeros(len(e.parent), dtype=np.bool_)
    points = e.rated & ~e.paragraph
    if paper or not points.any():
        points = e.rated
    for i in [0] if _is_flat(e) else selected(e, reduced(e, candidates(ratios(e), points))):
        main[i : e.end[i]] = True
    rest = main & ~groups_of_links(e)
    return rest if e.own[rest].any() else main


def _is_flat(e: Elements) -> bool:
    """Return True for an old page whose content is spread over the children of the body (section 3.1, criterion 3)."""
    depth = e.rated.astype(np.int64)
    for i in range(1, len(depth)):
        depth[i] += depth[e.parent[i]]
    return bool(depth.max() < np.count_nonzero(e.rated & (e.depth == 1)))


def ratios(e: Elements) -> Floats:
    """Return the four ratios of each element, shape (m, 4) (Definition 3.1)."""
    deepest = max(1, int((e.depth + (e.children > 0)).max()))
    position = np.minimum(1, deepest / np.maximum(e.depth, 1) - 1)
    columns = word_ratios(e.unlinked, e.parent, e.depth), 1 / np.maximum(e.links, 1), e.children > 2, position
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def word_ratios(words: Ints, parent: Ints, depth: Ints) -> Floats:
    """Return, for each subtree, the sum of 1/d over its words, where d is the number of edges between the word's text
    and the root of the subtree. ``words`` are the numbers of words in the texts that are children of each element.

    It takes linear time, because 1/d is the integral of x^(d - 1) from 0 to 1, and the sum of x^(d - 1) over a subtree
    is that of its child subtrees, multiplied by x. The Gauss-Legendre quadrature is exact up to 2 * :data:`POINTS`
    edges. Beyond these, a word counts less than 1/64 anyway.
    """
    x, weight = np.polynomial.legendre.leggauss(POINTS)
    x = (x + 1) / 2
    sums = np.repeat(words[:, None].astype(np.float64), POINTS, axis=1)
    order = np.argsort(depth, kind="stable")
    for level in reversed(np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[1:]):
        above = parent[level]
        first = np.flatnonzero(np.diff(above, prepend=-1))
        sums[above[first]] += np.add.reduceat(sums[level], first) * x
    return np.asarray(sums @ (weight / 2))


def candidates(points: Floats, rated: Bools) -> list[int]:
    """Return the rated elements that are farthest from the mean of all, in document order (Algorithms 1 and 2).

    The ratios are standardized first (Definition 3.2). So the mean is the origin.
    """
    which = np.flatnonzero(rated)
    if not len(which):
        return []
    points = points[which]
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1)
    distance = np.round((points**2).sum(axis=1), 9)  # so that equal points are equal, however they were summed up
    farthest = np.argsort(-distance, kind="stable")[:CANDIDATES]
    return sorted(which[farthest].tolist())


def reduced(e: Elements, which: list[int]) -> list[int]:
    """Return the candidates, without those that have the same text as an enclosing candidate (Algorithm 3)."""
    return [i for i in which if not any(j < i < e.end[j] and e.characters[i] == e.characters[j] for j in which)]


def selected(e: Elements, which: list[int]) -> list[int]:
    """Return the candidates with the most words per tag, and those of their siblings that are candidates (Algorithm
    4).
    """
    density = {i: e.words[i] / (e.end[i] - i) for i in which}
    best = max(density.values(), default=0)
    around = {int(e.parent[i]) for i in which if density[i] == best > 0}
    return [i for i in which if int(e.parent[i]) in around]


def groups_of_links(e: Elements) -> Bools:
    """Return which elements are in a group of links, shape (m,) (Algorithm 5)."""
    m = len(e.parent)
    linked = (e.characters > TEXT_RATIO * e.unlinked_characters) & (e.links > LINKS)
    first = np.minimum(np.arange(m) + 1, m - 1)  # the first child of an element that has one
    item = (e.children == 1) & (e.end > np.arange(m) + 1) & e.is_link[first]
    alike = item & (e.tag == e.tag[first[np.maximum(e.parent, 0)]])
    items = np.bincount(e.parent[1:], alike[1:], minlength=m)
    listed = (items >= 2) & (items == e.children) & (e.images == 0)
    opened = np.zeros(m + 1, dtype=np.int64)
    for i in np.flatnonzero(linked | listed).tolist():
        opened[i] += 1
        opened[e.end[i]] -= 1
    return np.cumsum(opened[:-1]) > 0
