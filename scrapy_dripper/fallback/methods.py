"""The methods other than Trafilatura and SORE. Each is a function from a document to an extraction.

Its arguments are the text and the URL of the document, the options, and the length of the original document, which
limits the size of the output. Scripts, event handlers and invisible elements are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.characters import words_of
from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config, MethodOptions
from scrapy_dripper.data import Document, Extraction, FallbackReason, nothing
from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.derived import plain_content
from scrapy_dripper.output import NOTHING, write
from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import PageError
from scrapy_dripper.page.parse import cut_off, parse
from scrapy_dripper.page.recover import drop_controls

if TYPE_CHECKING:
    from lxml.html import HtmlElement


MAX_PARAGRAPHS = 4_000
"""Number of paragraphs that jusText gets together. For each paragraph, it may search all others for a neighbour. On a
page with more, as four of 1,310 real pages have, Trafilatura does not ask it and readability for a second opinion."""
FAR = 64
"""Number of edges beyond which a word does not count for an element. Each would add less than 1/64."""

_UNRATED = frozenset("a nav hr span em body script header h1 h2 h3 h4 h5 br iframe".split())
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def whole_page(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return an extraction in which every block is main (``html``)."""
    return by_blocks(limited_tree(text), lambda page: np.ones(len(page.blocks), dtype=np.bool_), url, config, size)


