"""Detect the language of code from the markup of the page."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from scrapy_dripper.page.tags import LONGEST_CLASS

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_ANCESTORS = 8
"""Number of ancestors that may name the language. A table with line numbers has seven."""

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
    "data-syntax", "lang",
)  # fmt: skip

_brush = re.compile(r"brush\s*:\s*([\w+#.-]+)", re.IGNORECASE).search
_named = re.compile(
    r"(language|lang|highlight-source|highlight-text|mw-highlight-lang|enlighter-l|source|code|type|syntax|listing|hljs"
    r"|highlight|src|sh)[-:_]([A-Za-z][\w+#.-]{0,29}|c\+\+)",
    re.IGNORECASE,
).fullmatch
_parameters = re.compile(r"[={,].*").sub  # as in ```python=1 and ```js{2,3}
_SURE = frozenset({"language", "lang", "highlight-source", "highlight-text", "mw-highlight-lang", "enlighter-l"})
_MARKS = frozenset(
    "hljs sourcecode prettyprint syntaxhighlighter highlight geshi chroma codehilite dp-highlighter src "
    "blob-wrapper".split()
)
_name = re.compile(r"[A-Za-z][\w+#.-]{0,29}").fullmatch


def language_of(element: _Element) -> tuple[str | None, str | None]:
    """Return the language of code and its source (``class``, ``attribute`` or ``brush``), or None for both.

    The function checks the element, a ``<code>`` in it, and its ancestors.
    """
    for node in (element, *_inner(element)):
        found = _of_node(node, near=True)
        if found is not None:
            return found if found[0] else (None, None)
    for _, node in zip(range(MAX_ANCESTORS), element.iterancestors(), strict=False):
        if node.tag in ("body", "html", "article", "main"):
            break
        found = _of_node(node, near=False)
        if found is not None:
            return found if found[0] else (None, None)
    return None, None


def is_named(element: _Element) -> bool:
    """Return True if an element itself names a well-known language."""
    found = _of_node(element, near=False)
    return found is not None and found[0] in _KNOWN


def normalised(name: str) -> str:
    """Return the name of a language in lower case, or an empty string for a name that means "no language"."""
    name = name.strip().lower()
    return "" if name in _NO_LANGUAGE else ALIASES.get(name, name)


def _inner(element: _Element) -> list[_Element]:
    """Return the elements inside code that can name its language. Those after line numbers come last."""
    return [*islice(element.iter("pre", "code"), 4), *islice(element.iter("span"), 1)]


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
    found = _of_class(name[:LONGEST_CLASS], near or node.tag in ("pre", "code")) if name else None
    return None if found is None else (found, "class")


@lru_cache(1_024)
def _of_class(name: str, near: bool) -> str | None:
    tokens = name.split()
    is_code = near or not _MARKS.isdisjoint(token.lower() for token in tokens)
    for token in tokens:
        found = _named(_parameters("", token))
        if found is None:
            continue
        prefix, value = found[1].lower(), found[2].lower()
        if value in _NATURAL or value in ("switcher", "selector", "menu", "wrapper", "inline", "toggle", "picker"):
            continue
        if prefix == "highlight" and (value in _NO_LANGUAGE or "notranslate" in tokens):
            return normalised(value)
        if prefix in _SURE and (near or prefix != "lang" or value in _KNOWN):
            return normalised(value)
        if value in _KNOWN and (prefix in _SURE or is_code or prefix == "source"):
            return normalised(value)
        if prefix == "highlight" and value in _HIGHLIGHTED:  # Sphinx, in a theme without "notranslate"
            return normalised(value)
    for token in tokens:
        lower = token.lower()
        if (
            lower in _KNOWN
            and is_code
            and (lower not in _SHARED or not _MARKS.isdisjoint(one.lower() for one in tokens))
        ):
            return normalised(lower)
        if lower in ("nohighlight", "no-highlight", "plaintext"):
            return ""
    return None
