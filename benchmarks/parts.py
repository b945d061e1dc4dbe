"""The structures of a Markdown document and of an HTML page, in a form in which they can be compared.

Markdown is rendered, and the rendering is treated like a page, so every correct way to write something counts. In text,
only letters and digits count. In code, every character counts except white space at the ends of lines.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urljoin

import lxml.html
from lxml import etree
from markdown_it import MarkdownIt

KINDS = (
    "headings", "fenced code", "language of code", "table cells", "list items", "links", "images", "inline code",
    "formulas", "footnotes",
)  # fmt: skip

_renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_code_in_markdown = re.compile(r"(?ms)^[ >]{0,12}(`{3,}|~{3,}).*?^[ >]{0,12}\1[`~]*[ \t]*$|(`+)(?!`).+?(?<!`)\2(?!`)")
_formula = re.compile(
    r"(?<![\\$])\$\$(?P<a>.+?)\$\$|(?<![\\$])\$(?P<b>[^$\s](?:[^$\n]*?[^$\s\\])?)\$(?!\d)"
    r"|\\{1,2}\((?P<c>.+?)\\{1,2}\)|\\{1,2}\[(?P<d>.+?)\\{1,2}\]",
    re.S,
)
_any_formula = re.compile(r"(?<!\\)\$\$[^$]+\$\$|(?<!\\)\$[^$\n]+\$|\\{1,2}\(.+?\\{1,2}\)|\\{1,2}\[.+?\\{1,2}\]", re.S)
_note = re.compile(r"(?m)^\[\^[^\]\s]+\]:[ \t]*(.+(?:\n(?!\[\^).+)*)")
_section_number = re.compile(r"^\s*(?:\d+\.)*\d+\.?\s+")
_task = re.compile(r"^\s*\[[ xX]\]\s")
_number_class = re.compile(r"(?:^|[-_\s])(?:gutter|line-?num\w*|lineno\w*|lnt?|blob-num)(?=[-_\s]|$)").search
_digits = re.compile(r"[\s\d]+").fullmatch
_language = re.compile(r"language-([\w+#.-]+)").match
_picture = re.compile(r"[^/?#]+\.(?:png|jpe?g|gif|webp|svg|avif|bmp)(?=[?#]|$)", re.I)
_added = re.compile(r"[-_.](?:hu_?)?[0-9a-f]{12,}.*$").sub
_comment = re.compile(r"<!--.*?-->", re.S).sub
_tag = re.compile(r"\\tag\{[^{}]*\}$").sub
_mangled = re.compile(r"[_*\\]").sub
_LINES = frozenset({"div", "li", "p", "tr"})
_HEADINGS, _CODE = ("h1", "h2", "h3", "h4", "h5", "h6"), ("code", "kbd", "samp", "tt")
_MATH = (
    "self::math or self::mjx-container or contains(concat(' ', @class), ' katex') or contains(@class, 'MathJax')"
    " or contains(concat(' ', @class, ' '), ' math ') or contains(@class, 'arithmatex')"
)


def norm(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, normalize("NFKC", text).casefold()))


def line_key(text: str) -> str:
    """Return the same for a line, without the number of a section that renderers may add."""
    return norm(_section_number.sub("", text))


def squash(text: str) -> str:
    """Return a text without its white space."""
    return "".join(text.split())


def code_key(text: str) -> str:
    """Return code for comparison, with tabs as four spaces and without white space at line ends."""
    return "\n".join(line.rstrip() for line in text.expandtabs(4).split("\n")).strip("\n")


def tex_key(latex: str) -> str:
    """Return LaTeX for comparison. Sphinx adds numbers, and ``split`` around several lines."""
    key = squash(latex).replace("\\lt", "<").replace("\\gt", ">").replace("\u2019", "'").replace("\u200b", "")
    key = _tag("", key).rstrip(".,;\\")
    return key.removeprefix("\\begin{split}").removesuffix("\\end{split}")


def loose_tex(key: str) -> str:
    """Return what remains of LaTeX if a Markdown converter treats it as text."""
    return _mangled("", key)


def address(url: str, base: str) -> str:
    """Return an absolute URL for comparison."""
    try:
        return unquote(urljoin(base, url.strip())).rstrip("/").removesuffix("/index.html")
    except ValueError:
        return url


def file_name(url: str) -> str:
    """Return the file name at the end of a URL, without the parts that generators add."""
    name = unquote(url).partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2].lower()
    return _added("", name.rpartition(".")[0] or name)


@dataclass
class Parts:
    """The structures of a document, by kind, with their counts."""

    found: dict[str, Counter[Any]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    languages: dict[str, str] = field(default_factory=dict)
    """The languages of pieces of code, by their code."""
    text: str = ""
    """The letters and digits of the whole document."""


def parse(source: str) -> etree._Element:
    """Return the tree of HTML."""
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    found: etree._Element | None = etree.fromstring((source or "<p>").encode("utf-8", "replace"), parser)
    return found if found is not None else etree.Element("html")


def of_markdown(markdown: str, base: str, math: bool) -> Parts:
    """Return the structures of Markdown from a URL. Formulas only count if the page loads a library for them."""
    parts = Parts()
    if math:
        bare = _comment("", _code_in_markdown.sub(" ", markdown))
        for found in _formula.finditer(bare):
            key = tex_key(html.unescape(next(filter(None, found.groups()), "")))
            if key:
                parts.found["formulas"][key] += 1
    parts.found["footnotes"].update(filter(None, (norm(plain(note)) for note in _note.findall(markdown))))
    tree = parse(_renderer.render(_without_formulas(markdown) if math else markdown))
    _read(tree, base, parts)
    parts.text = norm(" ".join(tree.itertext()))
    return parts


def plain(markdown: str) -> str:
    """Return the text that a line of Markdown is rendered to."""
    return "".join(parse(_renderer.render(markdown)).itertext())


@dataclass
class Shown:
    """Everything that a page shows, whether it is main content or not."""

    parts: Parts
    source: str
    """The source without white space."""
    codes: dict[str, str]
    """The code as shown, by the code without white space, because renderers drop or add indents."""


def of_page(source: str, base: str) -> Shown:
    """Return what a page shows."""
    tree = parse(source)
    for element in tree.xpath("//style | //script[not(starts-with(@type, 'math/'))]"):
        element.clear(keep_tail=True)
    whole = squash(html.unescape(_comment("", source)))
    codes = {squash(code): code for code in map(_code_of, tree.iter("pre"))}
    for element in tree.iter():
        numbers = isinstance(element.tag, str) and _number_class(element.get("class") or "")
        if numbers and _digits("".join(element.itertext())):
            element.clear(keep_tail=True)
    codes |= {squash(code): code for code in map(_code_of, tree.iter("pre"))}
    for element in tree.xpath(f"//*[{_MATH}] | //script"):
        element.clear(keep_tail=True)
    for element in tree.iter():
        for name in ("text", "tail"):
            value = getattr(element, name)
            if value and isinstance(element.tag, str) and ("$" in value or "\\" in value):
                setattr(element, name, _any_formula.sub(" ", value))
    parts = Parts()
    _read(tree, base, parts)
    for image in tree.iter("img", "source", "a"):
        for value in image.attrib.values():
            parts.found["images"].update(map(file_name, _picture.findall(unquote(str(value)))))
    parts.text = norm(" ".join(tree.itertext()))
    return Shown(parts, whole, codes)


def _code_of(element: etree._Element) -> str:
    """Return the code of an element, with a line feed for each line break and before each element that is a line."""
    pieces: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if event == "end" and node.tag in _LINES and node.text is None and len(node) == 0:
            pieces.append("\n")
        begins = event == "start" and node.tag in _LINES and pieces and pieces[-1][-1] != "\n"
        if begins or (node.tag == "br" and event == "start"):
            pieces.append("\n")
        text = node.text if event == "start" else node.tail if node is not element else None
        pieces += [text] if text else []
    return code_key("".join(pieces))


def _without_formulas(markdown: str) -> str:
    """Return Markdown without its formulas, which look different in the page's text. Formulas in code stay."""
    pieces: list[str] = []
    end = 0
    for found in _code_in_markdown.finditer(markdown):
        pieces += [_any_formula.sub(" ", markdown[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*pieces, _any_formula.sub(" ", markdown[end:])])


def _read(tree: etree._Element, base: str, parts: Parts) -> None:
    for element in tree.iter(*_HEADINGS, *_CODE, "pre", "li", "tr", "a", "img"):
        for kind, key in _structures(element, base):
            parts.found[kind][key] += 1
            if kind == "fenced code":
                parts.languages[key] = _language_of(element)


def _structures(element: etree._Element, base: str) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the key of each structure that an element is."""
    text = "".join(element.itertext())
    match element.tag:
        case "pre":
            if (key := code_key(text)) and next(element.iterancestors("pre"), None) is None:
                yield "fenced code", key
        case "li":
            parent = element.getparent()
            if key := norm(_task.sub("", "".join(_own_text(element)))):
                yield "list items", ("ol" if parent is not None and parent.tag == "ol" else "ul", key)
        case "tr":
            yield from (("table cells", cell) for cell in _cells(element))
        case "a":
            href, key = element.get("href"), norm(text)
            if href and key and not (key.isdigit() and href[0] == "#"):
                yield "links", (key, address(href, base))
        case "img":
            if name := file_name(element.get("src") or ""):
                yield "images", name
        case tag if tag in _CODE:
            if (key := " ".join(text.split())) and next(element.iterancestors("pre", "code"), None) is None:
                yield "inline code", key
        case _:
            yield from (("headings", key) for key in _variants(_section_number.sub("", text), element))


def _cells(row: etree._Element) -> Iterator[tuple[int, str]]:
    """Yield the column and the text of each cell."""
    column = 0
    for cell in row.iterchildren("td", "th"):
        if key := norm("".join(cell.itertext())):
            yield column, key
        span = cell.get("colspan") or "1"
        column += int(span) if span.isdigit() else 1


def _variants(text: str, heading: etree._Element) -> Iterator[str]:
    """Yield the text of a heading, with and without the link to itself that the page has added."""
    if key := norm(text):
        yield key
    links = [link for link in heading.iter("a") if (link.get("href") or "").startswith("#")]
    said = norm("".join("".join(link.itertext()) for link in links))
    if said and said != key:
        for without in (key.removesuffix(said), key.removeprefix(said)):
            if without != key:
                yield without


def _own_text(item: etree._Element) -> Iterator[str]:
    """Yield the text of a list item without the lists, tables and code in it."""
    if item.text:
        yield item.text
    for child in item:
        if isinstance(child.tag, str) and child.tag not in ("ul", "ol", "pre", "table", "input"):
            yield from _own_text(child)
        if child.tail:
            yield child.tail


def _language_of(pre: etree._Element) -> str:
    """Return the language of rendered code, as CommonMark's renderer writes it."""
    found = _language(pre.xpath("string(code[1]/@class)"))
    return found[1].lower() if found else ""