def by_title_and_paragraphs(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the title of a page as a heading, and its paragraphs (``title_paragraphs``).

    It is the baseline of Yadav, "Main Content Extraction from Business Web Pages" (section 3.5): the text of the
    elements ``<title>`` and ``<p>``, with nothing filtered but scripts and styles.
    """
    root, truncated = limited_tree(text)
    declared, body = read_declared(root, url), root.find("body")
    heading: HtmlElement | None = None
    if declared.document_title and body is not None:
        heading = body.makeelement("h1")
        heading.text, heading.tail, body.text = declared.document_title, body.text, None
        body.insert(0, heading)

    def choose(page: Page) -> Bools:
        inside = np.array([node.tag == "p" or node is heading for node in page.tree.nodes])
        for i, parent in enumerate(page.tree.parent.tolist()):
            inside[i] |= parent >= 0 and inside[parent]
        return _blocks_in(page, inside)

    return by_blocks((root, truncated), choose, url, config, size, declared=declared)


def by_library(extract: Callable[[HtmlElement], str], text: str, url: str, config: Config, size: int) -> Extraction:
    """Return what a library extracts from the tree of a page. ``extract`` returns its HTML, and may change the tree."""
    root, truncated = limited_tree(text, flat=True)
    title = read_declared(root, url).title
    html = extract(root)
    empty = replace(nothing(url, None, None, "empty"), content=plain_content(NOTHING, config))
    found = whole_page(html, url, config, size) if html else empty
    details: dict[str, Any] = {}  # the blocks are not those of the page
    return replace(found, title=title, truncated=truncated or found.truncated, details=details)


def by_readability(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the article that readability-lxml finds, with its defaults (``readability``)."""
    from readability import Document  # of an extra

    # It logs each page that it cannot process, which the fallback reports anyway.
    if logging.getLogger("readability").level == logging.NOTSET:
        logging.getLogger("readability").setLevel(logging.CRITICAL)

    def extract(root: HtmlElement) -> str:
        parse_all(root)
        drop_controls(root)  # it assigns texts, and lxml refuses some that it has parsed
        article = Document(root)
        # Its own search for attributes that it would remove takes quadratic time.
        article.get_clean_html = lambda: etree.tostring(article.html, encoding="unicode", method="html")
        return str(article.summary())

    return by_library(extract, text, url, config, size)


def by_justext(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the paragraphs that jusText calls good (``justext``). Links, images, tables and lists are lost, because
    jusText returns text.

    Stop words are those of the page's language. If the page declares no language, those of all languages count. jusText
    has no list for languages such as Chinese and Japanese, for which stop words are ignored. All options have jusText's
    defaults.
    """
    from justext import core  # of an extra

    def extract(root: HtmlElement) -> str:
        words = _stop_words(root.get("lang", "")[:20].split("-")[0].lower())
        low, high = (core.STOPWORDS_LOW_DEFAULT, core.STOPWORDS_HIGH_DEFAULT) if words else (0, 0)
        paragraphs = core.ParagraphMaker.make_paragraphs(core.preprocessor(root))
        for i in range(0, len(paragraphs), MAX_PARAGRAPHS):
            part = paragraphs[i : i + MAX_PARAGRAPHS]
            core.classify_paragraphs(part, words, stopwords_low=low, stopwords_high=high)
            core.revise_paragraph_classification(part)
        return "".join(_paragraph(one) for one in paragraphs if not one.is_boilerplate)

    return by_library(extract, text, url, config, size)


@lru_cache(maxsize=8)
def _stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language by its ISO 639-1 code, those of all languages for an empty one."""
    from justext import get_stoplist, get_stoplists
    from trafilatura.settings import JUSTEXT_LANGUAGES

    known = get_stoplists()
    if not language:
        return frozenset().union(*map(get_stoplist, known))
    name = JUSTEXT_LANGUAGES.get(language)
    return frozenset(get_stoplist(name)) if name in known else frozenset()


def _paragraph(paragraph: Any) -> str:
    tag = next((tag for tag in reversed(paragraph.dom_path.split(".")) if tag in _HEADINGS), "p")
    return f"<{tag}>{escape(paragraph.text)}</{tag}>"


def by_r4(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the main content by the method of Alarte and Silva, "Page-Level Main Content Extraction from Heterogeneous
    Webpages" (2020) (``r4``). The numbers of definitions and algorithms below are those of the paper.

    Each element is a point in four dimensions: words, links, children and position. The elements that are farthest from
    the mean are candidates. The main content is the candidate with the most words per tag, with those of its siblings
    that are candidates too.

    The paper leaves some choices open. Here, the depth of an element is counted from ``<body>``, white space between
    tags is not a child, each Han character or kana is a word, and all text inside a link counts as linked, at any
    depth. A group of links has at least two links. If the post-processing would remove everything, it is skipped.

    In one point, this differs from the paper: a paragraph is a candidate only if no other element is one. Otherwise, a
    page with few elements would lose all paragraphs but the longest, because that one has the most words per tag. In
    the form ``paper`` of ``DRIPPER_METHODS``, paragraphs are candidates as well.
    """

    def choose(page: Page) -> Bools:
        tree = page.tree
        main = np.zeros(len(tree.nodes), dtype=np.bool_)
        body = next((i for i, node in enumerate(tree.nodes) if node.tag == "body"), None)
        if body is not None:
            part = slice(body, int(tree.end[body]))
            parent, end = (column[part].astype(np.int64) - body for column in (tree.parent, tree.end))
            main[part] = main_elements(Elements(tree.nodes[part], parent, end), config.methods)
        return _blocks_in(page, main)

    return by_blocks(limited_tree(text), choose, url, config, size, labels=True)


class Elements:
    """The elements of a body in document order, as columns of length m. The first one is the body.

    A subtree includes the element itself. A word belongs to the element that has its text as a child.
    """

    def __init__(self, nodes: list[HtmlElement], parent: Ints, end: Ints) -> None:
        """``end`` is one past the last element of each subtree."""
        m = len(nodes)
        tags = [str(node.tag) for node in nodes]
        texts = [(node.text or "", node.tail or "") for node in nodes]
        number = {tag: i for i, tag in enumerate(dict.fromkeys(tags))}
        is_link = np.array([tag == "a" for tag in tags])
        depth, linked = np.zeros(m, dtype=np.int64), is_link.copy()
        for i in range(1, m):
            depth[i] = depth[parent[i]] + 1
            linked[i] |= linked[parent[i]]

        def own(measure: Callable[[str], int]) -> Ints:
            """Return the sum of a measure of the texts that are children of each element."""
            values = np.array([[measure(text) for text in pair] for pair in texts], dtype=np.int64)
            return values[:, 0] + np.bincount(parent[1:], values[1:, 1], minlength=m).astype(np.int64)

        def whole(values: npt.NDArray[Any]) -> Ints:
            """Return the sum over each subtree."""
            before = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
            return np.asarray(before[end] - before[:-1])

        characters = own(lambda text: sum(map(len, text.split())))
        self.parent, self.end, self.depth, self.is_link = parent, end, depth, is_link
        self.tag = np.array([number[tag] for tag in tags])
        self.children = own(lambda text: bool(text.strip())) + np.bincount(parent[1:], minlength=m)
        # Elements that are points. Leaves are not, nor are elements whose tag is never the root of main content.
        self.rated = (self.children > 0) & np.array([tag not in _UNRATED for tag in tags])
        self.paragraph = np.array([tag == "p" for tag in tags])
        self.links = whole(is_link)
        self.images = whole(np.array([tag == "img" for tag in tags]))
        self.own = own(lambda text: len(words_of(text)))
        self.unlinked = np.where(linked, 0, self.own)
        self.words = whole(self.own)
        self.characters = whole(characters)  # without white space
        self.unlinked_characters = whole(np.where(linked, 0, characters))


def main_elements(e: Elements, options: MethodOptions) -> Bools:
    """Return which elements are in the main content, shape (m,); none if there are no words. Takes linear time.

    Of the options, ``c`` is that of Algorithm 2 and Table 1, ``tr`` and ``hr`` are those of Algorithm 5 and Table 2.
    """
    main = np.zeros(len(e.parent), dtype=np.bool_)
    points = e.rated & ~e.paragraph
    if options.form == "paper" or not points.any():
        points = e.rated
    for i in [0] if _is_flat(e) else _selected(e, _candidates(e, points, options.c)):
        main[i : e.end[i]] = True
    rest = main & ~_groups_of_links(e, options)
    return rest if e.own[rest].any() else main


def _is_flat(e: Elements) -> bool:
    """Return True for an old page whose content is spread over the children of the body (section 3.1, criterion 3)."""
    depth = e.rated.astype(np.int64)
    for i in range(1, len(depth)):
        depth[i] += depth[e.parent[i]]
    return bool(depth.max() < np.count_nonzero(e.rated & (e.depth == 1)))


def _candidates(e: Elements, rated: Bools, count: int) -> list[int]:
    """Return the ``count`` rated elements that are farthest from the mean of all, in document order (Definitions 3.1
    and 3.2, Algorithms 1 to 3). Those with the same text as an enclosing candidate are left out.
    """
    which = np.flatnonzero(rated)
    if not len(which):
        return []
    deepest = max(1, int((e.depth + (e.children > 0)).max()))
    position = np.minimum(1, deepest / np.maximum(e.depth, 1) - 1)
    columns = word_ratios(e.unlinked, e.parent), 1 / np.maximum(e.links, 1), e.children > 2, position
    points = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)[which]
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1)  # so the mean is the origin
    distance = np.round((points**2).sum(axis=1), 9)  # so that equal points are equal, however they were summed up
    found = sorted(which[np.argsort(-distance, kind="stable")[:count]].tolist())
    return [i for i in found if not any(j < i < e.end[j] and e.characters[i] == e.characters[j] for j in found)]


def word_ratios(words: Ints, parent: Ints) -> Floats:
    """Return, for each subtree, the sum of 1/d over its words, where d is the number of edges between the word's text
    and the root of the subtree. Words that are more than :data:`FAR` edges away do not count. ``words`` are the numbers
    of words in the texts that are children of each element.
    """
    ratios = np.zeros(len(words))
    at = np.arange(len(words))
    for distance in range(1, FAR + 1):
        ratios += np.bincount(at, words / distance, minlength=len(ratios))
        inside = parent[at] >= 0
        at, words = parent[at][inside], words[inside]
    return ratios


def _selected(e: Elements, candidates: list[int]) -> list[int]:
    """Return the candidates with the most words per tag, with the candidates among their siblings (Algorithm 4)."""
    density = {i: e.words[i] / (e.end[i] - i) for i in candidates}
    best = max(density.values(), default=0)
    around = {int(e.parent[i]) for i in candidates if density[i] == best > 0}
    return [i for i in candidates if int(e.parent[i]) in around]


def _groups_of_links(e: Elements, options: MethodOptions) -> Bools:
    """Return which elements are in a group of links, shape (m,) (Algorithm 5)."""
    m = len(e.parent)
    linked = (e.characters > options.tr * e.unlinked_characters) & (e.links > options.hr)
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


def by_blocks(
    tree: tuple[HtmlElement, bool],
    choose: Callable[[Page], Bools],
    url: str,
    config: Config,
    size: int,
    *,
    labels: bool = False,
    declared: Declared | None = None,
) -> Extraction:
    """Return an extraction with the blocks that ``choose`` returns as a mask of shape (n,); with ``labels``, as its
    labels as well, with probabilities of 1 and 0. ``declared`` is what the page says of itself, if that has been read.
    """
    root, truncated = tree
    page = cut(root, url, declared)
    main = choose(page)
    some = main.any() or not len(main)  # a page of images has no blocks
    written = write(page, mask_of(page, main), replace(config, oversize="truncate"), size) if some else NOTHING
    return Extraction(
        url=url,
        title=page.declared.title,
        main_html=written.main_html,
        markdown=written.markdown,
        text=written.text,
        content=plain_content(written, config),
        source="",  # the caller adds the name
        labels=tuple(main.tolist()) if labels else (),
        probabilities=tuple(main.astype(float).tolist()) if labels else (),
        details={"blocks": len(main)},
        truncated=truncated or written.truncated,
    )


def _blocks_in(page: Page, nodes: Bools) -> Bools:
    """Return which blocks of a page have at least half of their text in nodes, which are a mask of shape (m,)."""
    tree, n = page.tree, len(page.blocks)
    owners = np.concatenate([tree.text_owner, tree.tail_owner])
    texts = [node.text for node in tree.nodes] + [node.tail for node in tree.nodes]
    sizes = np.array([len(text or "") for text in texts], dtype=np.float64)
    inside = np.concatenate([nodes, nodes[tree.parent] & (tree.parent >= 0)])
    known = owners >= 0
    share = np.bincount(owners[known], (sizes * inside)[known], minlength=n)
    total = np.bincount(owners[known], sizes[known], minlength=n)
    return np.asarray((total > 0) & (2 * share >= total))


MAX_ELEMENTS = 25_000
"""Maximum number of elements that a fallback gets. Trafilatura takes 5 s for this many short paragraphs, and 2 minutes
for five times as many. The largest of 1,310 real pages has 16,000."""

MAX_DEPTH = 50
"""Maximum depth of the elements that Trafilatura gets: it searches all ancestors of each element, and all tables inside
each table. Of 1,743 real pages, only one is deeper, with a depth of 90."""

FIRST_PART = 200_000
"""Characters or bytes to keep of a document that cannot be parsed as a whole. This many can be parsed at any depth."""

_is_deep = etree.XPath(f"boolean(/descendant::*[count(ancestor::*) >= {MAX_DEPTH}])")


def text_within(document: Document, most: int) -> str:
    """Return the text of the first bytes or characters of a document."""
    html = document.html[:most]
    return html if isinstance(html, str) else decode_html(html, document.charset)


def first_part(document: Document) -> Document | None:
    """Return a document with the first :data:`FIRST_PART` characters or bytes, or None if it is not longer."""
    if len(document.html) <= FIRST_PART:
        return None
    return replace(document, html=document.html[:FIRST_PART])


def limited_tree(text: str, *, flat: bool = False) -> tuple[HtmlElement, bool]:
    """Return the tree of a document, and whether it was truncated.

    With ``flat``, elements deeper than :data:`MAX_DEPTH` become siblings. Raise :exc:`PageError` if the document cannot
    be parsed.
    """
    truncated = False
    try:
        root = flat_tree(text, flat)
    except PageError as error:
        if error.reason is not FallbackReason.TRUNCATED_PARSE:
            raise
        root, truncated = flat_tree(text[:FIRST_PART], flat), True
    return root, cut_off(root, MAX_ELEMENTS) or truncated


def flat_tree(text: str, flat: bool = True) -> HtmlElement:
    """Return the tree of a document, as :func:`limited_tree` does, with any number of elements."""
    root = parse(text)
    return parse(text, flat=True, depth=MAX_DEPTH) if flat and _is_deep(root) else root


def parse_all(root: HtmlElement) -> None:
    """Rename the elements of a tree whose text a parser would not parse, before the tree is written as HTML.

    Their text would be escaped twice, and ``<plaintext>`` would absorb the end tags after it.
    """
    for element in root.iter("listing", "plaintext", "xmp"):
        element.tag = "pre"
