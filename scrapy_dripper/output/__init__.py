"""Labels to text: Main-HTML, content list, Markdown and plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from lxml import etree

from scrapy_dripper.config import Config
from scrapy_dripper.output import html2text_output
from scrapy_dripper.output.code.guess import magika_guess
from scrapy_dripper.output.content_list import content_list, only
from scrapy_dripper.output.items import Items
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.text import plain_text
from scrapy_dripper.page.errors import PageError
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse

__all__ = ["NOTHING", "Written", "write", "write_html"]


class Written(NamedTuple):
    """The main content of a page in all its forms."""

    main_html: str
    content: Items
    markdown: str
    text: str


NOTHING = Written("", (), "", "")
"""The main content of a page that has none."""


def write(page: Page, main: npt.NDArray[np.bool_], config: Config) -> Written:
    """Return the main content of a page whose blocks are labelled."""
    tree = main_tree(page, main)
    return _write(tree, to_html(tree), page.base_url, config, page.scripts)


def write_html(main_html: str, base_url: str, config: Config) -> Written:
    """Return the same for HTML that is main content already, and stays as it is; nothing for what is no HTML."""
    try:
        tree = parse(main_html)
    except PageError:
        return Written(main_html, (), "", "")
    return _write(tree, main_html, base_url, config)


def _write(tree: etree._Element, main_html: str, base_url: str, config: Config, scripts: Sequence[str] = ()) -> Written:
    content = content_list(tree, base_url, scripts, magika_guess() if config.guess_language else None)
    if config.content_types is not None:
        content = only(content, config.content_types)
    if config.markdown == "html2text":
        written = html2text_output.markdown(main_html, base_url, links=config.links != "drop")
    else:
        written = markdown(content, config.links, config.complex_tables, config.callouts)  # type: ignore[arg-type]
    return Written(main_html, content, written, plain_text(content))
