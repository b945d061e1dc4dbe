"""Recognise code blocks, and restore the original code.

Highlighters wrap code in tables with line numbers, toolbars, and copies for the clipboard.
"""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Final

from scrapy_dripper.output.code.language import is_named, language_of, normalised
from scrapy_dripper.output.code.lines import Look, code_text, is_deep, is_line, is_numbers, is_tool
from scrapy_dripper.output.items import Code, CodeBlock, LineBreak, Runs, Text
from scrapy_dripper.page.recognise import has_number_class

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["CODE_TAGS", "TWIN", "code_block", "code_of_lines"]

CODE_TAGS = frozenset({"pre", "listing", "xmp", "plaintext", "table"})
"""Tags that :func:`code_block` recognises without a class."""

TWIN: Final = CodeBlock("")
"""Returned for an element to drop, which only repeats code or numbers its lines."""

MAX_AROUND = 80
"""Maximum number of elements to search around code, in its wrapper."""

MAX_TEXTS = 1_000
"""Maximum number of texts to read around code, in its wrapper, to detect line numbers. Each can be a text of its
own."""

MAX_IN_LINE = 200
"""Maximum number of elements in a line of code without a ``<pre>``."""

_PRE = frozenset({"pre", "listing", "xmp", "plaintext"})
_PROSE = ("h1", "h2", "h3", "h4", "h5", "h6", "video", "audio", "iframe", "blockquote", "article", "section", "figure")
_NO_LINE = frozenset({*_PROSE, "p", "ul", "ol", "dl", "table", "img", "pre", "a", "form", "input"})
_WHOLE = frozenset(
    "syntaxhighlighter crayon-syntax crayon-main dp-highlighter cm-editor cm-content enlighter-default "
    "enlighter-v-standard enlighter codemirror codemirror-code codemirror-lines".split()
)
"""Classes of elements with lines of code but without a ``<pre>``."""
_TABLES = frozenset("highlighttable codehilitetable lntable rouge-table hljs-ln crayon-table processedcode".split())
MAX_WRAPPERS = 6
"""Maximum number of elements around code to check for a terminal."""
_terminal = re.compile(r"(?:^|\s)termy(?=\s|$)").search
_without_colours = partial(re.compile(r"</?(?:font|span|b|u|i|a)(?:\s[^<>]{0,200})?>").sub, "")
_emoji = re.compile(r"emoji|smil", re.IGNORECASE).search


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


