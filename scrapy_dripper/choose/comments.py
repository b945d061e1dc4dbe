"""Posts: readers' comments, by the names of their elements, which a user may keep or drop; and replies of a thread."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree

from scrapy_dripper.choose.decision import MAYBE_FORUM
from scrapy_dripper.choose.scored import ScoredPage
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import COMMENT_PLACES, COMMENT_SYSTEMS, NO_COMMENTS, either
from scrapy_dripper.structures import NEARLY_ALL

if TYPE_CHECKING:
    from scrapy_dripper.structures.posts import ThreadPost

FORUM = "forum"
"""The page type on which posts are the main content."""
DISCUSSIONS = frozenset({"discussionforumposting", "qapage"})
"""schema.org types of pages whose posts are content, in lower case."""

_part = rf"(?!(?:{either(NO_COMMENTS)})[-_])[a-z0-9]{{1,20}}[-_]{{1,2}}"
_is_comments = re.compile(
    rf"(?:^|\s)(?:(?:{_part}){{0,3}}comments?(?:[-_]{{0,2}}(?:{either(COMMENT_PLACES)})){{0,2}}(?:[-_]{{0,2}}\d{{1,12}})?"
    rf"|(?:disqus|dsq)(?:[-_][a-z0-9]{{1,20}}){{0,2}}|{either(COMMENT_SYSTEMS)})(?=\s|$)",
    re.I,
).search
"""Matches class names and ids of elements that hold comments."""
_ROLE = "comment"
_TYPES = frozenset({"comment", "usercomments"})


def in_comments(page: Page) -> Bools:
    """Return for each block whether it is in an element for comments, by class, id, role or schema.org microdata.

    The root element and the body do not count, because themes put classes there that say whether comments are open.
    """
    tree = page.tree
    named = {name for name in set(tree.names) if _is_comments(name[:LONGEST_CLASS])}
    found = [i for i in tree.typed if not _TYPES.isdisjoint(_types(tree.nodes[i]))]
    for i, node in enumerate(tree.nodes):
        if tree.names[i] in named or _ROLE in (node.get("role"), node.get("itemprop")):
            found.append(i)
    return page.within([i for i in found if i > 0 and tree.nodes[i].tag != "body"])


def _types(node: etree._Element) -> list[str]:
    """Return the names of the schema.org types of a node, in lower case."""
    return [one.rpartition("/")[2] for one in node.get("itemtype", "")[:LONGEST_CLASS].lower().split()]


def posts_of(scored: ScoredPage, main: Bools) -> list[ThreadPost]:
    """Return the posts in the main content of a thread, or the comments that are kept on purpose.

    On other pages, what has a date and an author are the cards of a list.
    """
    is_content = is_thread(scored)
    if not is_content and scored.page.config.comments != "keep":
        return []
    from scrapy_dripper.structures.posts import thread_posts  # of few pages

    return thread_posts(scored.page, main if is_content else main & in_comments(scored.page), scored.post_marks)


def may_be_thread(scored: ScoredPage) -> bool:
    """Return True for a thread, and for a page that is likely enough a forum. Models are often unsure of questions."""
    return is_thread(scored) or scored.labels.page_types.get(FORUM, 0) >= MAYBE_FORUM


def is_thread(scored: ScoredPage) -> bool:
    """Return True if posts are the content of a page, by its type, or because JSON-LD or microdata say so."""
    page = scored.page
    declared = chain(page.declared.types, *(_types(page.tree.nodes[i]) for i in page.tree.typed))
    return scored.page_type == FORUM or not DISCUSSIONS.isdisjoint(declared)


COMMENT_PROBABILITY = 0.01
"""Minimum probability of a comment that is kept. Nearly all text that people write exceeds it."""

_NO_COMMENT = Flag.FORM | Flag.BUTTON | Flag.DIALOG | Flag.HIDDEN | Flag.NOSCRIPT


def with_comments(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with comments added (``keep``) or removed (``drop``). ``auto`` leaves them unchanged.

    Comments are not removed if they are the main content: on forums, and if they are most of the main text. They are
    not added to a page without other main content.
    """
    wish = scored.page.config.comments
    if wish == "auto" or not main.any() or (wish == "drop" and scored.page_type == FORUM):
        return main
    inside = in_comments(scored.page)
    if wish == "keep":
        return main | _spoken(scored, inside)
    return main if _are_main(scored, main, inside) else main & ~inside


def comments_on(scored: ScoredPage, main: Bools) -> Bools:
    """Return which blocks are readers' comments on the main content, whether they are part of it or not.

    There are none where posts are the main content: on forums, and if comments are most of the main text.
    """
    inside = in_comments(scored.page)
    is_main = scored.page.config.comments != "keep" and _are_main(scored, main, inside)  # those were added
    if is_thread(scored) or is_main:
        return np.zeros_like(inside)
    return _spoken(scored, inside)


def _spoken(scored: ScoredPage, inside: Bools) -> Bools:
    """Return the blocks in elements for comments that people have written, unless the model is sure that they are no
    content.
    """
    page = scored.page
    spoken = (page.tree.flags[page.blocks.context] & _NO_COMMENT) == 0
    unlinked = page.blocks.link_chars < NEARLY_ALL * scored.chars
    found: Bools = inside & spoken & unlinked & (scored.probabilities >= COMMENT_PROBABILITY)
    return found


def _are_main(scored: ScoredPage, main: Bools, inside: Bools) -> bool:
    """Return True if comments are most of the main text."""
    size = scored.chars
    return bool(2 * size[main & inside].sum() > size[main].sum())
