"""Convert Main-HTML to Markdown with html2text, as papers on main content extraction do before they compare texts."""

from __future__ import annotations

import html2text

from scrapy_dripper.output.main_html import make_absolute, to_html
from scrapy_dripper.page.parse import parse


def markdown(html: str, base_url: str = "", links: bool = True, growth: int = 1_000_000) -> str:
    """Return the Markdown of html2text, with absolute links and unwrapped lines.

    ``links=False`` only keeps the text of links. ``growth`` limits the characters that absolute links add in total. The
    Markdown is not made safe: text that looks like a tag is one.
    """
    tree = parse(html)
    make_absolute(tree, base_url, growth)  # html2text raises for invalid URLs
    writer = html2text.HTML2Text(baseurl="", bodywidth=0)
    writer.unicode_snob = True  # keep Unicode characters instead of replacing them by ASCII
    writer.emphasis_mark = "*"
    writer.ignore_links = not links
    return str(writer.handle(to_html(tree))).strip()
