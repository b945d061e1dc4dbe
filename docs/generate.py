"""Write the generated parts of the reference: settings, stats and reasons, from the code that has them.

`make reference` runs it. So the pages are also complete in the repository. A test fails if one of them is outdated.
Sphinx itself reads docstrings and the help of commands when it builds the site.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from dataclasses import Field, fields
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from scrapy_dripper import FallbackReason
from scrapy_dripper.checks import LONGEST
from scrapy_dripper.config import PREFIX, Config
from scrapy_dripper.crawl.stats import PREFIX as STAT
from scrapy_dripper.crawl.stats import STATS

REFERENCE = Path(__file__).parent / "reference"


def settings(page: str) -> str:
    """Return settings.md with its table, and with the line of facts below the heading of each setting."""
    options = {PREFIX + option.name.upper(): option for option in fields(Config)}
    rows = [
        f"| [`{name}`](#{name.lower()}) | `{default(option)}` | {'•' if option.metadata['per_request'] else ''} "
        f"| {in_code(option.metadata['doc'])} |"
        for name, option in options.items()
    ]
    page = replaced(page, "settings", ["| setting | default | request | |", "|---|---|:-:|---|", *rows])
    for name, option in options.items():
        per_request = "yes" if option.metadata["per_request"] else "no"
        facts = f"*{expected(option)} · default `{default(option)}` · request: {per_request}*"
        # All lines to the next empty one: an editor may have wrapped the old facts.
        before, heading, section = page.partition(f"\n## {name}\n")
        if not heading:
            raise ValueError(f"settings.md has no section for {name}")
        page = before + heading + facts + "\n" + re.sub(r"\A(?:.+\n)*", "", section)
    return page


def stats(page: str) -> str:
    """Return stats.md with its tables of stats and of reasons."""
    rows = [f"| `{STAT}{name}` | {meaning} |" for name, meaning in STATS.items()]
    page = replaced(page, "stats", ["| stat | counts |", "|---|---|", *rows])
    reasons = [f"| `{value}` | {meaning} |" for value, meaning in meanings(FallbackReason).items()]
    return replaced(page, "reasons", ["| reason | |", "|---|---|", *reasons])


PAGES = {"settings.md": settings, "stats.md": stats}


def default(option: Field[Any]) -> str:
    """Return the default of an option as a Python literal, with digit groups in large numbers."""
    large = isinstance(option.default, int) and option.default >= 10_000
    return f"{option.default:_}" if large else repr(option.default).replace("'", '"')


def expected(option: Field[Any]) -> str:
    """Return what an option takes, in the words of the error message for a wrong value."""
    check = option.metadata["check"]
    try:
        check(object())
    except ValueError as error:
        takes = in_code(str(error)).replace(
            f" of at most {LONGEST:,} characters", ""
        )  # This limit applies to all options.
    try:
        return takes if check(None) is not None else f"{takes}, or `None`"
    except ValueError:
        return takes


def in_code(text: str) -> str:
    """Return a line of documentation as Markdown, with quoted values and settings as code."""
    return re.sub(rf"'(\w+)'|\b({PREFIX}\w+)", lambda match: f'`"{match[1]}"`' if match[1] else f"`{match[2]}`", text)


def meanings(kind: type[Enum]) -> dict[str, str]:
    """Return the docstrings of the members of an enum, by their values."""
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for member, doc in pairwise(body.body):
        if isinstance(member, ast.Assign) and isinstance(doc, ast.Expr):
            text = " ".join(ast.literal_eval(doc.value).split())
            found[ast.literal_eval(member.value)] = text.replace("``", "`")
    return found


def replaced(page: str, name: str, lines: Iterable[str]) -> str:
    """Return a page with the lines between the two marks of a name replaced."""
    text = "\n".join(lines)
    begin, end = f"<!-- generated: {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = page.split(begin)
    return f"{before}{begin}{text}{end}{rest.split(end)[1]}"


def main() -> None:
    """Write all pages."""
    for name, write in PAGES.items():
        path = REFERENCE / name
        path.write_text(write(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
