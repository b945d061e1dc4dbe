"""Write runs as Markdown: CommonMark 0.31 with GFM strikethrough, formulas in dollar signs, and footnote marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from itertools import groupby
from typing import Any, Literal, TypeAlias
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