def code_block(element: _Element) -> CodeBlock | None:
    """Return the code block of an element, :data:`TWIN` (without text) if it is to be dropped, or None.

    Call this for elements of :data:`CODE_TAGS` and those with :func:`has_code_class`, before their content.
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
    if is_numbers(element) and has_number_class(name):
        return TWIN
    if _is_rendered_twin(element, tokens):
        return TWIN
    if tokens & _WHOLE:
        return _whole(element, tokens)
    inner = _sole_code(element)
    if inner is None:
        return _block(element) if _is_box_of_lines(element) else None
    return _preformatted(inner) if inner.tag in _PRE else _block(inner)


def _block(element: _Element) -> CodeBlock:
    text = code_text(element)
    if "</" in text and _is_terminal(element):
        text = unescape(_without_colours(text))
    return CodeBlock(text, *language_of(element)) if text else TWIN


def _is_terminal(element: _Element) -> bool:
    """Return True for a terminal session that is animated by Termynal, which renders tags in the text."""
    return any(_terminal(around.get("class") or "") for around in islice(element.iterancestors(), MAX_WRAPPERS))


def _preformatted(element: _Element) -> CodeBlock | None:
    """Return the code of a ``<pre>``, or None if it holds a part of the page instead of code."""
    if is_numbers(element) and _stands_beside_code(element):
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


def _stands_beside_code(element: _Element) -> bool:
    """Return True for line numbers in a separate cell, or right before the code."""
    parent = element.getparent()
    if parent is None:
        return False
    following = element.getnext()
    if parent.tag in ("td", "th") or (following is not None and following.tag in _PRE):
        return True
    look = Look(MAX_AROUND)  # bounded, because this is called for each of many siblings
    return is_numbers(parent, look) and look.left >= 0


def _loose_code(element: _Element) -> CodeBlock | None:
    """Return the code of a ``<code>`` without a ``<pre>`` if it has several lines."""
    if next(element.iterancestors(*_PRE, "code"), None) is not None:
        return None
    if element.find("pre") is not None or element.find("br") is not None or element.find("table") is not None:
        return _block(element)
    name = element.get("class") or ""
    if (
        name
        and ("hljs" in name or "language-" in name)
        and "\n" in "".join(str(text) for text in element.itertext()).strip()
    ):
        return _block(element)
    return None


def _whole(element: _Element, tokens: frozenset[str]) -> CodeBlock | None:
    found = _block(element)
    if "syntaxhighlighter" in tokens and found.language is None:
        language = next(
            (normalised(token) for token in (element.get("class") or "").split() if token.lower() not in _STATES), ""
        )
        found = CodeBlock(found.text, language or None, "class" if language else None)
    elif "crayon-syntax" in tokens and found.language is None:
        labels = (node for node in islice(element.iter("span"), 20) if "crayon-language" in (node.get("class") or ""))
        language = normalised("".join(label.text or "" for label in labels))
        found = CodeBlock(found.text, language or None, "attribute" if language else None)
    return found


_STATES = frozenset("syntaxhighlighter nogutter notranslate ie collapsed printing show".split())


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
    if "blob-code" in names[-1] or "crayon-code" in names[-1] or "hljs-ln-code" in names[-1]:
        return True
    if len(cells) == 2 and is_numbers(cells[0]):
        return any(node.tag in _PRE or node.tag == "code" for node in islice(cells[1].iter(), 8))
    return False


def _is_gutter(table: _Element) -> bool:
    """Return True for a table that only holds line numbers, because its code was not kept."""
    cell = next(table.iter("td", "th"), None)
    return (
        cell is not None and has_number_class(cell.get("class") or "") and is_numbers(cell) and _is_alone(cell, table)
    )


def _is_alone(cell: _Element, table: _Element) -> bool:
    inside = len("".join(str(text) for text in cell.itertext()).split())
    return len("".join(str(text) for text in table.itertext()).split()) == inside


def _is_box_of_lines(element: _Element) -> bool:
    """Return True for code without a ``<pre>``, with one element per line, judging by the classes of box or lines."""
    if len(element) < 2 or (element.text and not element.text.isspace()):
        return False
    named = is_named(element)
    lines = 0
    for child in element:
        if not isinstance(child.tag, str) or is_tool(child) or is_numbers(child):
            continue
        if child.tag not in ("div", "span", "code") or not (named or is_line(child)):
            return False
        if child.tail and not child.tail.isspace():
            return False
        inside = list(islice(child.iter(), MAX_IN_LINE))
        if len(inside) == MAX_IN_LINE or any(node.tag in _NO_LINE for node in inside):
            return False
        lines += 1
    return lines > 1


def _sole_code(wrapper: _Element) -> _Element | None:
    """Return the only code block in a wrapper without other text, or None."""
    if is_deep(wrapper):
        return None
    found: _Element | None = None
    todo = [wrapper]
    look = Look(MAX_TEXTS)
    looked = 0
    while todo:
        node = todo.pop()
        looked += 1
        if looked > MAX_AROUND or (node.text and not node.text.isspace()):
            return None
        for child in node:
            if child.tail and not child.tail.isspace():
                return None
            if not isinstance(child.tag, str) or is_tool(child) or is_numbers(child, look):
                continue
            if look.left < 0 or looked + len(todo) > MAX_AROUND:
                return None
            if child.tag in _PRE or (child.tag == "table" and _is_code_table(child)):
                if found is not None:
                    return None
                found = child
            elif child.tag in ("img", "code", "table"):
                return None
            else:
                todo.append(child)
    return found
