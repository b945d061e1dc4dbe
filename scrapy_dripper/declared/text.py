"""Read the text of elements as it is shown, headings without the signs that link to them, and no more than is needed.

Real pages declare less than the limits, which bound the time for hostile ones.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_TEXT = 10_000
"""Maximum length of a value, in characters."""
LONGEST_URL = 4_000
"""Maximum length of a URL, in characters. A longer one is a list of pictures that a page names as one."""
LONGEST_TITLE = 500
"""Maximum length of a name of the page, in characters."""
LONGEST_NAME = 200
"""Maximum length of the name of an author, of a site or of a step, in characters."""
MOST_NODES = 20_000
"""Maximum number of values in the JSON-LD of a page, and of its facts."""
MOST_VALUES = 500
"""Maximum number of values of one name, such as the authors of a paper."""
MOST_ELEMENTS = 30
"""Maximum number of things of a kind, such as headings, bylines, pictures or tags."""
ABOVE = 8
"""Number of ancestors that are checked for being a comment or a teaser."""
START = 60
"""Maximum number of descendants whose text is read."""

UNSEEN = ("script", "style", "template", "noscript", "svg")
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd mark q s samp small span strong sub sup u wbr".split()
)
# The signs with which a heading links to itself, and the link to its editor. A paragraph sign before a text and a hash
# before a number are part of it, as in "§ 12" and "# 1".
_zero_width = re.compile("[\u200b\u2060\ufeff\xad]").sub
_sign = re.compile(r"\s{0,3}[¶\U0001f517](?=\s|$)|^[¶\U0001f517]\s{0,3}|^#\s{1,3}(?!\d)|\s{1,3}[#§]$").sub
_edit = re.compile(
    r"\s{0,3}\[\s{0,3}(?:edit|bearbeiten|modifier|editar|modifica|bewerken|redigera|rediger|edytuj|править|編集|编辑|편집)\b"
    r"[^][]{0,40}\]$",
    re.I,
).sub
_is_sign = re.compile(
    r"\W{0,5}|[^\w]{0,5}(?:permalink|permanent link|direct link|link to (?:this|here)|copy link)\b.{0,100}|anchor", re.I
).fullmatch
_sign_class = re.compile(
    r"\b(?:editsection|headerlink|permalink|(?:header|heading|hash)-?(?:anchor|link))\b", re.I
).search


def text_of(element: HtmlElement, most: int = 1_000) -> str:
    """Return about the first ``most`` characters of the text in an element, without scripts and styles.

    The texts of any two elements are separated by a space, like the parts of a byline.
    """
    return _text(element, most, apart=True)


def heading_text(heading: HtmlElement) -> str:
    """Return the text of a heading, in which only elements that are not part of a sentence are separated.

    Signs that link to the heading or to its editor are left out, unless there is nothing else.
    """
    return without_signs(_text(heading, 1_000, apart=False, signs=False)) or _text(heading, 1_000, apart=False)


def without_signs(text: str) -> str:
    """Return a title without the signs of permalinks: ``¶``, ``#``, zero-width spaces, ``[edit]``."""
    if text.isascii() and "#" not in text and "[" not in text:
        return text
    return _sign("", _edit("", _zero_width("", text).strip())).strip()


def _text(element: HtmlElement, most: int, *, apart: bool, signs: bool = True) -> str:
    pieces: list[str] = []
    length = 0
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in islice(walk, 2 * START):
        if event == "end":
            text = "" if node is element else node.tail or ""
        elif node is not element and (node.tag in UNSEEN or (not signs and _is_link_to_heading(node))):
            walk.skip_subtree()
            text = ""
        else:
            text = node.text or ""
        text = " ".join(text[:LONGEST_TEXT].split()) if apart else text
        pieces += ["" if node.tag in _INLINE and not apart else " ", text[:most]]
        length += len(text)
        if length > most:
            break
    return " ".join("".join(pieces).split())[:most]


def _is_link_to_heading(node: HtmlElement) -> bool:
    """Return True for an element of a heading that is a sign: a link to the heading, or to its editor."""
    if _sign_class(node.get("class") or ""):
        return True
    if node.tag not in ("a", "button") or next(islice(node.iter(), MOST_ELEMENTS, None), None) is not None:
        return False
    return _is_sign(_text(node, 200, apart=True)) is not None
