"""Code, formulas and tables of Markdown, as WebMainBench's toolkit finds them.

The toolkit (https://github.com/opendatalab/WebMainBench) compares these parts of two texts. Scores can only be compared
with published ones if the parts are found in the same way. So its peculiarities are kept: an indented list does not
count as code, two prices in dollars count as a formula, and only the first of several tables is compared. Unlike in the
toolkit, all searches take linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bs4 import BeautifulSoup, Tag

_fences = re.compile(r"```[\s\S]*?```").findall
_without_fences = re.compile(r"```[\s\S]*?```").sub
_without_inline_code = re.compile(r"`[^`]*`").sub
_no_code = re.compile(r"[-•*]\s|\d{1,20}\.\s").match
_sums = re.compile(r"\$[\d,]|\b(?:million|billion|thousand)\b", re.IGNORECASE).search
_rule_cell = re.compile(r":?-{3,}:?").fullmatch
_rule_row = re.compile(r"[\s|:-]+").fullmatch

_two_dollars = re.compile(r"(?<!\\)\$\$")
_dollar = re.compile(r"(?<!\\)\$")
_opens_block = re.compile(r"(?<!\\)\\\[")
_closes_block = re.compile(r"(?<!\\)\\\]")
_opens_inline = re.compile(r"(?<!\\)\\\(")
_closes_inline = re.compile(r"(?<!\\)\\\)")
_DELIMITERS = (
    (_two_dollars, _two_dollars),
    (_opens_block, _closes_block),
    (_dollar, _dollar),
    (_opens_inline, _closes_inline),
)
"""Opening and closing marks of formulas, in the order of the search. A formula in ``$$`` is found only once, because
the search for a single ``$`` finds two empty formulas there.
"""


def code(text: str) -> str:
    """Return the code blocks, one after the other: first those in fences of backticks, then the indented ones."""
    fenced = ("\n".join(block.split("\n")[1:-1]) for block in _fences(text))
    return "\n".join(block for block in (*fenced, *_indented_code(text)) if block)


def formulas(text: str) -> str:
    """Return the formulas outside of code, one on each line, without their marks and sorted by the kind of marks."""
    prose = _without_inline_code("", _without_fences("", text))
    found = (one.strip() for opening, closing in _DELIMITERS for one in _between(prose, opening, closing))
    return "\n".join(filter(None, found))


def tables(text: str) -> list[str]:
    """Return the source of the tables: first the HTML tables that are not inside another table, then the Markdown
    tables.
    """
    found: list[str] = []
    if "<table" in text.lower():
        outer = BeautifulSoup(text, "html.parser").find_all("table")
        found += [str(table) for table in outer if not table.find_parent(["td", "tr", "tbody", "table"])]
    rows: list[str] = []
    for line in [*text.split("\n"), ""]:
        if "|" in line:
            rows.append(line)
            continue
        if len(rows) >= 2 and _is_rule(rows[1]):
            found.append("\n".join(rows))
        rows = []
    return found


def first_table(written: Sequence[str]) -> Tag | None:
    """Return the table that the toolkit compares, given all tables of a text; None if there is none.

    If there is an HTML table, it is the first of these. Otherwise, it has the rows of all Markdown tables.
    """
    html = "\n".join(written)
    if "<table" not in html.lower():
        html = html_of_rows(html)
    found = BeautifulSoup(html, "html.parser").find("table")
    return found if isinstance(found, Tag) else None


def html_of_rows(markdown: str) -> str:
    """Return a Markdown table as HTML: empty cells and rules are left out, and the first row is the header."""
    rows: list[str] = []
    for line in map(str.strip, markdown.split("\n")):
        if "|" in line and not _rule_row(line):
            tag = "td" if rows else "th"
            rows.append("".join(f"<{tag}>{cell.strip()}</{tag}>" for cell in line.split("|") if cell.strip()))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows if row)}</table>" if rows else ""


def table_text(table: Tag | None) -> str:
    """Return the cells of a table, separated by spaces, with a line for each row that has text."""
    if table is None:
        return ""
    rows = (" ".join(cell.get_text(strip=True) for cell in row.find_all(["th", "td"])) for row in table.find_all("tr"))
    return "\n".join(filter(None, rows))


def _is_rule(line: str) -> bool:
    return all(not cell.strip() or _rule_cell(cell.strip()) for cell in line.split("|"))


def _between(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[str]:
    start = opening.search(text)
    while start and (end := closing.search(text, start.end())):
        yield text[start.end() : end.start()]
        start = opening.search(text, end.end())


def _indented_code(text: str) -> Iterator[str]:
    """Yield the blocks of two or more indented lines after a blank line, without their indentation.

    Blocks with a line that looks like an item of a list, or like a sum of money, are left out.
    """
    lines = text.split("\n")
    first = 1  # The first line that can be the blank line: there must be a line before it.
    while first < len(lines):
        if lines[first].strip():
            first += 1
            continue
        end = first
        while end < len(lines) and not lines[end].strip():
            end += 1
        # Blank lines may be indented too. They then belong to the block if it would be too short without them.
        start = next((k for k in range(end, first, -1) if all(map(_is_indented, _two(lines, k)))), None)
        if start is None:
            first = end
            continue
        stop = start
        while stop < len(lines) and _is_indented(lines[stop]):
            stop += 1
        block = [line for line in lines[start:stop] if line.strip()]
        if len(block) > 1 and not any(_no_code(line.strip()) or _sums(line.strip()) for line in block):
            yield "\n".join(line[1:] if line.startswith("\t") else line[4:] for line in block)
        # An empty line ends a block and cannot begin the next one. So there must be two empty lines between blocks.
        first = stop + 1 if stop < len(lines) and not lines[stop] else stop


def _two(lines: Sequence[str], k: int) -> tuple[str, str]:
    return (lines[k], lines[k + 1]) if k + 1 < len(lines) else ("", "")


def _is_indented(line: str) -> bool:
    return line.startswith(("    ", "\t"))
