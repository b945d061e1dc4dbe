"""Write what is chosen of a page, in all its forms: Main-HTML, content list, Markdown (or that of html2text), text.

The Markdown of html2text is made of Main-HTML, as papers on main content extraction do before they compare texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from scrapy_dripper.config import Config
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.declared import Notation
from scrapy_dripper.output.content_json import length
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.main_html import main_tree, make_absolute, to_html
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.urls import resolver
from scrapy_dripper.page.page import Mask, Page, PageError
from scrapy_dripper.page.parse import cut_off, parse
from scrapy_dripper.structures.formulas import MATH_TAGS, formula, has_math_class
from scrapy_dripper.structures.items import Card, Items, Post, only, plain_text

if TYPE_CHECKING:
    from scrapy_dripper.structures.posts import ThreadPost

__all__ = ["NOTHING", "Written", "most_chars", "write"]

_SETTING = 'DRIPPER_LIMITS["output"]'
SMALLEST_PAGE = 1_000
"""Smaller pages count as this many characters, because markup dominates the output for a few words."""

_ROOM = 4
"""How many times over its limit a content list may be, as JSON, for others to be written from it."""
_LONGEST_JSON = 30
"""Maximum number of characters of a content list, as JSON, for each one of its Main-HTML: a word between formats takes
10, a cell of nested tables 14, a letter of a formula 27."""


def most_chars(size: int, factor: int) -> int:
    """Return the limit for a form of the output, in characters.

    ``size`` is the size of the page and ``factor`` the value of ``DRIPPER_LIMITS["output"]``.
    """
    return factor * max(size, SMALLEST_PAGE)


class Written(NamedTuple):
    """The main content of a page in all its forms."""

    main_html: str
    content: Items | None
    """None if it would exceed ``DRIPPER_LIMITS["output"]`` as JSON."""
    markdown: str
    text: str
    truncated: bool = False
    """True if this is only the first part, because the whole output would exceed ``DRIPPER_LIMITS["output"]``."""


NOTHING = Written("", (), "", "")
"""The output for a page without main content."""


def write(
    page: Page,
    mask: Mask,
    config: Config,
    size: int | None = None,
    posts: Sequence[ThreadPost] = (),
    cards: Sequence[Card] = (),
) -> Written:
    """Return what a mask keeps of a page, with marks before posts, and cards at the end of the content list, unless it
    would be too long with them.

    ``size`` is the size of the document in characters or bytes. Each form of the output is limited to a
    multiple of that size; without ``size``, there is no limit. If a form is too long, raise
    :exc:`~scrapy_dripper.page.page.PageError` with the reason ``oversize``. With ``oversize="truncate"``, return the
    first part of the page that fits instead.
    """
    made: dict[int, etree._Element] = {}
    tree = main_tree(page, mask, made if posts else None)
    for post in posts:
        if post.body and post.body in made:
            made[post.body].tag = "div"
    kept = (post for post in posts if post.node in made)
    marks = {made[post.node]: Post(i, post.author, post.date) for i, post in enumerate(kept, start=1)}
    most = sys.maxsize if size is None else most_chars(size, config.limits.output)
    cut, notation = config.oversize == "truncate", page.declared.notation
    written = _fitting(tree, page.base_url, config, most, cut, notation, marks)
    types = config.markdown.types
    if not cards or written.truncated or written.content is None or not (types is None or Card.type in types):
        return written
    resolve = resolver(page.base_url, most // 2)
    content = (*written.content, *(replace(card, href=resolve(card.href)) for card in cards))
    return written if length(content) > most else written._replace(content=content)


def _fitting(
    tree: etree._Element,
    base_url: str,
    config: Config,
    most: int,
    cut: bool,
    notation: Notation,
    posts: Mapping[etree._Element, Post],
) -> Written:
    """Return all forms of a tree, each no longer than ``most``. If one is too long and ``cut`` is set, halve the tree
    until all of them fit.

    The content list may be too long: it is then left out, and does not cost the others. Nothing much longer is built on
    the way: Main-HTML has each text and attribute once, the content list is counted before others are written from it,
    and Markdown and text are at most a few dozen times as long as the content list.
    """
    form = config.markdown
    if config.absolute_urls:
        make_absolute(tree, base_url, most)
    elements = 0
    error: PageError | None = None
    while True:
        try:
            main_html = to_html(tree)
            _check("Main-HTML", len(main_html), most, config)
            content = content_list(tree, base_url, notation, most // 2, posts, main_html)
            # Nearly all pages are far below the limit, and are not counted. Each attribute may be a URL, which becomes
            # longer by that of the page.
            at_most = _LONGEST_JSON * len(main_html) + 2 * len(base_url) * main_html.count("=")
            chars = length(content) if posts or at_most > most else 0
            _check("content list", chars / _ROOM, most, config)
            if form.types is not None:
                content = only(content, form.types)
            if form.writer == "html2text":
                written = html2text_markdown(main_html, base_url, form.links != "drop", most // 2)
            else:
                written = markdown(
                    content, links=form.links, tables=form.tables, callouts=form.callouts, posts=form.posts
                )
            _check("Markdown", len(written), most, config)
            if content or error is None:
                listed = content if chars <= most else None
                return Written(main_html, listed, written, plain_text(content), truncated=error is not None)
        except PageError as too_long:
            error = too_long
            elements = (elements or sum(1 for _ in tree.iter())) // 2
            if cut and elements:
                cut_off(tree, elements)
                continue
        raise error


def _check(form: str, chars: float, most: int, config: Config) -> None:
    if chars > most:
        factor = config.limits.output
        raise PageError(
            FallbackReason.OVERSIZE,
            f"the {form} would have over {most:,} characters: "
            f"{_SETTING} = {factor} times the {most // factor:,} of the page",
            _SETTING,
        )


_MARK = "\ufdd0"
"""Stands before and after the number of a formula. No text has this character, which is reserved for such uses."""
_marks = re.compile(rf"{_MARK}(\d{{1,9}}){_MARK}")


def html2text_markdown(html: str, base_url: str = "", links: bool = True, growth: int = 1_000_000) -> str:
    """Return the Markdown of html2text, with absolute links, unwrapped lines, and formulas as LaTeX.

    ``links=False`` only keeps the text of links. ``growth`` limits the characters that absolute links add in total. The
    Markdown is not made safe: text that looks like a tag is one.
    """
    import html2text  # an extra

    tree = parse(html)
    make_absolute(tree, base_url, growth)  # html2text raises for invalid URLs
    formulas = _mark_formulas(tree)
    writer = html2text.HTML2Text(baseurl="", bodywidth=0)
    writer.unicode_snob = True  # keep Unicode characters instead of replacing them by ASCII
    writer.emphasis_mark = "*"
    writer.ignore_links = not links
    return _marks.sub(lambda mark: formulas.pop(mark[1], ""), str(writer.handle(to_html(tree)))).strip()


def _mark_formulas(tree: etree._Element) -> dict[str, str]:
    """Replace formulas by marks, which html2text does not escape. Return their LaTeX, in dollars, by number.

    html2text would write what a page has of a formula for screen readers, and its styled boxes after it.
    """
    found = []
    walk = etree.iterwalk(tree, events=("start",))
    for _, element in walk:
        if element.tag in MATH_TAGS or has_math_class(element.get("class") or ""):
            made = formula(element)
            if made is not None:
                found.append((element, made))
                walk.skip_subtree()
    formulas: dict[str, str] = {}
    for number, (element, made) in enumerate(found):
        element.clear(keep_tail=True)
        element.tag = "p" if made.display and made.latex else "span"
        if made.latex:
            dollars = "$$" if made.display else "$"
            formulas[str(number)] = f"{dollars}{made.latex}{dollars}"
            element.text = f"{_MARK}{number}{_MARK}"
    return formulas
