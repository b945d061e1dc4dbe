"""Write runs as Markdown: CommonMark 0.31 with GFM strikethrough, formulas in dollar signs, and footnote marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any, Literal
from unicodedata import category

from scrapy_dripper.output.urls import unsafe_url
from scrapy_dripper.structures.items import (
    Code,
    Deleted,
    Emphasis,
    FootnoteMark,
    Formula,
    Image,
    LineBreak,
    Link,
    Ruby,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    Text,
)

Links = Literal["keep", "drop", "citations"]

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
    r"\[[ xX]\](?=\s|\Z)|\[(?=[^\[\]]*\]:))"
).match
_not_in_url = re.compile(r"[\s<>\\\x00-\x1f\x7f]|\](?=\()|&(?=#?\w{1,32};)").sub
_url_special = re.compile(r"[\s<>\\()&\x00-\x1f\x7f]").search
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
_first_word = re.compile(r"(?P<edge>(?:[^\w\s]|_)*)[^\W_]").match
_last_word = re.compile(r"[^\W_](?P<edge>(?:[^\w\s]|_)*)\Z").search

_REFERENCES = {"<": "&lt;", "&": "&amp;"}
_FIRST: dict[type, str] = {
    Code: "`", Formula: "$", Link: "[", Image: "!", FootnoteMark: "[", LineBreak: "\n",
    Emphasis: "*", Strong: "*", Deleted: "~", Sub: "<", Sup: "<",
}  # fmt: skip


class InlineWriter:
    """Writes runs, and collects the URLs of links for citations."""

    def __init__(self, links: Links = "keep") -> None:
        self.links = links
        self.break_ = "\\\n"
        self.citations: dict[str, int] = {}
        """URL and title of a reference, as written, to its number."""
        self._escape_brackets = links == "citations"
        self.escape_dollars = False
        """Escape all dollar signs. Used for terms and definitions, which a renderer may join to one paragraph."""
        self._dollars = 0  # number of escaped dollar signs
        self._writers: dict[type, Callable[[Any, str, str], str]] = {
            Text: self._text,
            Code: self._code,
            Formula: self._formula,
            Link: self._link,
            Emphasis: lambda run, before, after: self._format(run.runs, "*", "em", before, after),
            Strong: lambda run, before, after: self._format(run.runs, "**", "strong", before, after),
            Deleted: lambda run, before, after: self._format(run.runs, "~~", "del", before, after),
            Sub: lambda run, _before, _after: f"<sub>{self.runs(run.runs, '>', '<')}</sub>",
            Sup: lambda run, _before, _after: f"<sup>{self.runs(run.runs, '>', '<')}</sup>",
            Ruby: lambda run, before, _after: f"{self.runs(run.runs, before, '(')}({self._escaped(run.reading)})",
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
        if len(runs) == 1:
            run = runs[0]
            return self._writers[type(run)](run, before, after)
        pieces: list[str] = []
        last = len(runs) - 1
        for i, run in enumerate(runs):
            following = after if i == last else self._first(runs[i + 1])
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

    def _first(self, run: Run) -> str:
        """Return the first character of a run, or another one of the same class."""
        if isinstance(run, Text):
            return run.text[:1]
        if isinstance(run, Ruby) or (isinstance(run, Link) and self.links == "drop"):
            return self._first(run.runs[0])
        return _FIRST[type(run)]

    # ------------------------------------------------------------------ runs
    def _text(self, run: Text, before: str, after: str) -> str:
        text = self._escaped(run.text)
        if "{" in text:
            # Python-Markdown and others read {...} as attributes of the text before: *a*{onclick=b}, # A {onclick=b}
            if text[-1] == "}":
                text = _attributes(r"\{", text)
            elif before and text[0] == "{":
                text = "\\" + text
        if after and _mark_at_end(text[-1] + after) and text[-2:-1] != "\\":
            return text[:-1] + _escaped_one(text[-1])
        return text

    def _escaped(self, text: str) -> str:
        if _special(text):
            if "$" in text:
                self._dollars += text.count("$")
            text = (_marks_and_brackets if self._escape_brackets else _marks)(_escape, text)
            if "](" in text and ("://" in text or "www." in text):
                text = text.replace("\\](", "&#93;(")  # mistune includes a backslash at the end of a bare URL in it
        return text

    def _code(self, run: Code, _before: str, _after: str) -> str:
        text = run.text.replace("\r", " ").replace("\n", " ")  # a new line could begin a block
        if "`" not in text:
            return f"`{text}`"
        fence = "`" * (max(map(len, _ticks(text))) + 1)
        space = " " if text[0] == "`" or text[-1] == "`" else ""
        return f"{fence}{space}{text}{space}{fence}"

    def _formula(self, run: Formula, _before: str, _after: str) -> str:
        return f"${tex(' '.join(run.latex.split()))}$"

    def _link(self, run: Link, before: str, after: str) -> str:
        if self.links == "drop":
            return self.runs(run.runs, before, after)
        if self.links == "keep" and len(run.runs) == 1:
            only = run.runs[0]
            if type(only) is Text and only.text == run.href and not run.title and _automatic(run.href):
                return f"<{run.href}>"
        saved, self._escape_brackets = self._escape_brackets, True
        text = self.runs(run.runs, "[", "]")
        self._escape_brackets = saved
        target = destination(run.href, run.title)
        if self.links == "keep":
            return f"[{text}]({target})"
        return f"[{text}][{self.citations.setdefault(target, len(self.citations) + 1)}]"

    def _image(self, image: Image, _before: str, _after: str) -> str:
        saved, self._escape_brackets = self._escape_brackets, True
        written = f"![{self._escaped(image.alt)}]({destination(image.src, image.title)})"
        self._escape_brackets = saved
        return written

    def _format(self, runs: Runs, mark: str, tag: str, before: str, after: str) -> str:
        """Return text in a format. Where Markdown's delimiters would not work (CommonMark 6.2), use HTML tags."""
        inner = self.runs(runs, before, after)
        if not inner or inner.isspace():
            return inner
        # Punctuation at the edges can be moved out of the format: **Note**:text.
        start = end = 0
        if not _can_open(before, inner[0], mark):
            start = self._punctuation(runs[0], _first_word)
        if not _can_open(after, inner[-1], mark):
            end = self._punctuation(runs[-1], _last_word)
        lead, inner, trail = inner[:start], inner[start : len(inner) - end], inner[len(inner) - end :]
        if not (_can_open(lead[-1:] or before, inner[0], mark) and _can_open(trail[:1] or after, inner[-1], mark)):
            is_sign = not any(map(str.isalnum, inner))  # such as a comma, which is not worth a tag
            return f"{lead}{inner}{trail}" if is_sign else f"{lead}<{tag}>{inner}</{tag}>{trail}"
        return f"{lead}{mark}{inner}{mark}{trail}"

    def _punctuation(self, run: Run, word: Callable[[str], re.Match[str] | None]) -> int:
        """Return the number of punctuation characters at the edge of a run, as written."""
        dollars = self._dollars
        found = word(self._escaped(run.text)) if type(run) is Text else None
        self._dollars = dollars
        return len(found["edge"]) if found else 0


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
    quoted = " ".join(title.split()).replace("\\", "\\\\").replace('"', '\\"').replace("<", "&lt;").replace("]", "\\]")
    return f'{url or "<>"} "{quoted}"'


def _percent(match: re.Match[str]) -> str:
    character = match[0]
    return "&amp;" if character == "&" else "".join(f"%{byte:02X}" for byte in character.encode())
