"""Write tables that Markdown cannot express: as HTML, or as simple tables whose spanning cells are repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from scrapy_dripper.output.items import (
    Audio,
    Cell,
    Code,
    CodeBlock,
    Deleted,
    Emphasis,
    FootnoteMark,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    LineBreak,
    Link,
    List,
    Paragraph,
    Post,
    Quote,
    Ruby,
    Rule,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    Table,
    Text,
    Title,
    Video,
)
from scrapy_dripper.output.tables.table import as_line

_TAGS: dict[type, str] = {Emphasis: "em", Strong: "strong", Deleted: "del", Sub: "sub", Sup: "sup"}
_marks = re.compile(r"\](?=[(\[:])|```|~~~").sub
_before_blank_line = re.compile(r"[\r\n](?=[ \t]*[\r\n])").sub


def table_html(table: Table, links: bool = True) -> str:
    """Return a table as HTML without blank lines, which would end the HTML in Markdown (CommonMark 4.6).

    Formulas are written in dollar signs, as in Markdown. Dollar signs in text become character references.
    ``links=False`` only keeps the text of links.
    """
    return _Writer(links).table(table)


def code_html(code: CodeBlock) -> str:
    """Return a code block as HTML without blank lines and without active Markdown syntax."""
    return _Writer(links=True).item(code)


class _Writer:
    """Writes items as HTML."""

    def __init__(self, links: bool) -> None:
        self.links = links

    def table(self, table: Table, line_break: str = "\n") -> str:
        lines = ["<table>"]
        if table.caption:
            lines.append(f"<caption>{self.runs(table.caption)}</caption>")
        head, body = table.rows[: table.header_rows], table.rows[table.header_rows :]
        for tag, rows in (("thead", head), ("tbody", body)):
            if rows:
                lines += [f"<{tag}>", *map(self.row, rows), f"</{tag}>"]
        lines.append("</table>")
        return line_break.join(lines)

    def row(self, cells: Sequence[Cell]) -> str:
        return f"<tr>{''.join(map(self.cell, cells))}</tr>"

    def cell(self, cell: Cell) -> str:
        tag = "th" if cell.header else "td"
        colspan = f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
        rowspan = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
        return f"<{tag}{colspan}{rowspan}>{self.content(cell.items)}</{tag}>"

    def content(self, items: Items) -> str:
        """Return the content of a cell or a list entry. A single paragraph gets no tags."""
        if len(items) == 1 and isinstance(items[0], Paragraph):
            return self.runs(items[0].runs)
        if len(items) == 1 and isinstance(items[0], (Image, Formula)) and not getattr(items[0], "caption", ()):
            return self.run(items[0])
        if len(items) == 2 and isinstance(items[0], Paragraph) and isinstance(items[1], List):
            return f"{self.runs(items[0].runs)}{self.item(items[1])}"
        return "".join(map(self.item, items))

    def item(self, item: Item) -> str:
        match item:
            case Paragraph():
                return f"<p>{self.runs(item.runs)}</p>"
            case Title():
                return f"<h{item.level}>{self.runs(item.runs)}</h{item.level}>"
            case CodeBlock():
                language = f' class="language-{_value(item.language)}"' if item.language else ""
                code = _before_blank_line("&#10;", _text(item.text))
                return f"<pre><code{language}>{code}</code></pre>"
            case Formula():
                return f"<p>{self.run(item)}</p>"
            case Table():
                return self.table(item, line_break="")
            case List():
                return self.list(item)
            case Image():
                return self.figure(self.run(item), item.caption)
            case Video() | Audio():
                return self.figure(self.link(item.src, _text(item.title or item.src)), item.caption)
            case Quote():
                title = f"<p><strong>{self.runs(item.caption)}</strong></p>" if item.caption else ""
                return f"<blockquote>{title}{''.join(map(self.item, item.items))}</blockquote>"
            case Rule() | Post():
                return "<hr>"
            case Footnotes():
                notes = (f"<li>{self.content(note.items)}</li>" for note in item.notes)
                return f"<ol>{''.join(notes)}</ol>"

    def list(self, item: List) -> str:
        entries = []
        for entry in item.items:
            if item.kind == "definition":
                entries += [f"<dt>{self.runs(term)}</dt>" for term in entry.terms if term]
                entries.append(f"<dd>{self.content(entry.items)}</dd>" if entry.items else "")
            else:
                value = "" if entry.number is None else f' value="{entry.number}"'
                box = "" if entry.checked is None else "[x] " if entry.checked else "[ ] "
                entries.append(f"<li{value}>{box}{self.content(entry.items)}</li>")
        tag = {"unordered": "ul", "ordered": "ol", "definition": "dl"}[item.kind]
        start = f' start="{item.start}"' if item.start != 1 else ""
        return f"<{tag}{start}>{''.join(entries)}</{tag}>"

    def figure(self, content: str, caption: Runs) -> str:
        return f"<p>{content}</p>" + (f"<p>{self.runs(caption)}</p>" if caption else "")

    def runs(self, runs: Runs) -> str:
        return "".join(map(self.run, runs))

    def run(self, run: Run) -> str:
        match run:
            case Text():
                return _text(run.text)
            case Emphasis() | Strong() | Deleted() | Sub() | Sup():
                tag = _TAGS[type(run)]
                return f"<{tag}>{self.runs(run.runs)}</{tag}>"
            case Link():
                return self.link(run.href, self.runs(run.runs), run.title)
            case Code():
                return f"<code>{_text(run.text)}</code>"
            case Formula():
                marks = "$$" if run.display else "$"
                return f"{marks}{_before_blank_line('&#10;', _inert(escape(run.latex, quote=False)))}{marks}"
            case Image():
                title = f' title="{_value(run.title)}"' if run.title else ""
                image = f'<img src="{_value(run.src)}" alt="{_value(run.alt)}"{title}>'
                return self.link(run.href, image) if run.href else image
            case LineBreak():
                return "<br>"
            case Ruby():
                return f"<ruby>{self.runs(run.runs)}<rt>{_text(run.reading)}</rt></ruby>"
            case FootnoteMark():
                return f"[^{_text(run.label)}]"

    def link(self, href: str, content: str, title: str = "") -> str:
        if not self.links:
            return content
        attribute = f' title="{_value(title)}"' if title else ""
        return f'<a href="{_value(href)}"{attribute}>{content}</a>'


def _text(text: str) -> str:
    return _inert(escape(text, quote=False)).replace("$", "&#36;").replace("{", "&#123;")


def _value(value: str) -> str:
    """Escape the value of an attribute."""
    return _inert(escape(value)).replace("\r", "&#13;").replace("\n", "&#10;")


def _inert(html: str) -> str:
    """Escape Markdown syntax and fences, since some renderers interpret Markdown inside HTML."""
    return _marks(lambda mark: "".join(f"&#{ord(one)};" for one in mark[0]), html)


FREE, FACTOR = 10_000, 4
"""The characters of repeated cells in a table: so many, and so many times those of the table. Further cells are not
repeated."""


def linear(table: Table) -> Table:
    """Return a table as a simple one. Only the first of several header rows stays a header row."""
    above: dict[int, tuple[Cell, int]] = {}  # column to the cell spanning from above, and its remaining rows
    rows: list[tuple[Cell, ...]] = []
    left = FREE + FACTOR * len(repr(table.rows))
    for row in table.rows:
        cells: list[Cell] = []
        for cell in (*row, None):
            while len(cells) in above:
                spanning, more = above.pop(len(cells))
                if more > 1:
                    above[len(cells)] = spanning, more - 1
                cells.append(spanning)
            if cell is None:
                break
            line = Cell((Paragraph(as_line(cell.items, Text(" "))),) if cell.items else (), header=cell.header)
            repeated = cell.rowspan * cell.colspan
            if repeated > 1:
                left -= repeated * len(repr(line))
            columns, more = (cell.colspan, cell.rowspan - 1) if left >= 0 else (1, 0)
            for _ in range(columns):
                if more:
                    above[len(cells)] = line, more
                cells.append(line)
        rows.append(tuple(cells))
    return replace(table, rows=tuple(rows), header_rows=min(table.header_rows, 1), simple=True)
