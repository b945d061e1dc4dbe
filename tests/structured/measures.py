"""What a Markdown document says: its text, code, formulas and tables.

Code and tables are those of a renderer for CommonMark and GitHub's tables, so it does not matter how they are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import lxml.html
from lxml.html import HtmlElement
from markdown_it import MarkdownIt

_renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_code = re.compile(r"(?ms)^ {0,12}(`{3,}|~{3,}).*?^ {0,12}\1|(`+)(?!`).+?(?<!`)\2(?!`)")
_formula = re.compile(
    r"(?<![\\$])\$\$(?P<a>.+?)\$\$|(?<![\\$])\$(?P<b>[^$\s](?:[^$]*?[^$\s\\])?)\$(?!\d)"
    r"|\\{1,2}\((?P<c>.+?)\\{1,2}\)|\\{1,2}\[(?P<d>.+?)\\{1,2}\]",
    re.S,
)


@dataclass(frozen=True)
class Rendered:
    """A Markdown document and its rendered form."""

    markdown: str

    @cached_property
    def tree(self) -> HtmlElement:
        """The HTML that it renders to, in a ``<div>``."""
        return lxml.html.fragment_fromstring(_renderer.render(self.markdown), create_parent="div")

    def find(self, path: str) -> list[HtmlElement]:
        """Return elements by XPath."""
        return list(self.tree.xpath(path))

    def texts(self, path: str) -> list[str]:
        """Return the text of elements, with collapsed white space."""
        return [" ".join(one.text_content().split()) for one in self.find(path)]

    @cached_property
    def text(self) -> str:
        """All text, with collapsed white space and a space between adjacent elements."""
        return " ".join(" ".join(self.tree.itertext()).split())

    @cached_property
    def codes(self) -> list[str]:
        """Code blocks as written, without the line break at the end."""
        return [one.text_content().strip("\n") for one in self.find(".//pre")]

    @cached_property
    def formulas(self) -> list[str]:
        """LaTeX in any of the usual delimiters, outside of code, without white space."""
        found = _formula.finditer(_code.sub(" ", self.markdown))
        return ["".join("".join(group or "" for group in match.groups()).split()) for match in found]

    @cached_property
    def tables(self) -> list[HtmlElement]:
        """Tables that are not inside another table."""
        return self.find(".//table[not(ancestor::table)]")
