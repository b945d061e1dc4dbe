"""Recognise code blocks, and restore the original code and its language.

Highlighters wrap code in tables with line numbers, toolbars, and copies for the clipboard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, groupby, islice, takewhile
from textwrap import dedent
from typing import Final, NamedTuple

from lxml import etree
from lxml.etree import _Element

from scrapy_dripper.page.nodes import SHORT, SLATE, SLATE_CODE, inner_text, short_text
from scrapy_dripper.page.tags import LONGEST_CLASS, by_class
from scrapy_dripper.page.vocabulary import Group, complete, either
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.items import (
    Code,
    CodeBlock,
    Item,
    Items,
    LineBreak,
    List,
    Paragraph,
    Runs,
    Text,
    line_text,
    plain_text,
)


class Highlighter(NamedTuple):
    """The classes of what a highlighter or an editor makes of code, complete and in lower case."""

    box: str = ""
    """Elements with lines of code but without a ``<pre>``."""
    line: str = ""
    """A line of code."""
    table: str = ""
    """Tables of line numbers and code."""
    cell: str = ""
    """Their cells of code. Parts of names."""
    number: str = ""
    """Line numbers, if the general patterns do not find them."""
    tool: str = ""
    """What is beside the code or hidden in it, and no part of it."""
    language: str = ""
    """Spans with the name of the language, if no attribute has it."""


HIGHLIGHTERS = {
    "Chroma": Highlighter(line="line", table="lntable", number="ln lnt"),
    "CodeMirror": Highlighter(
        box="codemirror codemirror-code codemirror-lines cm-editor",
        line="codemirror-line cm-line", tool="codemirror-gutters",
    ),
    "Crayon": Highlighter(
        box="crayon-syntax crayon-main", table="crayon-table", cell="crayon-code",
        number="crayon-num crayon-nums crayon-nums-content", tool="crayon-toolbar crayon-info crayon-plain-wrap",
        language="crayon-language",
    ),
    "Enlighter": Highlighter(
        box="enlighter enlighter-default enlighter-v-standard",
        tool="enlighter-toolbar enlighter-toolbar-top enlighter-toolbar-bottom",
    ),
    "GeSHi": Highlighter(number="de1-num"),
    "GitHub": Highlighter(box="react-code-lines", line="react-code-text", cell="blob-code", number="blob-num"),
    "highlight.js": Highlighter(
        line="hljs-line", table="hljs-ln", cell="hljs-ln-code", number="hljs-ln-n hljs-ln-numbers",
    ),
    "mdBook": Highlighter(tool="boring"),
    "Monaco": Highlighter(box="monaco-editor view-lines", line="view-line", tool="contentwidgets overlaywidgets"),
    "Prism": Highlighter(line="token-line", tool="toolbar toolbar-item"),
    "Pygments": Highlighter(table="highlighttable codehilitetable"),
    "Rouge": Highlighter(table="rouge-table"),
    "Slate": Highlighter(box="slate-code_block", line="slate-code_line code_line"),
    "SyntaxHighlighter": Highlighter(box="syntaxhighlighter dp-highlighter", tool="bar tools"),
    "themes": Highlighter(
        line="code-line codeline", table="processedcode", number="numbers",
        tool="zeroclipboard-container code-block-extension-header",
    ),
}  # fmt: skip
"""To add one, add a row, its attribute with the language to ``_ATTRIBUTES``, and a page with its Markdown to
``tests/structured/code``."""


def _all(column: str) -> frozenset[str]:
    return frozenset(name for row in HIGHLIGHTERS.values() for name in getattr(row, column).split())


_BOXES, _LINE_CLASSES, _TABLES, _CELLS, _NUMBERS, _TOOLS, _LANGUAGES = map(_all, Highlighter._fields)
_MADE = _BOXES | _TABLES
code_box = complete(("code-?(?:block|listing)", *_BOXES), having=("code",))
"""Matches the class of an element that can only be code, in lower case and after white space."""

# These expect lower case, which is searched several times as fast as any case.
_code = re.compile(
    r"h(?:ighlight|ljs)|c(?:ode|rayon|hroma|m-)|lang(?:uage-|[-:])|l(?:ntable|isting)|b(?:rush|lob)|s(?:yntax|nippet|hiki)"
    r"|enlighter|g(?:ist|eshi)|rouge|pr(?:ettyprint|ism)|file(?<!\Sfile)(?!\S)",
).search
"""Each alternative begins with another letter, so most positions are skipped at once."""
_line_number = re.compile(
    r"(?:^|[-_])(?:(?:source-)?line[-_]?(?:no|nos|nr|num|nums|number|numbers|numbering|nodiv)|gutter)(?:[-_]|$)"
).search
"""It finds nothing in a class without ``line`` or ``gutter``."""

_LINES = frozenset("tr li div p dd dt".split())
_FRAMES = frozenset("table thead tbody tfoot tr ol ul".split())
_UNSEEN = frozenset("script style template textarea button svg clipboard-copy caption colgroup select".split())
_PRE = frozenset({"pre", "listing", "xmp", "plaintext"})
_BLANKS = " \t\r\f\v\xa0\u200b\ufeff"
"""Invisible characters, which some generators put into blank lines to preserve them."""

_SKIPPED = -1

_number_token = re.compile(
    r"(?:^|\s)(?:m[iohfb]?|il|number|hljs-number|constant|numeric|nu0)(?:\s|$)", re.IGNORECASE
).search
_indent = re.compile(r"^[ \t\xa0]+", re.MULTILINE).sub
_AFTER_NUMBER = "\0"
"""Set behind a number in an element of its own at the beginning of a line, which only style parts from the line."""
_digits = re.compile(r"[\s\d.:|]*").fullmatch
_digits_only = re.compile(r"[0-9]{1,5}").fullmatch
_numbered = re.compile(r"[ \t]*(\d{1,5})(?:[:|](?=\s|$)|(?=[ \t]|$)|\0)").match
_basic = re.compile(r"(?:PRINT|GOTO|GOSUB|LET|REM|INPUT|NEXT|RETURN|DATA|READ|DIM|END|CLS|FOR|IF|POKE|STOP)\b").match
_code_mark = re.compile(r"[(){}\[\];=<>]|:$|^(?:(?:import|from|package|use|end|else|return)\b|#|//|--)").search
_single_word = re.compile(r"[\w.-]*").fullmatch
TWIN: Final = CodeBlock("")
"""Returned for an element to drop, which only repeats code or numbers its lines."""

_PROSE = ("h1", "h2", "h3", "h4", "h5", "h6", "video", "audio", "iframe", "blockquote", "article", "section", "figure")
_NO_LINE = frozenset({*_PROSE, "p", "ul", "ol", "dl", "table", "img", "pre", "a", "form", "input"})
_emoji = re.compile(r"emoji|smil", re.IGNORECASE).search
_LARGE = frozenset({"body", "html", "article", "main"})
"""Elements that hold more than the code."""

ALIASES = {
    "js": "javascript", "node": "javascript", "ecmascript": "javascript", "ts": "typescript", "py": "python",
    "py3": "python", "python2": "python", "python3": "python", "ipython": "python", "ipython3": "python", "rb": "ruby",
    "yml": "yaml", "md": "markdown", "cs": "csharp", "c#": "csharp", "c-sharp": "csharp", "c++": "cpp", "cxx": "cpp",
    "hpp": "cpp", "golang": "go", "rs": "rust", "kt": "kotlin", "hs": "haskell", "pl": "perl", "ps1": "powershell",
    "posh": "powershell", "htm": "html", "xhtml": "html", "html-basic": "html", "html5": "html", "docker": "dockerfile",
    "objc": "objectivec", "obj-c": "objectivec", "objective-c": "objectivec", "coffee": "coffeescript", "f#": "fsharp",
    "vb.net": "vbnet", "make": "makefile", "jscript": "javascript", "actionscript3": "actionscript", "erl": "erlang",
    "clj": "clojure", "terminal": "console", "shell-session": "console", "html-php": "php", "viml": "vim",
}  # fmt: skip
"""Common aliases of languages. Other names are not changed."""

_NO_LANGUAGE = frozenset(
    "plain plaintext text txt none nohighlight no-highlight default auto undefined null unknown raw generic code "
    "output text/plain nolang false highlight literal example".split()
)

_KNOWN = frozenset(
    "ada apache applescript arduino asciidoc asm assembly awk bash basic bat batch bibtex c clojure cmake "
    "cobol coffeescript common-lisp console cpp crystal csharp css csv cuda cypher cython d dart delphi diff "
    "django dockerfile dos ebnf elisp elixir emacs-lisp elm erb erlang excel fish forth fortran fsharp gcode "
    "gherkin glsl go gradle graphql groovy haml handlebars haskell haxe hcl hlsl http html ini java "
    "javascript jinja jinja2 json json5 jsonc jsp jsx julia kotlin latex less liquid lisp livescript lua "
    "makefile markdown mathematica matlab maven mermaid mysql nasm nginx nim nix objectivec ocaml octave "
    "openscad pascal patch perl pgsql php plsql postgresql powershell processing prolog properties protobuf "
    "proto puppet purescript pycon pug python qml r racket razor regex rest rst ruby rust sas sass scala "
    "scheme scss sed sh shell smalltalk smarty solidity sparql sql stan stylus svelte svg swift systemverilog "
    "tcl terraform tex toml tsql tsx twig typescript vala vb vba vbnet vbscript verilog vhdl vim vue wasm "
    "wolfram xml xquery xslt yaml zig zsh".split()
) | frozenset(ALIASES)
_SHARED = frozenset(
    "basic d c r rest http processing stan fish make node text sh tex latex md csv svg html css".split()
)
"""Names of languages that are also common as other classes. They only count if a class says that the element is
code."""
_HIGHLIGHTED = _KNOWN - _SHARED
_NATURAL = frozenset(
    "en de fr es it pt ru ja jp zh cn ko nl sv da no nb fi el he ar uk hu ro vi th id bg sk sl et lv lt fa hi".split()
)

_ATTRIBUTES = (
    "data-lang", "data-language", "data-enlighter-language", "data-code-language", "data-programming-language",
    "data-highlight-language", "data-tagsearch-lang", "data-ke-language", "data-code-lang",
    "data-syntax", "data-mode-id", "lang",
)  # fmt: skip

_brush = re.compile(r"brush\s*:\s*([\w+#.-]+)", re.IGNORECASE).search
_named = re.compile(
    r"(language|lang|highlight-source|highlight-text|mw-highlight-lang|enlighter-l|source|code|type|syntax|listing|hljs"
    r"|highlight|src|sh)[-:_]([A-Za-z][\w+#.-]{0,29}|c\+\+)",
    re.IGNORECASE,
).fullmatch
_CONTROLS = frozenset("switcher selector menu wrapper inline toggle picker".split())
"""What follows ``language-`` in the classes of other elements."""
_parameters = re.compile(r"[={,].*").sub  # as in ```python=1 and ```js{2,3}
_SURE_PREFIXES = frozenset(
    {"language", "lang", "highlight-source", "highlight-text", "mw-highlight-lang", "enlighter-l"}
)
_MARKS = frozenset(
    "hljs sourcecode prettyprint syntaxhighlighter highlight geshi chroma codehilite dp-highlighter src "
    "blob-wrapper".split()
)
_name = re.compile(r"[A-Za-z][\w+#.-]{0,29}").fullmatch


@by_class
def has_code_class(name: str) -> bool:
    """Return True if an element with this class attribute may be code."""
    name = name.lower()
    return _code(name) is not None or has_number_class(name) or not _MADE.isdisjoint(name.split())


@by_class
def has_number_class(name: str) -> bool:
    """Return True for the class attribute of line numbers, or of a code block that can have them."""
    names = name.lower().split()
    may = "line" in name.lower() or "gutter" in name.lower()
    return not _NUMBERS.isdisjoint(names) or (may and any(map(_line_number, names)))


def is_numbers(element: _Element) -> bool:
    """Return True for an element that only holds line numbers, one or all of them."""
    if not (has_number := _is_named(element)):
        following = element.getnext()
        # In a span, it is right before the <div> of its line.
        leads_line = element.tag == "span" and not element.tail and element.getprevious() is None
        if following is None or not (element.tag == "td" or (leads_line and following.tag == "div")):
            return False
    elif is_deep(element):
        return False
    for text in map(str, element.itertext()):
        if not _digits(text):
            return False
        has_number = has_number or not text.isspace()
    return has_number


def is_deep(element: _Element) -> bool:
    """Return True for an element in more elements that are marked as line numbers than code ever has: on broken pages,
    everything after an unclosed element is nested in it, and each level would be read to its end.
    """
    return 4 * sum(map(_is_named, islice(element.iterancestors(), NEAR))) > NEAR


def _is_named(element: _Element) -> bool:
    """Return True if an attribute marks an element as line numbers."""
    name = element.get("class")
    return (
        (bool(name) and has_number_class(name))  # type: ignore[arg-type]
        or "data-line-number" in element.attrib
        or "data-linenos" in element.attrib
        or "data-code-line-number" in element.attrib
    )


def is_tool(element: _Element) -> bool:
    """Return True for buttons and labels that a generator adds to code."""
    if element.tag in _UNSEEN:
        return True
    tokens = (element.get("class") or "").lower().split()
    is_named = not _TOOLS.isdisjoint(tokens) or ("lang" in tokens and element.tag == "span")
    return is_named or is_copy_label(element)


def is_line(element: _Element) -> bool:
    """Return True for a line of code, judging by its class."""
    return not _LINE_CLASSES.isdisjoint((element.get("class") or "").lower().split())


def code_text(root: _Element) -> str:
    """Return the code in an element, without line numbers and without blank lines at both ends. Takes linear time."""
    preformatted = next(root.iter(*_PRE), None) is not None or next(root.iterancestors(*_PRE), None) is not None
    text = _Lines(root, preformatted).text()
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\xa0" in text:
        # Where white space collapses, they stand for spaces. In a <pre>, they do so only in the indents of an editor
        # that breaks lines with <br>.
        if not preformatted:
            text = text.replace("\xa0", " ")
        elif next(root.iter("br"), None) is not None:
            text = _indent(lambda indent: indent[0].replace("\xa0", " "), text)
    lines = [line if line.strip(_BLANKS) else "" for line in text.rstrip().split("\n")]
    first = next((i for i, line in enumerate(lines) if line), len(lines))
    text = "\n".join(lines[first:])
    return without_numbers(text if preformatted else dedent(text)).replace(_AFTER_NUMBER, "").strip("\n")


def _is_at_line_end(br: _Element) -> bool:
    """Return True for a ``<br>`` with a line break of the source before or after it."""
    if (br.tail or "\n").lstrip(" \t")[:1] in ("\r", "\n"):
        return True
    before = br.getprevious()
    parent = br.getparent()
    text = before.tail if before is not None else parent.text if parent is not None else None
    return bool(text) and (text or "").rstrip(" \t")[-1:] == "\n"


def _is_of_codes(pre: _Element) -> bool:
    """Return True for a ``<pre>`` with a ``<code>`` for each line and nothing between them, as WeChat writes it."""
    lines = [child for child in pre if isinstance(child.tag, str) and not is_tool(child)]
    apart = (pre.text, *(line.tail for line in lines[:-1]))
    return len(lines) > 1 and not any(apart) and all(line.tag == "code" for line in lines)


_BLANK = " \t\r\n\f"
"""White space that a browser collapses. A no-break space indents code."""


class _Lines:
    """Collects the lines of code in one pass over the nodes."""

    def __init__(self, root: _Element, preformatted: bool) -> None:
        self._root = root
        self._preformatted = preformatted
        self._pieces: list[str] = []
        self._written = 0
        self._open = False  # True if the line is not empty
        self._lines: list[
            tuple[int, bool]
        ] = []  # for each open element that is a line: where it begins, and whether lines are in it
        text = inner_text(root)
        breaks = root.findall(".//br")
        # A <br> beside a line break in the text was added by an editor.
        self._double = len(breaks) > preformatted and all(map(_is_at_line_end, breaks)) and "\n" in text
        self._seen = False  # something in the line, in the text that an editor broke
        self._spans = not breaks and "\n" not in text.strip("\n")
        self._codes = root.tag in _PRE and _is_of_codes(root)

    def text(self) -> str:
        walk = etree.iterwalk(self._root, events=("start", "end", "comment", "pi"))
        for event, node in walk:
            if event == "start":
                if node is not self._root and (is_tool(node) or is_numbers(node)):
                    walk.skip_subtree()
                    self._lines.append((_SKIPPED, False))  # lxml still reports its end
                    continue
                self._enter(node)
            elif event == "end":
                if self._lines and self._lines[-1][0] == _SKIPPED:
                    self._lines.pop()
                else:
                    self._leave(node)
                self._tail(node)
            else:
                self._tail(node)
        return "".join(self._pieces)

    def _enter(self, node: _Element) -> None:
        if self._is_line(node):
            if self._open:
                self._write("\n")
            if self._lines:
                self._lines[-1] = (self._lines[-1][0], True)
            self._lines.append((self._written, False))
        elif node.tag == "br":
            self._break()
        elif node.tag == "img":
            self._write(node.get("alt") or "")
        text = node.text
        if text and not (text.isspace() and (node.tag in _FRAMES or (len(node) and self._is_line(node[0])))):
            is_number = not self._open and node.tag == "span" and not len(node) and _digits_only(text)
            is_apart = is_number and not _number_token(node.get("class") or "")
            self._write(text + _AFTER_NUMBER if is_apart else self._without_breaks(text, None if len(node) else node))

    def _leave(self, node: _Element) -> None:
        if not self._is_line(node):
            return
        start, has_lines = self._lines.pop()
        if self._open or (not has_lines and self._written == start):
            self._write("\n")

    def _tail(self, node: _Element) -> None:
        tail = node.tail
        if not tail or node is self._root:
            return
        if tail.isspace():
            parent = node.getparent()
            if self._is_line(node) or (parent is not None and parent.tag in _FRAMES):
                return
        self._write(self._without_breaks(tail, node.getparent() if node.getnext() is None else None))

    def _without_breaks(self, text: str, ends: _Element | None) -> str:
        """Return a text without line breaks of the source behind the first tag of a line, and before the last one of
        a line that it ends. Without a ``<pre>``, they are no part of the code.
        """
        if self._preformatted or not self._lines or "\n" not in text:
            return text
        if self._lines[-1][0] == self._written:
            inner = text.lstrip(_BLANK)
            text = text[: len(text) - len(inner)].rpartition("\n")[2] + inner if inner else ""
        if ends is not None and self._is_line(ends):
            inner = text.rstrip(_BLANK)
            text = inner if "\n" in text[len(inner) :] else text
        return text

    def _write(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._written += len(text)
            self._open = text[-1] != "\n"
            self._seen = self._seen or not text.isspace()

    def _break(self) -> None:
        if not self._double:
            self._write("\n")
            return
        last = self._pieces[-1] if self._pieces else ""
        before, new_line, indent = last.rpartition("\n")
        if self._seen and new_line and not indent.strip():  # the break comes first on the next line of the source
            self._pieces[-1] = before.rstrip()
        self._seen = False

    def _is_line(self, node: _Element) -> bool:
        if node is self._root:
            return False
        if node.tag in _LINES or (self._codes and node.tag == "code" and node.getparent() is self._root):
            return True
        return bool(
            self._spans and node.tag in ("span", "code", "pre") and (node.get("data-line") is not None or is_line(node))
        )


def without_numbers(code: str) -> str:
    """Remove the numbers at the beginning of lines if they count the lines. Line numbers of BASIC are kept.

    The numbers must increase by one, and the text after them must look like code, because tables can have them, too.
    """
    lines = code.split("\n")
    if len(lines) < 3 - (_AFTER_NUMBER in code) or not lines[0].lstrip()[:1].isdigit():
        return code
    ends: list[int] = []
    rests: list[str] = []
    number = -1
    for line in lines:
        match = _numbered(line)
        if match is None or (number >= 0 and int(match[1]) != number + 1):
            return code
        number = int(match[1])
        ends.append(match.end())
        rests.append(line[match.end() :])
    if not _is_code(rests):
        return code
    columns = [end + len(rest) - len(rest.lstrip()) for end, rest in zip(ends, rests, strict=True) if rest.strip()]
    column = min(columns)
    if all(end < column or not rest.strip() for end, rest in zip(ends, rests, strict=True)):
        return "\n".join(line[column:] for line in lines)
    gap = min(len(rest) - len(rest.lstrip()) for rest in rests if rest.strip())
    return "\n".join(rest[gap:] for rest in rests)


def _is_code(rests: list[str]) -> bool:
    """Return True if lines look like a program, and not like table rows or a program with line numbers of its own."""
    filled = [rest for rest in rests if rest.strip()]
    if not filled or 2 * sum(_basic(rest.strip()) is not None for rest in filled) >= len(filled):
        return False
    indents = {len(rest) - len(rest.lstrip()) for rest in filled}
    marked = sum(_code_mark(rest.strip()) is not None for rest in filled)
    return 2 * marked >= len(filled) or (marked > 0 and (len(indents) > 1 or len(filled) < len(rests)))


def code_of_lines(runs: Runs) -> CodeBlock | None:
    """Return the code of a paragraph that only holds inline code and line breaks, or None."""
    lines: list[str] = [""]
    for run in runs:
        if type(run) is LineBreak:
            lines.append("")
        elif type(run) is Code:
            lines[-1] += run.text.replace("\xa0", " ")  # used for indentation, since white space collapses
        elif type(run) is not Text or not run.text.isspace():
            return None
    return CodeBlock("\n".join(lines)) if len(lines) > 1 and "".join(lines) else None


def with_code_lines(items: Sequence[Item]) -> Items:
    """Return items with one code block for three or more paragraphs of nothing but inline code, which are its lines,
    and without the copy labels beside code.

    Two commands often stand one below the other, and paragraphs of single words are a list of names.
    """
    made: list[Item] = []
    for is_line, group in groupby(chain.from_iterable(map(_unboxed, items)), _is_code_line):
        some = list(group)
        code = plain_text(some).replace("\xa0", " ") if is_line and len(some) > 2 else ""
        made += some if all(map(_single_word, code.split("\n"))) else [CodeBlock(code)]
    return _without_labels(made) if any(type(item) is CodeBlock for item in made) else tuple(made)


def _without_labels(items: list[Item]) -> Items:
    """Remove copy labels right before and right behind code, and the name of its language right before it."""
    made: list[Item] = []
    language = ""
    for item in items:
        label = _label(item)
        if label is not None and made and type(made[-1]) is CodeBlock:
            continue
        if type(item) is CodeBlock:
            while made and (label := _label(made[-1])) is not None:
                made.pop()
                language = language or label
                above = made[-1] if made else None
                if not language and type(above) is Paragraph and line_text(above.runs).lower() in _KNOWN:
                    language = line_text(above.runs)
                    made.pop()
            if language and item.language is None:
                item = replace(item, language=normalised(language), by="attribute")
            language = ""
            *others, named = "", *map(_plain, made[-2:])
            if item.language and normalised(named) == item.language and _KNOWN.isdisjoint(others):
                made.pop()  # its label, with or without a button, but not the last of several languages
        made.append(item)
    return tuple(made)


def _plain(item: Item) -> str:
    """Return the text of a paragraph without links and the like, in lower case, or an empty string for other items."""
    if type(item) is not Paragraph or any(type(run) is not Text for run in item.runs):
        return ""
    return line_text(item.runs).lower()


def _label(item: Item) -> str | None:
    """Return None unless an item is a copy label. Return the language before it, which may be empty."""
    label = copy_label(line_text(item.runs)) if type(item) is Paragraph else None
    return label if not label or label in _KNOWN else None


def _unboxed(item: Item) -> Sequence[Item]:
    """Return the code in a list whose only term is a copy label, as in phpBB."""
    if type(item) is List and len(item.items) == 1 and (terms := item.items[0].terms):
        inside = item.items[0].items
        if all(type(one) is CodeBlock for one in inside) and copy_label(line_text(terms[0])) is not None:
            return inside
    return (item,)


def _is_code_line(item: Item) -> bool:
    return type(item) is Paragraph and len(item.runs) == 1 and type(item.runs[0]) is Code


def code_block(element: _Element) -> CodeBlock | None:
    """Return the code block of an element, :data:`TWIN` (without text) if it is to be dropped, or None.

    Call this for the tags of preformatted text, tables, ``<code>`` and elements with :func:`has_code_class`, before
    their content.
    """
    tag = element.tag
    if tag in _PRE:
        return _preformatted(element)
    if tag == "table":
        return _block(element) if _is_code_table(element) else TWIN if _is_gutter(element) else None
    if tag == "code":
        return _loose_code(element)
    name = element.get("class") or ""
    tokens = frozenset(name.lower().split())
    if (is_numbers(element) and has_number_class(name)) or _is_rendered_twin(element, tokens):
        return TWIN
    if tokens & _BOXES or element.get(SLATE) in SLATE_CODE:
        return _whole(element)
    inner = _sole_code(element)
    if inner is None:
        return _block(element) if _is_box_of_lines(element) else None
    return _preformatted(inner) if inner.tag in _PRE else _block(inner)


def _block(element: _Element) -> CodeBlock:
    text = code_text(element)
    return CodeBlock(text, *language_of(element)) if text else TWIN


def _preformatted(element: _Element) -> CodeBlock | None:
    """Return the code of a ``<pre>``, or None if it holds a part of the page instead of code."""
    following = element.getnext()
    if following is not None and following.tag in _PRE and is_numbers(element):
        return TWIN
    # Inside another <pre>, it always counts as code. Otherwise, each of many nested ones would be searched to its end.
    if next(element.iterancestors(*_PRE), None) is None:
        if next(element.iter(*_PROSE), None) is not None:
            return None
        image = next(element.iter("img"), None)
        if image is not None and not _emoji(image.get("class") or ""):
            return None
        table = next(element.iter("table"), None)
        if table is not None and not _is_code_table(table):
            return None
    return _block(element)


def _loose_code(element: _Element) -> CodeBlock | None:
    """Return the code of a ``<code>`` without a ``<pre>`` if it has several lines."""
    is_inner = next(element.iterancestors(*_PRE, "code"), None) is not None
    has_lines = not is_inner and any(element.find(tag) is not None for tag in ("pre", "br", "table"))
    return _block(element) if has_lines else None


def _whole(element: _Element) -> CodeBlock:
    code = _block(element)
    if code.language is None:  # it may be in a label
        spans = islice(element.iter("span"), 20)
        labels = (node for node in spans if not _LANGUAGES.isdisjoint((node.get("class") or "").lower().split()))
        language = normalised("".join(label.text or "" for label in labels))
        code = CodeBlock(code.text, language or None, "attribute" if language else None)
    return code


def _is_rendered_twin(element: _Element, tokens: frozenset[str]) -> bool:
    """Return True for the copy of a hidden ``<pre>`` that Enlighter displays."""
    if not any(token.startswith("enlighter-") for token in tokens):
        return False
    return any(
        node is not None and node.tag == "pre" and "EnlighterJSRAW" in (node.get("class") or "")
        for node in (element.getnext(), element.getprevious())
    )


def _is_code_table(table: _Element) -> bool:
    """Return True for a table of code and line numbers, judging by its first row."""
    tokens = frozenset((table.get("class") or "").lower().split())
    first = next((node for node in islice(table.iter(), 12) if node.tag == "tr"), None)
    if first is None:
        return False
    if tokens & _TABLES:
        return True
    cells = [cell for cell in islice(first, 4) if cell.tag in ("td", "th")]
    if not cells:
        return False
    names = [(cell.get("class") or "").lower() for cell in cells]
    if any(name in names[-1] for name in _CELLS):
        return True
    if len(cells) == 2 and is_numbers(cells[0]):
        return any(node.tag in _PRE or node.tag == "code" for node in islice(cells[1].iter(), 8))
    return False


def _is_gutter(table: _Element) -> bool:
    """Return True for a table that only holds line numbers, because its code was not kept."""
    cell = next(table.iter("td", "th"), None)
    if cell is None or not (has_number_class(cell.get("class") or "") and is_numbers(cell)):
        return False
    return len(inner_text(table).split()) == len(inner_text(cell).split())


def _is_box_of_lines(element: _Element) -> bool:
    """Return True for code without a ``<pre>``, with one element per line, judging by the classes of box or lines."""
    if len(element) < 2 or (element.text and not element.text.isspace()):
        return False
    language = _of_node(element, near=False)
    named = language is not None and language[0] in _KNOWN
    lines = 0
    for child in element:
        if not isinstance(child.tag, str) or is_tool(child) or is_numbers(child):
            continue
        if child.tag not in ("div", "span", "code") or not (named or is_line(child)):
            return False
        if child.tail and not child.tail.isspace():
            return False
        inside = list(islice(child.iter(), SHORT))
        if len(inside) == SHORT or any(node.tag in _NO_LINE for node in inside):
            return False
        lines += 1
    return lines > 1


def _sole_code(wrapper: _Element) -> _Element | None:
    """Return the only code block in a wrapper without other text, or None."""
    if is_deep(wrapper):
        return None
    code: _Element | None = None
    todo = [wrapper]
    looked = 0
    while todo:
        node = todo.pop()
        looked += 1
        if looked > NEAR or (node.text and not node.text.isspace()):
            return None
        for child in node:
            if child.tail and not child.tail.isspace():
                return None
            if not isinstance(child.tag, str) or is_tool(child) or is_numbers(child):
                continue
            if looked + len(todo) > NEAR:
                return None
            if child.tag in _PRE or (child.tag == "table" and _is_code_table(child)):
                if code is not None:
                    return None
                code = child
            elif child.tag in ("img", "code", "table"):
                return None
            else:
                todo.append(child)
    return code


# ---------------------------------------------------------------------- copy labels
LABELS: Group = (
    "copy(?: (?:code|text|snippet|command|link|this))?(?: to (?:the )?clipboard)?",
    *("copied(?: to (?:the )?clipboard)?", "click to copy", "toggle (?:word wrap|overflow)", "(?:un)?wrap lines"),
    *("(?:view|show) (?:raw|plain)", "copy failed", "(?:code |text )?(?:in (?:die )?zwischenablage )?kopieren"),
    *("(?:in zwischenablage )?kopiert", "copier(?: (?:le code|dans le presse-papiers?))?", "copié"),
    *("copiar(?: (?:el )?c[oó]digo| al portapapeles| para a área de transferência)?", "copiado", "¡copiado"),
    *("copia(?: (?:il )?codice| negli appunti)?", "copiato", "kopi[eë]er(?:en)?(?: naar klembord)?", "gekopieerd"),
    *("kopiuj(?: kod| do schowka)?", "skopiowano", "(?:с)?копировать(?: код| в буфер обмена)?", "скопировано"),
    *("kopyala", "kodu kopyala", "kopyalandı", "kopiér", "kopier(?:a)?(?: kod)?", "kop[ií]rovat", "sao chép", "نسخ"),
    *("(?:点击|一键)?复制(?:代码|成功|到剪贴板)?", "已复制", "複製(?:程式碼|代碼)?", "已複製", "代码解读", "自动换行"),
    *("(?:コードを)?コピー(?:する|しました)?", "(?:코드 )?복사(?:하기|됨)?"),
    "(?:(?:code|c[oó]digo|codice|kod|код): )?(?:select all|alles ausw[äa]hlen|tout sélectionner|(?:seleccionar|"
    "selecionar) tod[oa]s?|seleziona tutto|alles selecteren|zaznacz (?:wszystko|cały)|выделить вс[её]|全选)",  # phpBB
)
"""What a button that copies or wraps code is called, and what it says after a click, complete."""

_names = re.compile(r"cop(?:y|ied|ier)|clipboard|kopier", re.I).search
_labels = re.compile(
    rf"(?:([a-z][\w+#.-]{{0,19}})[\s|·:]{{1,9}})??(?:(?:{either(LABELS)})[\s!.|·✓✔]{{0,9}}){{1,6}}", re.I
).fullmatch


def copy_label(text: str) -> str | None:
    """Return None unless a text consists of copy labels. Return the word before them, which may name the language."""
    match = _labels(text.strip()) if len(text) <= SHORT else None
    return (match[1] or "").lower() if match else None


def is_copy_label(element: etree._Element) -> bool:
    """Return True for an element in code that is named for copying, and says nothing else.

    Its name has to tell, because the text alone may be code, such as ``COPY``.
    """
    if not any(_names(value[:LONGEST_CLASS]) for name in ("class", "id", "slot") if (value := element.get(name))):
        return False
    text = short_text(element)
    return text is not None and (not text.strip() or copy_label(text) is not None)


# ---------------------------------------------------------------------- languages
def language_of(element: _Element) -> tuple[str | None, str | None]:
    """Return the language of code and its source (``class``, ``attribute`` or ``brush``), or None for both.

    The function checks the element, a ``<code>`` in it, and its ancestors.
    """
    # A <span> may hold the line numbers, so it comes last.
    inside = (element, *islice(element.iter("pre", "code"), 4), *islice(element.iter("span"), 1))
    around = takewhile(lambda node: node.tag not in _LARGE, islice(element.iterancestors(), NEAR))
    names = chain((_of_node(node, near=True) for node in inside), (_of_node(node, near=False) for node in around))
    named = next(filter(None, names), None)
    return named if named and named[0] else (None, None)


def normalised(name: str) -> str:
    """Return the name of a language in lower case, or an empty string for a name that means "no language"."""
    name = name.strip().lower()
    return "" if name in _NO_LANGUAGE else ALIASES.get(name, name)


def _of_node(node: _Element, near: bool) -> tuple[str, str] | None:
    """Return the language that a node names and its source, or None. The language is empty for "no language"."""
    name = node.get("class") or ""
    parameters = node.get("data-syntaxhighlighter-params") or ""
    if "brush" in name or parameters:
        brush = _brush(name) or _brush(parameters)
        if brush:
            return normalised(brush[1]), "brush"
    for key in _ATTRIBUTES:
        value = (node.get(key) or "").strip()
        if value and _name(value):
            lower = value.lower()
            known = lower in _KNOWN and not (key == "lang" and lower in _NATURAL)
            if known or (near and key != "lang") or lower in _NO_LANGUAGE:
                return normalised(value), "attribute"
    if node.tag == "span":  # classes of tokens, such as "c"
        return None
    language = _of_class(name[:LONGEST_CLASS], near or node.tag in ("pre", "code")) if name else None
    return None if language is None else (language, "class")


@lru_cache(1_024)
def _of_class(name: str, near: bool) -> str | None:
    tokens = name.split()
    marked = not _MARKS.isdisjoint(name.lower().split())
    for token in tokens:
        match = _named(_parameters("", token))
        prefix, value = (match[1].lower(), match[2].lower()) if match else ("", "")
        if not match or value in _NATURAL or value in _CONTROLS:
            continue
        is_sure = prefix in _SURE_PREFIXES and (near or prefix != "lang")
        is_known = value in _KNOWN and (near or marked or prefix in _SURE_PREFIXES or prefix == "source")
        # Sphinx, also in a theme without "notranslate"
        by_sphinx = value in _NO_LANGUAGE or value in _HIGHLIGHTED or "notranslate" in tokens
        if is_sure or is_known or (prefix == "highlight" and by_sphinx):
            return normalised(value)
    for token in map(str.lower, tokens):
        if token in _KNOWN and (marked or (near and token not in _SHARED)):
            return normalised(token)
        if token in ("nohighlight", "no-highlight", "plaintext"):
            return ""
    return None
