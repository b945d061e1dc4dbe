"""The fallback ``r4``: the main content by the method of Alarte and Silva, "Page-Level Main Content Extraction from
Heterogeneous Webpages" (2020).

Each element is a point in four dimensions: words, links, children and position. The elements that are farthest from the
mean are candidates; the one with the most words per tag, and its siblings among the candidates, are the main content.
Numbers of definitions and algorithms are those of the paper.

Where the paper leaves a choice: the depth of an element counts from ``<body>``; white space between tags is no child;
a Han character or kana is a word; a text inside of a link is linked, at any depth. A group of links has two or more of
them. The post-process does not remove everything.

Where this goes beyond the paper: a paragraph is a candidate only if nothing else is. A page of few elements would lose
all but its longest paragraph, because that has the most words per tag.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Extraction
from scrapy_dripper.fallback.chosen import blocks_in, by_blocks
from scrapy_dripper.page import Page

CANDIDATES = 3
"""Elements that are farthest from the mean, c of Algorithm 2 (the paper's Table 1)."""
TEXT_RATIO, LINKS = 1.5, 7
"""A part with a larger ratio of text to text outside of links, and with more links, is a group of links: tr and hr of
Algorithm 5 (the paper's Table 2)."""
POINTS = 32
"""Points of the quadrature that divides words by their distance, exactly up to twice as many edges."""

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

    None is if the page has no body, or no words. With ``paper``, paragraphs are candidates as well.
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
    """True for elements that are points: not leaves, and not of a tag that is never the root of main content."""
    paragraph: Bools
    links: Ints
    """Links in the subtree, which includes the element itself."""
    images: Ints
    children: Ints
    """Child elements and texts that are not blank."""
    is_link: Bools
    own: Ints
    """Words in the texts that are children of the element."""
    unlinked: Ints
    """Those of them that are outside of links."""
    words: Ints
    """Words of the subtree."""
    characters: Ints
    """Characters of the subtree that are no white space."""
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
            """Return the sum over the texts that are children of each element, for values of texts and tails."""
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
    """Return the words of each subtree, each divided by the number of edges between its text and the root of the
    subtree. ``words`` are those of texts that are children of an element.

    Takes linear time, because 1/d is the integral of x^(d - 1) from 0 to 1, for which the sum of a subtree is that of
    its children times x. Gauss-Legendre quadrature is exact up to 2 * :data:`POINTS` edges; beyond them, a word counts
    less than 1/64 anyway.
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

    The ratios are standardized before (Definition 3.2). So the mean is the origin.
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
    """Return candidates without those that have the same text as a candidate around them (Algorithm 3)."""
    return [i for i in which if not any(j < i < e.end[j] and e.characters[i] == e.characters[j] for j in which)]


def selected(e: Elements, which: list[int]) -> list[int]:
    """Return the candidates with the most words per tag, and their siblings among the candidates (Algorithm 4)."""
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
