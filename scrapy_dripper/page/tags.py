"""Tables of HTML tags for the cutters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag

LONGEST_CLASS = 1_000
"""Characters of an attribute, such as a class, or of a rule of a style sheet, to consider. Results are cached, and a
page controls the length of the keys."""


def by_class(test: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return a test that sees the beginning of a class attribute, and remembers its last answers."""
    known = lru_cache(4_096)(test)
    return wraps(test)(lambda name: known(name[:LONGEST_CLASS]))


class Kind:
    """The role of a tag in cutting."""

    INLINE = 0
    BLOCK = 1
    BREAK = 2
    """A line break. Two in a row end a block."""
    MEDIA = 3
    """Visible but not text. It belongs to the run or the gap around it."""


UNSEEN = frozenset(
    "script style template svg iframe object embed canvas select datalist "
    "textarea head title link meta param frame noframes noembed".split()
)
"""Tags whose content is never visible as text of the page."""

BLOCKS = (
    "html", "body", "div", "p", "section", "article", "aside", "header", "footer", "nav", "main", "address",
    "blockquote", "center", "dir", "menu", "fieldset", "form", "figure", "figcaption", "hgroup", "hr", "search",
    "details", "summary", "dialog", "legend", "button", "noscript", "ul", "ol", "li", "dl", "dt", "dd",
    "table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th",
    "pre", "listing", "xmp", "plaintext", "h1", "h2", "h3", "h4", "h5", "h6", "frameset", "optgroup", "option",
)  # fmt: skip

INLINE = (
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "input",
    "ins", "kbd", "label", "mark", "math", "meter", "nobr", "output", "progress", "q", "rp", "rt", "ruby", "s", "samp",
    "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
)  # fmt: skip

MEDIA = ("img", "picture", "source", "video", "audio", "track", "image")

TAGS: dict[str, int] = {tag: i for i, tag in enumerate((*BLOCKS, *INLINE, "br", *MEDIA), start=1)}
"""Tags and their numbers, from 1; 0 is any other tag. The order is part of the tagger's feature schema, so only append
to it."""

REFERENCES = frozenset({"aria-controls", "data-target", "data-bs-target", "data-toggle-target", "data-href", "for"})
"""Attributes, besides ``href``, that hold the id of another element."""


def tag_mask(*tags: str) -> npt.NDArray[np.bool_]:
    """Return an array that is True for the numbers of these tags, to be indexed with a column of tag numbers."""
    mask = np.zeros(len(TAGS) + 1, dtype=np.bool_)
    mask[[TAGS[tag] for tag in tags]] = True
    return mask


SILENT = frozenset({"script", "iframe", "amp-mathml"})
"""Tags without text that can still be content: formulas and players. They do not affect the blocks."""

PLAYERS = frozenset({"lite-youtube", "amp-youtube", "youtube-video"})
"""Custom elements that play a video."""

DRAWN, DRAWN_MATHML = "mjx-container", "mjx-assistive-mml"
"""The elements of a formula that MathJax 3 or 4 draws, and of its MathML, which is in it for screen readers."""

OWNED = PLAYERS | {"hr", DRAWN}
"""Blocks that are visible although they hold no text."""

KINDS: dict[str, int] = {
    **dict.fromkeys(BLOCKS, Kind.BLOCK),
    **dict.fromkeys(INLINE, Kind.INLINE),
    **dict.fromkeys((*MEDIA, *SILENT), Kind.MEDIA),
    "br": Kind.BREAK,
}

VOID = frozenset({"embed", "source", "track", "wbr", "keygen", "bgsound", "command", "image"})
"""Void elements that libxml2 does not know, so that it gives them content."""

ENDS_PARAGRAPH = tuple(
    "article aside details dialog figcaption figure footer header hgroup main nav search section summary".split()
)
"""Tags that end a paragraph in HTML5 but not in libxml2, because HTML 4 does not have them."""

METADATA = frozenset(
    {"title", "meta", "link", "base", "basefont", "bgsound", "style", "script", "noscript", "noframes", "template"}
)
"""Tags that are allowed in the head."""

SVG_BREAKOUT = frozenset(
    "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing menu "
    "meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""HTML tags that end an open ``<svg>`` (HTML standard, 13.2.6.5). ``<font>`` also does, with some attributes."""
SVG_HTML = frozenset({"foreignobject", "desc", "title"})
"""SVG tags that may hold HTML."""

TABLE_PARTS = frozenset({"caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th"})
CELLS = frozenset({"td", "th", "dt"})

_FLAGS = (
    (Flag.NAV, "nav", "navigation menu menubar"),
    (Flag.HEADER, "header", "banner"),
    (Flag.FOOTER, "footer", "contentinfo"),
    (Flag.ASIDE, "aside", "complementary"),
    (Flag.MAIN, "main", "main"),
    (Flag.ARTICLE, "article", "article"),
    (Flag.SECTION, "section", ""),
    (Flag.FORM, "form fieldset", "form search"),
    (Flag.NOSCRIPT, "noscript", ""),
    (Flag.DIALOG, "dialog", "dialog alertdialog"),
    (Flag.TABLE, "table", "table grid"),
    (Flag.LIST, "ul ol menu", "list"),
    (Flag.LINK, "a", ""),
    (Flag.BUTTON, "button", "button"),
    (Flag.FIGURE, "figure", "figure"),
    (Flag.HEADING, "h1 h2 h3 h4 h5 h6", "heading"),
    (Flag.PARAGRAPH, "p", ""),
    (Flag.PREFORMATTED, "plaintext", ""),
    (Flag.PREFORMATTED | Flag.CODE, "pre listing xmp", ""),
    (Flag.CODE, "code kbd samp tt", ""),
    (Flag.QUOTE, "blockquote", ""),
    (Flag.DEFINITION, "dl", ""),
    (Flag.DETAILS, "details", ""),
    (Flag.STRONG, "b strong th", ""),
)
"""The tags and the roles of ARIA that give a flag."""
TAG_FLAGS = {tag: flag for flag, tags, _ in _FLAGS for tag in tags.split()}
ROLE_FLAGS = {role: flag for flag, _, roles in _FLAGS for role in roles.split()}
