"""What only threads have: replies that a model leaves out, and what a forum adds to its posts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from scrapy_dripper.choose.comments import FORUM, posts_of
from scrapy_dripper.choose.headings import headline
from scrapy_dripper.choose.scored import ELSEWHERE, UNSEEN, ScoredPage
from scrapy_dripper.page.page import Bools, Flag, Tree
from scrapy_dripper.page.tags import tag_mask
from scrapy_dripper.page.vocabulary import Group, complete
from scrapy_dripper.structures import NEAR, NEARLY_ALL
from scrapy_dripper.structures.posts import thread_posts

POST_NOTES: Group = (
    "(?:message-|post-?)?last[-_]?edit(?:ed)?(?:[-_]?(?:by|info))?",
    *("(?:message-|post-?)?edit(?:ed)?[-_]?(?:by|note|notice|info|reason)", "ipscomment_edited"),
    *("(?:[a-z]{1,20}[-_]{0,2})?signature(?:[-_](?:body|(?:content[-_])?wrapper))?", "(?:k|member[-_]?)sig"),
)
"""Names of what a forum adds to its posts: signatures, and who has edited one; complete."""

ANNOUNCEMENTS: Group = (r"(?:global[-_]?)?announcements?[-_]?\d{0,8}",)
"""Names of what a forum says above its threads, complete."""

LONGEST_SIGNATURE, LONGEST_NOTE = 60, 200
"""Maximum number of words of a signature, and of what a page that is known to be a forum adds to its posts."""
LEAST_SIGNATURES = 2
"""Minimum number of signatures on a page, if it is not known to be a forum. A single one ends a letter."""
LEAST_POST = 10
"""Minimum number of words that a post keeps beside its notes, for these to be left out."""

_post_note = complete(POST_NOTES, having=("edit", "sig"))
_announcement = complete(ANNOUNCEMENTS, having=("announcement",))
_NO_NOTE = Flag.CODE | Flag.HEADING
_is_signed = tag_mask("div", "p", "aside", "section", "footer", "td", "li")
_is_note = _is_signed | tag_mask("blockquote")


def with_posts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels of what may be a thread, with main blocks, with the posts added of which nothing is main.

    Only those of their parts are added that are main in the other posts. Probabilities sink along a page, so a model
    leaves out short replies, and the last ones.
    """
    page, tree = scored.page, scored.page.tree
    in_form = scored.flags & Flag.FORM != 0  # some forums are one form
    all_in_form = 2 * scored.size[main & in_form].sum() > scored.size[main].sum()
    shown = scored.flags & ((UNSEEN | ELSEWHERE) & ~(Flag.FORM if all_in_form else 0)) == 0
    post_of = np.zeros(len(main), dtype=np.int64)  # the innermost one, because replies can be nested
    for post in thread_posts(page, main | shown, scored.post_marks):
        post_of[tree.block_start[post.node] : tree.block_end[post.node]] = post.node
    in_post = post_of > 0
    if scored.size[main & in_post].sum() <= NEARLY_ALL * scored.size[main].sum():
        return main  # an article with comments
    has_main = np.isin(post_of, post_of[main & in_post])
    blocks = np.flatnonzero(in_post)
    numbers: dict[tuple[int, ...], int] = {}
    nodes = zip(page.blocks.context[blocks].tolist(), post_of[blocks].tolist(), strict=True)
    part = np.array([numbers.setdefault(_part_of(tree, *one), len(numbers)) for one in nodes])
    words, of_main = (np.bincount(part, (scored.size * some)[blocks]) for some in (has_main, main))
    labels: Bools = main.copy()
    labels[blocks] |= (shown & ~has_main)[blocks] & (of_main > NEARLY_ALL * words)[part]
    return labels


def _part_of(tree: Tree, node: int, post: int) -> tuple[int, ...]:
    """Return which part of its post a node is: the tags and classes of the elements between them."""
    way: list[int] = []
    while node > post and len(way) < NEAR:
        way.append(int(tree.tag_class[node]))
        node = int(tree.parent[node])
    return tuple(way)


def notes(scored: ScoredPage, main: Bools, signed: list[int]) -> Iterator[int]:
    """Yield the notes on a page: its signatures, among nodes with such a name, and what a forum adds to its posts."""
    is_forum = scored.page_type == FORUM
    signed = [i for i in signed if _is_signed[scored.page.tree.tag[i]]]
    if len(signed) >= (1 if is_forum else LEAST_SIGNATURES):
        yield from chain(*_short(scored, signed, LONGEST_SIGNATURE, _NO_NOTE))
    if is_forum:
        yield from _forum_notes(scored, main)


def _forum_notes(scored: ScoredPage, main: Bools) -> list[int]:
    """Return what a forum adds to its posts, and its announcements outside of them, by the names of their elements.

    A post keeps its text, whatever the names say, and so does a thread. What has an author is a post.
    """
    tree, matching, size = scored.page.tree, scored.names.matching, scored.size * main
    of_invision = [i for i, node in enumerate(tree.nodes) if node.get("data-role") == "memberSignature"]
    added_to, outside = [*matching(_post_note), *of_invision], matching(_announcement)
    posts = [post.node for post in posts_of(scored, main)] if added_to or outside else []
    post_of = np.zeros(len(main), dtype=np.int64)  # the innermost one
    for node in posts:
        post_of[tree.block_start[node] : tree.block_end[node]] = node

    def own(nodes: Iterable[int]) -> Iterator[int]:
        return (i for i in nodes if _is_note[tree.tag[i]] and bisect_left(posts, i) == bisect_left(posts, tree.end[i]))

    added = np.zeros(len(main), dtype=np.bool_)
    added[[i for i in chain(*_short(scored, own(added_to), LONGEST_NOTE, _NO_NOTE)) if post_of[i]]] = True
    rest = np.bincount(post_of, size * ~added, len(tree.nodes))
    found: list[int] = np.flatnonzero(added & (rest[post_of] >= LEAST_POST)).tolist()
    if not outside:
        return found
    special = {headline(scored.page, main), *scored.post_marks.names}
    spans = (span for span in _short(scored, own(outside), LONGEST_NOTE, Flag.CODE) if special.isdisjoint(span))
    announced = [i for i in chain(*spans) if not post_of[i]]
    return [*found, *announced] if 2 * size[announced].sum() < size.sum() else found


def _short(scored: ScoredPage, nodes: Iterable[int], most: int, others: int) -> Iterator[range]:
    """Yield the blocks of each element with a limited number of words, and without blocks with other flags."""
    tree = scored.page.tree
    # Sums over the blocks before each one, because elements with such names can be nested.
    words, apart = scored.page.blocks.words_before(), np.cumsum([0, *(scored.flags & others != 0)])
    for node in nodes:
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        if words[b] - words[a] <= most and apart[b] == apart[a]:
            yield range(a, b)
