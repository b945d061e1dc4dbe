"""Write the content list as Markdown: CommonMark with GFM tables, formulas in dollar signs, and footnotes.

Characters of text that would be Markdown syntax are escaped. Structures that Markdown cannot express (tables with
spans, ``<sub>``) are written as HTML, without attributes other than those of spans, links and images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, Literal

from scrapy_dripper.characters import without_controls
from scrapy_dripper.output.markdown_inline import InlineWriter, Links, is_live, tex
from scrapy_dripper.structures.callouts import says
from scrapy_dripper.structures.items import (
    Audio,
    Card,
    CodeBlock,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    LineBreak,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Strong,
    Table,
    Text,
    ThematicBreak,
    Title,
    Video,
    as_lines,
    line_text,
    only,
)
from scrapy_dripper.structures.tables import code_html, is_mostly_padding, linear, table_html

Tables = Literal["html", "linear"]
Callouts = Literal["alerts", "quotes"]
Posts = Literal["rules", "named"]

MAX_PREFIX = 20
"""Maximum length of the prefix of a line for the lists and quotes around it. Deeper ones are written without
markers."""
NAMED_WITHIN, LONGEST_BYLINE = 3, 100
"""Number of items at the beginning of a post, and of their characters, that are searched for the name of its author."""
MAX_NUMBER = 999_999_999
"""The largest number of a list entry (CommonMark 5.2)."""

_not_in_language = re.compile(r"[^\w#.+-]").sub  # Python-Markdown does not accept a fence with other characters
# Python-Markdown only accepts fences at the beginning of a line. In a list, this content would be interpreted.
_active = re.compile(r"<[A-Za-z/!?]|\](?=[(\[:])|\{[^{=\n]*=").search
_indent = re.compile(r"\n(?=[^\n])").sub
_ticks = re.compile(r"^[ >]*(`{3,})", re.MULTILINE).findall
_blank_lines = re.compile(r"\n\s*\n").sub


def markdown(
    content: Items,
    *,
    links: Links = "keep",
    tables: Tables = "html",
    callouts: Callouts = "alerts",
    posts: Posts = "rules",
    types: Collection[str] | None = None,
) -> str:
    """Return a content list as Markdown.

    * ``links`` are kept, dropped (their text stays), or written as citations: numbers, with a list of URLs at the end.
    * ``tables`` with spans, or with more than text in a cell, are written as HTML, or as simple tables whose spanning
      cells are repeated (``"linear"``).
    * ``callouts`` are written as GitHub alerts, or as quotations that begin with their title (``"quotes"``).
    * ``posts`` are parted by rules, and may begin with their author and date (``"named"``) if the author is not shown.
    * ``types`` are those of the items to keep, such as ``{"title", "paragraph"}``; by default all.
    """
    return _MarkdownWriter(links, tables, callouts, posts).document(content if types is None else only(content, types))


class _MarkdownWriter:
    def __init__(self, links: Links, tables: Tables, callouts: Callouts, posts: Posts) -> None:
        self.inline = InlineWriter(links)
        self.linear = tables == "linear"
        self.alerts = callouts == "alerts"
        self.names_posts = posts == "named"
        self.prefix = 0
        self.in_list = self.in_quote = 0
        self.in_definition = False
        self._writers: dict[type, Callable[[Any], str]] = {
            Paragraph: lambda item: self.inline.paragraph(item.runs),
            Title: self._title,
            CodeBlock: self._code,
            Formula: lambda item: f"$$\n{tex(_blank_lines(chr(10), item.latex.strip()))}\n$$",
            Table: self._table,
            List: self._list,
            **dict.fromkeys((Image, Video, Audio), self._media),
            Quote: self._quote,
            ThematicBreak: lambda _: "___" if self.in_list else "---",
            Post: self._post,
            Card: lambda _: "",
            Footnotes: self._footnotes,
        }

    def document(self, items: Items) -> str:
        written = self.blocks(_without_shown_names(items) if self.names_posts else items)
        citations = [f"[{number}]: {target}" for target, number in self.inline.citations.items()]
        return "\n\n".join(filter(None, [written, "\n".join(citations)]))

    def blocks(self, items: Sequence[Item]) -> str:
        writers = self._writers
        pieces: list[str] = []
        before: Item | None = None
        again = parted = False
        for item in _without_loose_definitions(items):
            parted = parted or (type(item) is Post and bool(pieces) and type(before) is not Title)
            # Two adjacent lists of the same kind need different markers, or they would be one list.
            again = type(item) is List and type(before) is List and item.kind == before.kind and not again
            piece = self._list(item, again) if again else writers[type(item)](item)  # type: ignore[arg-type]
            if piece:
                pieces += ["---", piece] if parted else [piece]
                parted = False
                before = item
        return "\n\n".join(pieces)

    # ------------------------------------------------------------------ items
    def _title(self, title: Title) -> str:
        text = self.inline.line(title.runs).strip()
        if text.endswith("#"):
            text = f"{text[:-1]}\\#"
        return f"{'#' * title.level} {text}" if text else ""

    def _post(self, post: Post) -> str:
        if not (self.names_posts and post.author):
            return ""
        date = (Text(f", {post.date}"),) if post.date else ()
        return self.inline.paragraph((Strong((Text(post.author),)), *date))

    def _code(self, code: CodeBlock) -> str:
        text = code.text
        if (self.prefix or self.in_definition) and _active(text):
            return code_html(code)
        fence = "```"
        if "```" in text:
            fence = "`" * (max(map(len, _ticks(text)), default=2) + 1)
            fence = fence if len(fence) > 2 else "```"
        language = _not_in_language("", code.language or "")
        return f"{fence}{language}\n{text}\n{fence}"

    def _media(self, item: Image | Video | Audio) -> str:
        if self.inline.links == "drop" and not isinstance(item, Image) and not (item.title or item.caption):
            return ""  # an address is no text
        return "\n\n".join(self.inline.paragraph(line.runs) for line in as_lines(item))

    def _quote(self, quote: Quote) -> str:
        if self.prefix >= MAX_PREFIX:
            return self.blocks(quote.items)
        self.prefix += 2
        self.in_quote += 1
        saved = self.in_list, self.in_definition
        self.in_list, self.in_definition = 0, False
        inner = self.blocks(quote.items)
        if quote.alert:
            # GitHub does not support alerts in quotations; in a list, it shows the marker as text.
            inner = self._titled(quote, inner, self.alerts and self.in_quote == 1 and not saved[1])
        self.in_list, self.in_definition = saved
        self.in_quote -= 1
        self.prefix -= 2
        return "\n".join(f"> {line}" if line else ">" for line in inner.split("\n")) if inner else ""

    def _titled(self, callout: Quote, inner: str, as_alert: bool) -> str:
        """Return the content of a call-out after its marker, and its title if that adds information."""
        title = callout.caption or (Text(callout.alert.capitalize()),)
        bold = self.inline.paragraph((Strong(title),))
        if not as_alert:
            return f"{bold}\n\n{inner}"
        mark = f"[!{callout.alert.upper()}]"
        return f"{mark}\n{inner}" if says(line_text(title), callout.alert) else f"{mark}\n{bold}\n\n{inner}"

    def _indented(self, items: Items, width: int) -> str:
        """Return items indented by ``width``, except their first line, which follows a list marker."""
        in_definition, self.in_definition = self.in_definition, False
        self.prefix += width
        inner = self.blocks(items)
        self.prefix -= width
        self.in_definition = in_definition
        return _shifted(inner, width)

    def _footnotes(self, footnotes: Footnotes) -> str:
        if self.prefix >= MAX_PREFIX:
            return "\n\n".join(self.blocks(note.items) for note in footnotes.notes)
        notes = ((note.label, self._indented(note.items, 4)) for note in footnotes.notes)
        return "\n\n".join(("\\[^" if is_live(text) else "[^") + f"{label}]: {text}" for label, text in notes)

    # ------------------------------------------------------------------ lists
    def _list(self, item: List, again: bool = False) -> str:
        if self.prefix >= MAX_PREFIX:
            terms = (tuple(map(Paragraph, filter(None, entry.terms))) for entry in item.items)
            unmarked = (self.blocks((*term, *entry.items)) for term, entry in zip(terms, item.items, strict=True))
            return "\n\n".join(filter(None, unmarked))
        if item.kind == "definition":
            return self._definitions(item)
        self.in_list += 1
        tight = all(_is_tight(one) for one in item.items)
        number = max(0, min(item.start, MAX_NUMBER - len(item.items)))
        pieces: list[str] = []
        for one in item.items:
            if one.number is not None:  # a new number needs a new list, with another marker
                again = not again
                number = max(0, min(one.number, MAX_NUMBER - len(item.items)))
            mark = ("* " if again else "- ") if item.kind == "unordered" else f"{number}{') ' if again else '. '}"
            is_task = one.checked is not None and bool(one.items) and type(one.items[0]) is Paragraph
            box = "" if not is_task else "[x] " if one.checked else "[ ] "
            pieces.append((mark + box + self._entry(one, len(mark), tight)).rstrip())
            number += 1
        self.in_list -= 1
        return ("\n" if tight else "\n\n").join(pieces)

    def _entry(self, entry: ListItem, width: int, tight: bool) -> str:
        if not tight or len(entry.items) < 2:
            return self._indented(entry.items, width)
        text, *lists = (self._indented((one,), width) for one in entry.items)
        pieces = [text]
        for one, inner in zip(lists, entry.items[1:], strict=True):
            # To interrupt a paragraph, a list must begin with 1 (CommonMark 5.2), and its first entry with text.
            joined = type(inner) is List and (inner.kind == "unordered" or inner.start == 1) and inner.items[0].items
            pieces.append(("\n" if joined else "\n\n") + " " * width + one)
        return "".join(pieces)

    def _definitions(self, item: List) -> str:
        """Return a definition list in the syntax of PHP Markdown Extra. Each definition has a term and begins with
        text.

        Nested definitions are not indented further, because CommonMark, without this syntax, would read them as code.
        """
        saved = self.in_definition, self.inline.escape_dollars
        self.in_definition = self.inline.escape_dollars = True
        indent = "" if saved[0] else "  "
        pieces: list[str] = []
        for entry in item.items:
            lines = (tuple(Text(" ") if type(run) is LineBreak else run for run in term) for term in entry.terms)
            terms = "\n".join(map(self.inline.paragraph, lines))
            if terms:
                pieces.append(("\n\n" if pieces else "") + terms)
            if entry.items:
                between = "\n\n" if "\n\n" in pieces[-1].lstrip("\n") else "\n"
                body = _shifted(self.blocks(entry.items), len(indent))
                pieces.append(f"{between}: {body}")
        self.in_definition, self.inline.escape_dollars = saved
        return "".join(pieces)

    # ------------------------------------------------------------------ tables
    def _table(self, table: Table) -> str:
        caption = self.inline.paragraph(table.caption)
        if table.simple:
            body = self._pipes(table)
        elif self.linear:
            body = self._pipes(linear(table))
        else:
            body = table_html(table, links=self.inline.links != "drop")
            caption = ""  # the HTML contains it
        return f"{caption}\n\n{body}" if caption else body

    def _pipes(self, table: Table) -> str:
        width = max(map(len, table.rows), default=0)
        if not width:
            return ""
        padded = not is_mostly_padding(table.rows)  # GFM also accepts short rows, and adds empty cells
        rows = []
        for row in table.rows:
            texts = self.inline.cells([cell.items[0].runs if cell.items else () for cell in row])  # type: ignore[union-attr]
            cells = [text.replace("|", "\\|") if "|" in text else text for text in texts]
            if padded:
                cells += [""] * (width - len(cells))
            rows.append(f"| {' | '.join(cells)} |")
        if not table.header_rows:
            rows.insert(0, "|" + "  |" * width)
        rows.insert(1, "|" + " --- |" * width)
        return "\n".join(rows)


def _shifted(lines: str, width: int) -> str:
    """Indent all lines by ``width`` spaces, except the first one and empty ones."""
    return _indent("\n" + " " * width, lines)


def _without_shown_names(items: Items) -> list[Item]:
    """Return items with the author of a post only in the marks of posts that do not begin with the name."""
    made: list[Item] = list(items)
    for i, item in enumerate(made):
        if type(item) is Post:
            first = takewhile(lambda one: type(one) is not Post, items[i + 1 : i + 1 + NAMED_WITHIN])
            if any(item.author in line_text(getattr(one, "runs", ()))[:LONGEST_BYLINE] for one in first):
                made[i] = Post(item.number)
    return made


def _without_loose_definitions(items: Sequence[Item]) -> Iterator[Item]:
    """Yield items, with the parts of definition lists replaced that Markdown cannot express.

    Terms without definitions become a list. Definitions whose term was not kept, or that begin with a list or a code
    block, are replaced by their content.
    """
    for item in items:
        if type(item) is not List or item.kind != "definition":
            yield item
        elif any(entry.items for entry in item.items):
            for defined, entries in groupby(zip(_defined(item), item.items, strict=True), itemgetter(0)):
                some = [entry for _, entry in entries]
                if defined:
                    yield List("definition", tuple(some))
                for entry in () if defined else some:
                    yield from map(Paragraph, filter(None, entry.terms))
                    yield from _without_loose_definitions(entry.items)
        elif terms := [term for entry in item.items for term in entry.terms if term]:
            yield List("unordered", tuple(ListItem((Paragraph(term),)) for term in terms))


def _defined(item: List) -> Iterator[bool]:
    """Yield for each entry of a definition list whether it is the definition of a term."""
    defined = False
    for entry in item.items:
        if entry.terms:
            defined = any(entry.terms)
        defined = defined and (not entry.items or type(entry.items[0]) is Paragraph)
        yield defined


def _is_tight(entry: ListItem) -> bool:
    """Return True for an entry with a single line of text, optionally followed by lists."""
    first = entry.items[0] if entry.items else None
    return first is None or (
        (len(entry.items) == 1 or type(first) is Paragraph)
        and type(first) in (Paragraph, Title, Image, Formula, List)
        and all(type(item) is List and item.kind != "definition" for item in entry.items[1:])
    )


# ---------------------------------------------------------------------- front matter
LONGEST_VALUE = 1_000
"""Maximum length of a value of the front matter, in characters."""

_active_in_value = re.compile(
    r"""["\\`*$~^@<>\[\]{}]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w*;)|(?<!http)(?<!https):(?=//)""", re.I
).sub


def front_matter(values: Iterable[tuple[str, str | None]]) -> str:
    """Return names and values between two lines of three dashes, or an empty string if there are no values.

    Each value is a double-quoted string of YAML on one line, with white space collapsed and without control characters.
    Characters that are Markdown syntax are written as their numbers, because a renderer that knows no front matter
    shows it as Markdown: ``title: "\\x3Cb\\x3E"``.
    """
    lines_of = ((name, " ".join(without_controls(value or "").split())) for name, value in values)
    # A URL that is cut would lead elsewhere.
    known = ((name, value if name == "url" else value[:LONGEST_VALUE].rstrip()) for name, value in lines_of)
    lines = [f'{name}: "{_active_in_value(_numbered, value)}"' for name, value in known if value]
    return "\n".join(["---", *lines, "---"]) if lines else ""


def _numbered(match: re.Match[str]) -> str:
    return '\\"' if match[0] == '"' else f"\\x{ord(match[0]):02X}"
