"""What each HTML tag is to the cutter, in one table."""

from __future__ import annotations

from enum import IntEnum

from scrapy_dripper.page.page import Flag

LONGEST_CLASS = 1_000
"""Characters of a class attribute that are looked at: what it says is remembered, and pages choose how long it is."""


class Kind(IntEnum):
    """How a tag takes part in cutting."""

    INLINE = 0
    BLOCK = 1
    BREAK = 2
    """A line break; two in a row end a block."""
    MEDIA = 3
    """Shown, but not text: belongs to the run or the gap where it stands."""


UNSEEN = (
    "script", "style", "template", "svg", "iframe", "object", "embed", "canvas", "select", "datalist",
    "textarea", "head", "title", "link", "meta", "param", "frame", "noframes", "noembed",
)  # fmt: skip
"""Tags whose content a reader never sees as text of the page."""

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
"""Tag to its number, from 1; 0 is any other tag. The order is part of the tagger's feature schema: append only."""

SILENT = frozenset({"script", "iframe", "amp-mathml"})
"""Of :data:`UNSEEN`, what can be content without being text: formulas and players. No block knows of them."""

PLAYERS = frozenset({"lite-youtube", "amp-youtube", "youtube-video"})
"""Custom elements that stand for a video."""

OWNED = PLAYERS | {"hr", "mjx-container"}
"""Blocks that show something although there is nothing in them, or no text: MathJax draws formulas without."""

KINDS: dict[str, Kind] = {
    **dict.fromkeys(BLOCKS, Kind.BLOCK),
    **dict.fromkeys(INLINE, Kind.INLINE),
    **dict.fromkeys((*MEDIA, *SILENT), Kind.MEDIA),
    "br": Kind.BREAK,
}

VOID = frozenset({"embed", "source", "track", "wbr", "keygen", "bgsound", "command", "image"})
"""Tags without content that libxml2 takes for tags with content, beside those that it knows."""

ENDS_PARAGRAPH = tuple(
    "article aside details dialog figcaption figure footer header hgroup main nav search section summary".split()
)
"""Tags that end a paragraph and that libxml2 does not know: to HTML 4 they are no blocks."""

METADATA = frozenset(
    {"title", "meta", "link", "base", "basefont", "bgsound", "style", "script", "noscript", "noframes", "template"}
)
"""Tags that do not end the head."""

SVG_BREAKOUT = frozenset(
    "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing menu "
    "meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""Tags of HTML that end an open ``<svg>`` (HTML standard, 13.2.6.5); ``<font>`` only with some attributes."""
SVG_HTML = frozenset({"foreignobject", "desc", "title"})
"""Tags of SVG that may hold HTML."""

LOOSE = frozenset({"a", "span", "label", "time", "button"})
"""Inline tags that pages set side by side and space by style sheet: text on both sides must not glue."""

TABLE_PARTS = frozenset({"caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th"})
CELLS = frozenset({"td", "th", "dt"})

TAG_FLAGS: dict[str, Flag] = {
    "nav": Flag.NAV,
    "header": Flag.HEADER,
    "footer": Flag.FOOTER,
    "aside": Flag.ASIDE,
    "main": Flag.MAIN,
    "article": Flag.ARTICLE,
    "section": Flag.SECTION,
    "form": Flag.FORM,
    "fieldset": Flag.FORM,
    "noscript": Flag.NOSCRIPT,
    "dialog": Flag.DIALOG,
    "table": Flag.TABLE,
    "ul": Flag.LIST,
    "ol": Flag.LIST,
    "menu": Flag.LIST,
    "a": Flag.LINK,
    "button": Flag.BUTTON,
    "figure": Flag.FIGURE,
    "p": Flag.PARAGRAPH,
    "pre": Flag.PREFORMATTED | Flag.CODE,
    "listing": Flag.PREFORMATTED | Flag.CODE,
    "xmp": Flag.PREFORMATTED | Flag.CODE,
    "plaintext": Flag.PREFORMATTED,
    "code": Flag.CODE,
    "kbd": Flag.CODE,
    "samp": Flag.CODE,
    "tt": Flag.CODE,
    "blockquote": Flag.QUOTE,
    "dl": Flag.DEFINITION,
    "details": Flag.DETAILS,
    "b": Flag.STRONG,
    "strong": Flag.STRONG,
    "th": Flag.STRONG,
    **{f"h{level}": Flag.HEADING for level in range(1, 7)},
}

ROLE_FLAGS: dict[str, Flag] = {
    "navigation": Flag.NAV,
    "menu": Flag.NAV,
    "menubar": Flag.NAV,
    "banner": Flag.HEADER,
    "contentinfo": Flag.FOOTER,
    "complementary": Flag.ASIDE,
    "main": Flag.MAIN,
    "article": Flag.ARTICLE,
    "form": Flag.FORM,
    "search": Flag.FORM,
    "dialog": Flag.DIALOG,
    "alertdialog": Flag.DIALOG,
    "table": Flag.TABLE,
    "grid": Flag.TABLE,
    "list": Flag.LIST,
    "button": Flag.BUTTON,
    "heading": Flag.HEADING,
    "figure": Flag.FIGURE,
}
