"""Clean the LaTeX of pages for Markdown: remove comments, delimiters and blank lines."""

from __future__ import annotations

import re

# The lookbehind makes white space match from its beginning only, and not from each of its characters.
_comment = re.compile(r"(?<!\\)%[^\n]*(?:\n[ \t]*|\Z)").sub
_cdata = re.compile(r"(?:%\s*|(?<!\s)\s+)?<!\[CDATA\[\s*|(?:(?<!\s)\s+)?(?:%\s*)?\]\]>").sub
_blank_lines = re.compile(r"(?:(?<![ \t\r])[ \t\r]+)?\n\s*").sub
_styled = re.compile(r"\{\s*\\(?:displaystyle|textstyle)\b(.*)\}", re.DOTALL).fullmatch
_DELIMITED = (
    ("\\(", "\\)", False), ("\\[", "\\]", True), ("$$", "$$", True), ("$", "$", False), ("[tex]", "[/tex]", True),
    ("[itex]", "[/itex]", False),
)  # fmt: skip


def clean(source: str, wikipedia: bool = False) -> str:
    """Return LaTeX without comments and blank lines and, with ``wikipedia``, without the style that Wikipedia adds."""
    tex = source.replace("\r\n", "\n").replace("\xa0", " ").replace("\u200b", "")
    if "<![" in tex:
        tex = _cdata("", tex)
    if "%" in tex and "\n" in tex:
        tex = _comment(_last_comment, tex)
    if "\n" in tex:
        tex = _blank_lines("\n", tex)
    tex = tex.strip()
    if wikipedia:
        found = _styled(tex)
        if found and _whole(tex):
            tex = found[1].strip()
    return without_open_end(tex)


def _last_comment(comment: re.Match[str]) -> str:
    """Return the replacement for a comment. Without a following line it is kept, as it may just be a percent sign."""
    return "" if "\n" in comment[0] else comment[0]


def without_open_end(tex: str) -> str:
    """Return LaTeX without a backslash, or an escaped space, at its end."""
    tex = tex.strip()
    while (len(tex) - len(tex.rstrip("\\"))) % 2:
        tex = tex[:-1].rstrip()
    return tex


def undelimited(tex: str) -> tuple[str, bool | None]:
    """Return LaTeX without its delimiters, and whether they are those of a display formula; None without delimiters."""
    for opening, closing, display in _DELIMITED:
        if tex.startswith(opening) and tex.endswith(closing) and len(tex) >= len(opening) + len(closing):
            inner = tex[len(opening) : -len(closing)]
            plain = inner.replace("\\$", "") if opening[0] == "$" else inner
            if opening not in plain and closing not in plain:
                return without_open_end(inner), display
    return tex, None


def _whole(tex: str) -> bool:
    """Return True if the last brace closes the first."""
    depth = 0
    escaped = False
    for i, char in enumerate(tex):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and i < len(tex) - 1:
                return False
    return depth == 0
