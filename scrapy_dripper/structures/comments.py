"""Readers' comments: the elements that hold them, by class, id, role or schema.org microdata."""

from __future__ import annotations

import re

from lxml import etree

from scrapy_dripper.page.page import Bools, Page
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import COMMENT_PLACES, COMMENT_SYSTEMS, NO_COMMENTS, either

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
    found = [i for i in tree.typed if not _TYPES.isdisjoint(types_of(tree.nodes[i]))]
    for i, node in enumerate(tree.nodes):
        if tree.names[i] in named or _ROLE in (node.get("role"), node.get("itemprop")):
            found.append(i)
    return page.within([i for i in found if i > 0 and tree.nodes[i].tag != "body"])


def types_of(node: etree._Element) -> list[str]:
    """Return the names of the schema.org types of a node, in lower case."""
    return [one.rpartition("/")[2] for one in node.get("itemtype", "")[:LONGEST_CLASS].lower().split()]
