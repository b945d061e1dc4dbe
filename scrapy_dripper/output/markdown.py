"""Write the content list as Markdown: CommonMark with GFM tables, formulas in dollar signs, and footnotes.

Characters of text that would be Markdown syntax are escaped. Structures that Markdown cannot express (tables with
spans, ``<sub>``) are written as HTML, without attributes other than those of spans, links and images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from html import unescape
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, Literal, TypeAlias
from unicodedata import category

from scrapy_dripper.characters import without_controls
from scrapy_dripper.output.urls import unsafe_url
from scrapy_dripper.page.nodes import SHORT
from scrapy_dripper.structures.callouts import says
from scrapy_dripper.structures.items import (
    Audio,
    Card,
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
    ListItem,
    Paragraph,
    Post,
    Quote,
    Ruby,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
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

Links = Literal["keep", "drop", "citations"]
Tables = Literal["html", "linear"]
Callouts = Literal["alerts", "quotes"]
Posts = Literal["rules", "named"]

MAX_PREFIX = 20
"""Maximum length of the prefix of a line for the lists and quotes around it. Deeper ones are written without
markers."""
NAMED_WITHIN = 3
"""Number of items at the beginning of a post that are searched for the name of its author."""
MAX_NUMBER = 999_999_999
"""The largest number of a list entry (CommonMark 5.2)."""

_not_in_language = re.compile(r"[^\w#.+-]").sub  # Python-Markdown does not accept a fence with other characters
# Python-Markdown only accepts fences at the beginning of a line. In a list, this content would be interpreted.
_active = re.compile(r"<[A-Za-z/!?]|\](?=[(\[:])|\{[^{=\n]*=").search
_indent = re.compile(r"\n(?=[^\n])").sub
_fences = re.compile(r"^[ >]*(`{3,})", re.MULTILINE).findall
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
            fence = "`" * (max(map(len, _fences(text)), default=2) + 1)
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
            if any(item.author in line_text(getattr(one, "runs", ()))[:SHORT] for one in first):
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


# ---------------------------------------------------------------------- inline

_special = re.compile(r"[\\`*_\[\]<&$~]").search
# Characters that would be Markdown syntax in their context. line_start handles the beginnings of lines.
_MARKS = r"""[`$]
    | \\(?=[!-/:-@\[-`{-~]|\Z)
    | \*(?:(?<!\s\*)|(?!\s))
    | (?<!\w)_+ | (?<=[^\W_])_+(?!\w)
    | <(?=[A-Za-z/!?])
    | &(?=\#?\w{1,32};)
    | ~(?=~|\Z) | (?<=\S)~
    | """
_marks = re.compile(_MARKS + r"\](?=[(:]) | \[(?=[\^\[])", re.VERBOSE).sub
# In link text, marked removes backslashes from brackets before it parses the rest, so [a\\](b) would become a link.
_marks_and_brackets = re.compile(_MARKS + r"[\[\]]|(?<=\])\(", re.VERBOSE).sub
_attributes = re.compile(r"(?<!\S)\{").sub
_mark_at_end = re.compile(r"\][(:]|\[[\^\[]|<[A-Za-z/!?]|&[#\w]").match
_line_start = re.compile(
    r"(?P<number>\d{1,9})(?=[.)](?:\s|\Z))|(?:[-+*:](?=\s|\Z)|\#{1,6}(?=\s|\Z)|>|~~~|=+\s*\Z|-[-\s]*\Z|[|:][-|:\s]*\Z|"
    r"\[[ xX]\](?=\s|\Z)|\[(?=[^\[\]]*\]:|(?:[^\[\]\\]|\\.)*\]:))"
).match
_not_in_url = re.compile(r"[\s<>\\`\x00-\x1f\x7f]|\](?=\()|&(?=#?\w{1,32};)").sub
_url_special = re.compile(r"[\s<>\\`()&\x00-\x1f\x7f]").search
_title_special = re.compile(r'[\\"`{\]]').sub
_automatic = re.compile(r"https?://[^\s<>\\\"`]+").fullmatch  # Python-Markdown reads <x:y/onclick=z> as a tag
_before_path = re.compile(r"[^/?#]*").match
_escaped_mark = re.compile(r"\\(?=[!-/:-@\[-`{-~])").sub
_bare_destination = re.compile(r"(?:<[ \t]*([^ \t\n]+)|([^ \t\n]+)(?![^ \t\n])[ \t]*(?:[\"'(]|$))", re.MULTILINE).match
_ticks = re.compile(r"`+").findall
# Pandoc's rules for dollar signs (manual, tex_math_dollars): text must follow the opening one, and precede the closing
# one, which no digit may follow. A backslash before white space turns it into text.
_opening_dollar = re.compile(r"\$(?=[^ \t\n])").search
_closing_dollar = re.compile(r"(?:(?<=[^ \t\n])|(?<=\\[ \t\n]))\$(?![0-9])").search
_markup_in_tex = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(\[:])").sub
_attribute_in_tex = re.compile(
    r"(?<![\w\\])(?:on\w+|href|src|srcset|srcdoc|style|action|formaction|background|poster|data|ping|cite)(?==)", re.I
).sub
_has_word = re.compile(r"[^\W_]").search
_stars = re.compile(r"\\.|\*+", re.DOTALL).finditer
_first_word = re.compile(r"(?P<edge>(?:[^\w\s]|_)*)[^\W_]").match
_last_word = re.compile(r"[^\W_](?P<edge>(?:[^\w\s]|_)*)\Z").search

_REFERENCES = {"<": "&lt;", "&": "&amp;"}
_EDGES: dict[type, str] = {
    Code: "``", Formula: "$$", Link: "[)", Image: "!)", FootnoteMark: "[]", LineBreak: "\n\n",
    Emphasis: "**", Strong: "**", Deleted: "~~", Sub: "<>", Sup: "<>",
}  # fmt: skip
Format: TypeAlias = "Emphasis | Strong | Deleted"
_FORMATS: dict[type, tuple[str, str]] = {Emphasis: ("*", "em"), Strong: ("**", "strong"), Deleted: ("~~", "del")}
"""Delimiters and tags of formats."""


class InlineWriter:
    """Writes runs, and collects the URLs of links for citations."""

    def __init__(self, links: Links = "keep") -> None:
        self.links = links
        self.break_ = "\\\n"
        self.citations: dict[str, int] = {}
        """URL and title of a reference, as written, to its number."""
        self._in_brackets = False
        self.escape_dollars = False
        """Escape all dollar signs. Used for terms and definitions, which a renderer may join to one paragraph."""
        self._unmarked: set[type] = {Ruby, Link} if links == "drop" else {Ruby}
        """Types of runs of which only the content is written. Within a format or a link, this is its own type."""
        self._dollars = 0  # number of escaped dollar signs
        self._writers: dict[type, Callable[[Any, str, str], str]] = {
            Text: self._text,
            Code: self._code,
            Formula: self._formula,
            Link: self._link,
            **dict.fromkeys(_FORMATS, self._format),
            Sub: lambda run, _before, _after: f"<sub>{self.runs(run.runs, '>', '<')}</sub>",
            Sup: lambda run, _before, _after: f"<sup>{self.runs(run.runs, '>', '<')}</sup>",
            LineBreak: lambda _run, _before, _after: self.break_,
            FootnoteMark: lambda run, _before, _after: f"[^{run.label}]",
            Image: self._image,
        }

    def paragraph(self, runs: Runs) -> str:
        """Return runs as a paragraph. No line of it looks like the beginning of another block."""
        written = self._unit(runs)
        if "\n" in written:
            return "\n".join(map(line_start, written.split("\n")))
        return line_start(written)

    def line(self, runs: Runs) -> str:
        """Return runs as one line that does not begin a block."""
        saved, self.break_ = self.break_, " "
        written = self._unit(runs)
        self.break_ = saved
        return written

    def cells(self, cells: Sequence[Runs]) -> list[str]:
        """Return the cells of a row, each as one line. They are checked together, as Pandoc reads formulas across
        cells."""
        saved, self.break_ = self.break_, "<br>"
        both = [self._both(cell) for cell in cells]
        self.break_ = saved
        plain = [one for _, one in both]
        if None in plain or _has_formula(" | ".join(filter(None, plain))):
            return [escaped for escaped, _ in both]
        return [one or "" for one in plain]

    def _unit(self, runs: Runs) -> str:
        """Return the runs of a paragraph. Dollar signs are only escaped if they could delimit a formula."""
        escaped, plain = self._both(runs)
        return escaped if plain is None or self.escape_dollars or _has_formula(plain) else plain

    def _both(self, runs: Runs) -> tuple[str, str | None]:
        """Return runs with and without escaped dollar signs; the latter is None if other runs contain some, too."""
        self._dollars = 0
        written = self.runs(runs)
        if "$" not in written:
            return written, written
        return written, written.replace("\\$", "$") if written.count("$") == self._dollars else None

    def runs(self, runs: Runs, before: str = "", after: str = "") -> str:
        """Return runs, given the characters before and after them, which are empty at the ends of a line."""
        if len(runs) == 1 and type(runs[0]) is Text:
            return self._text(runs[0], before, after)
        kinds = set(map(type, runs))
        if not (_FORMATS.keys().isdisjoint(kinds) and self._unmarked.isdisjoint(kinds)):
            runs = self._joined(runs, before, after)
        pieces: list[str] = []
        last = len(runs) - 1
        for i, run in enumerate(runs):
            following = after if i == last else _edge(runs[i + 1], 0)
            piece = self._writers[type(run)](run, before, following)
            if not piece:
                continue
            if pieces:
                if before == "!" and piece[0] == "[":
                    pieces[-1] = pieces[-1][:-1] + "\\!"
                elif piece[0] == ":" and i == 1 and type(runs[0]) is FootnoteMark:
                    piece = "\\" + piece  # otherwise it would be a footnote
                elif before == "$" == piece[0]:
                    pieces.append(" ")  # keeps two formulas from becoming one on display
            pieces.append(piece)
            before = piece[-1]
        return "".join(pieces)

    def _joined(self, runs: Runs, before: str, after: str) -> Runs:
        """Return runs with all text that is written without marks joined, because it is escaped together.

        This is the text of ruby, of dropped links and of a format within the same format, and the punctuation that is
        moved out of formats.
        """
        flat = runs if self._unmarked.isdisjoint(map(type, runs)) else tuple(self._flat(runs))
        parts: list[Run] = []
        last = len(flat) - 1
        for i, run in enumerate(flat):
            if isinstance(run, (Emphasis, Strong, Deleted)):
                outside = _edge(parts[-1], -1) if parts else before
                parts += _moved(run, outside, after if i == last else _edge(flat[i + 1], 0))
            else:
                parts.append(run)
        if tuple(parts) == runs:  # compares identities first
            return runs
        joined: list[Run] = []
        for kind, group in groupby(parts, type):
            if kind is Text or kind is Code:
                joined.append(kind("".join(run.text for run in group)))  # type: ignore[union-attr]
            else:
                joined.extend(group)
        return tuple(joined)

    def _flat(self, runs: Runs) -> Iterator[Run]:
        """Yield runs, with those replaced by their content that have no marks."""
        for run in runs:
            if type(run) in self._unmarked:
                yield from self._flat(run.runs)  # type: ignore[union-attr]
                if type(run) is Ruby:
                    yield Text(f"({run.reading})")
            elif type(run) is not Text or run.text:
                yield run

    # ------------------------------------------------------------------ runs
    def _text(self, run: Text, before: str, after: str) -> str:
        text = self._escaped(run.text)
        if "\\](" in text and (before.strip() or "://" in text or "www." in text):
            text = text.replace("\\](", "&#93;(")  # mistune includes a backslash at the end of a bare URL in it
        if "{" in text:
            # Python-Markdown and others read {...} as attributes of the text before: *a*{onclick=b}, # A {onclick=b}
            if text[-1] == "}":
                text = _attributes(r"\{", text)
            elif before and text[0] == "{":
                text = "\\" + text
        if after and _mark_at_end(text[-1:] + after) and text[-2:-1] != "\\":
            return text[:-1] + _escaped_one(text[-1])
        return text

    def _escaped(self, text: str) -> str:
        if _special(text):
            if "$" in text:
                self._dollars += text.count("$")
            brackets = self._in_brackets or self.links == "citations"
            text = (_marks_and_brackets if brackets else _marks)(_escape, text)
        return text

    def _code(self, run: Code, _before: str, _after: str) -> str:
        text = run.text.replace("\r", " ").replace("\n", " ")  # a new line could begin a block
        # marked ends a link in code that has more than one backtick around it.
        if (self._in_brackets and "]:" in text) or ("`" in text and "](" in text):
            return f"<code>{self._text(Text(text), '>', '<')}</code>"
        if "`" not in text:
            return f"`{text}`"
        fence = "`" * (max(map(len, _ticks(text))) + 1)
        space = " " if text[0] == "`" or text[-1] == "`" else ""
        return f"{fence}{space}{text}{space}{fence}"

    def _formula(self, run: Formula, _before: str, _after: str) -> str:
        return f"${tex(' '.join(run.latex.split()))}$"

    def _link(self, run: Link, _before: str, _after: str) -> str:
        if self.links == "keep" and len(run.runs) == 1:
            only = run.runs[0]
            if type(only) is Text and only.text == run.href and not run.title and _automatic(run.href):
                return f"<{run.href}>"
        saved, self._in_brackets = self._in_brackets, True
        self._unmarked.add(Link)
        text = self.runs(run.runs, "[", "]")
        if "]:" in text and _line_start(f"[{text}]("):  # it would be the name of a definition
            text = text.replace("]:", "]&#58;")
        self._unmarked.remove(Link)
        self._in_brackets = saved
        target = destination(run.href, run.title)
        if self.links == "keep":
            return f"[{text}]({target})"
        return f"[{text}][{self.citations.setdefault(target, len(self.citations) + 1)}]"

    def _image(self, image: Image, _before: str, _after: str) -> str:
        saved, self._in_brackets = self._in_brackets, True
        written = f"![{self._escaped(image.alt)}]({destination(image.src, image.title)})"
        self._in_brackets = saved
        return written

    def _format(self, run: Format, before: str, after: str) -> str:
        """Return text in a format. Where Markdown's delimiters would not work (CommonMark 6.2), use HTML tags."""
        mark, tag = _FORMATS[type(run)]
        self._unmarked.add(type(run))
        inner = self.runs(run.runs, before, after)
        self._unmarked.remove(type(run))
        if not inner or inner.isspace():
            return inner
        if inner[0] == "~" == mark[0]:
            inner = f"\\{inner}"
        if _can_open(before, inner[0], mark) and _can_open(after, inner[-1], mark) and not _is_ambiguous(inner):
            return f"{mark}{inner}{mark}"
        return f"<{tag}>{inner}</{tag}>"


def _edge(run: Run, at: int) -> str:
    """Return the first (0) or last (-1) character of a run as written, or another one of the same class."""
    return run.text[at:][:1] if type(run) is Text else _EDGES[type(run)][at]


def _ends_in_word(run: Run, at: int) -> bool:
    return type(run) is Text and run.text[at:][:1].isalnum()


def _moved(run: Format, before: str, after: str) -> Iterator[Run]:
    """Yield a format, between the punctuation at its edges that would keep its delimiters from working:
    ``**Note**:text``.

    A format of a sign, such as a comma, is not worth a tag.
    """
    mark, runs = _FORMATS[type(run)][0], run.runs
    if runs and _ends_in_word(runs[0], 0) and _ends_in_word(runs[-1], -1):
        yield run
        return
    only: Run = run
    while isinstance(only, (Emphasis, Strong, Deleted)) and len(only.runs) == 1:
        only = only.runs[0]
    if type(only) is Text and not _has_word(only.text) and not _works(mark, only.text, before, after):
        yield only
        return
    trail = ""
    if runs and type(runs[0]) is Text and not _can_open(before, runs[0].text[:1], mark):
        word = _first_word(runs[0].text)
        if word and word["edge"]:
            yield Text(word["edge"])
            runs = (Text(runs[0].text[word.end("edge") :]), *runs[1:])
    if runs and type(runs[-1]) is Text and not _can_open(after, runs[-1].text[-1:], mark):
        word = _last_word(runs[-1].text)
        if word and word["edge"]:
            trail = word["edge"]
            runs = (*runs[:-1], Text(runs[-1].text[: word.start("edge")]))
    yield run if runs is run.runs else type(run)(runs)
    if trail:
        yield Text(trail)


def _works(mark: str, text: str, before: str, after: str) -> bool:
    """Return True if delimiters work around a text."""
    return bool(text) and _can_open(before, text[0], mark) and _can_open(after, text[-1], mark)


def _is_ambiguous(inner: str) -> bool:
    """Return True if an opening delimiter in a text could close one that stands right before the text.

    In ``***a* b*c***``, the delimiter before c would. After ``**``, the rule of three (CommonMark 6.2) prevents that.
    """
    if inner[0] != "*":
        return False
    marks = [match.span() for match in _stars(inner) if match[0][0] == "*"]
    around = [(inner[start - 1], inner[end]) for start, end in marks[2:] if end < len(inner)]
    return any(_can_open(before, after, "*") and _can_open(after, before, "*") for before, after in around)


def _has_formula(text: str) -> bool:
    """Return True if dollar signs in a text could delimit a formula."""
    if "$" not in text:
        return False
    first = _opening_dollar(text)
    return "$$" in text or (first is not None and _closing_dollar(text, first.end() + 1) is not None)


def _can_open(outside: str, inside: str, mark: str) -> bool:
    """Return True if a delimiter works between two characters. An empty one means the end of the line."""
    if outside == mark[0] or inside.isspace():
        return False
    return not _is_punctuation(inside) or not outside or outside.isspace() or _is_punctuation(outside)


def _is_punctuation(character: str) -> bool:
    return not character.isalnum() and not character.isspace() and category(character)[0] in "PS"


def _escape(match: re.Match[str]) -> str:
    text = match[0]
    return _escaped_one(text) if len(text) == 1 else "".join("\\" + one for one in text)


def _escaped_one(character: str) -> str:
    """Escape a character.

    For ``<``, Python-Markdown, and GFM within a bare URL, do not accept a backslash, so a tag could follow it.
    """
    return _REFERENCES.get(character) or "\\" + character


def tex(latex: str) -> str:
    """Return LaTeX that stays text in renderers without formulas, and looks the same in those with formulas.

    It must not contain tags, links, code or fences. A backtick would end code in its paragraph, whose content would
    then be interpreted. Python-Markdown and others read braces after emphasis as attributes.
    """
    latex = _attribute_in_tex(r"{}\g<0>", latex) if "=" in latex else latex
    return _markup_in_tex(r"\g<0> ", latex).replace("`", "\u2018").replace("~~~", "~~{}~")


def line_start(line: str) -> str:
    """Escape a line so that it does not begin a block."""
    match = _line_start(line)
    if match is None:
        return line
    i = len(match["number"] or "")
    return f"{line[:i]}\\{line[i:]}"


def is_live(note: str) -> bool:
    """Return True if a note after ``[^1]: `` starts with a URL that could run code.

    Renderers without footnotes would read the note as a link reference definition (CommonMark 4.7).
    """
    found = _bare_destination(note)
    return found is not None and unsafe_url(unescape(unescape(_escaped_mark("", found[1] or found[2]))))


def destination(url: str, title: str = "") -> str:
    """Return the URL and title of a link, as written in its parentheses."""
    if _url_special(url):
        url = _not_in_url(_percent, url)
        start = _before_path(url)
        if start is not None and "&" in start[0]:  # mistune resolves references twice: javascript&amp;colon;
            url = start[0].replace("&amp;", "&").replace("&", "%26") + url[start.end() :]
        if "(" in url or ")" in url:
            depth = 0
            for character in url:
                depth += (character == "(") - (character == ")")
                if not 0 <= depth < 30:
                    break
            if depth:
                url = url.replace("(", "%28").replace(")", "%29")
    if not title:
        return url
    # Python-Markdown may end the link at a bracket of its title, and reads {...} after it as attributes.
    quoted = _title_special(r"\\\g<0>", " ".join(title.split())).replace("<", "&lt;")
    return f'{url or "<>"} "{quoted}"'


def _percent(match: re.Match[str]) -> str:
    character = match[0]
    return "&amp;" if character == "&" else "".join(f"%{byte:02X}" for byte in character.encode())
