"""Convert Main-HTML to Markdown with html2text, as papers on main content extraction do before they compare texts."""

from __future__ import annotations

import re

import html2text
from lxml import etree

from scrapy_dripper.output.main_html import make_absolute, to_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.formulas import MATH_TAGS, formula, has_math_class

_MARK = "\ufdd0"
"""Stands before and after the number of a formula. No text has this character, which is reserved for such uses."""
_marks = re.compile(rf"{_MARK}(\d{{1,9}}){_MARK}")


def markdown(html: str, base_url: str = "", links: bool = True, growth: int = 1_000_000) -> str:
    """Return the Markdown of html2text, with absolute links, unwrapped lines, and formulas as LaTeX.

    ``links=False`` only keeps the text of links. ``growth`` limits the characters that absolute links add in total. The
    Markdown is not made safe: text that looks like a tag is one.
    """
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
