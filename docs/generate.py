"""Write the generated parts of the reference: settings, stats and reasons, from the code that has them.

`make reference` runs it. So the pages are also complete in the repository. A test fails if one of them is outdated.
Sphinx itself reads docstrings and the help of commands when it builds the site.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import Field, fields
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from scrapy_dripper import FallbackReason
from scrapy_dripper.checks import LONGEST_VALUE
from scrapy_dripper.config import PREFIX, Config
from scrapy_dripper.crawl.stats import PREFIX as STAT
from scrapy_dripper.crawl.stats import STATS

REFERENCE = Path(__file__).parent / "reference"


MORE = {
    "engine": "[GPU](../guides/gpu.md), [methods](methods.md), "
    "[an engine of your own](../guides/library.md#an-engine-of-your-own)",
    "batch_size": "[batches](../guides/addon.md#batches-and-memory)",
    "timeout": "[worker processes](../guides/workers.md#when-it-does-not-answer)",
    "processes": "[worker processes](../guides/workers.md), [without workers](../guides/workers.md#without-workers)",
    "favor": "[precision and recall](page-types.md#precision-and-recall)",
    "comments": "[below](#readers-comments)",
    "title": "[the headline](../internals/design.md#the-headline)",
    "rules": "[rules](../guides/rules.md)",
    "sites": "[what a site repeats](../guides/site-memory.md), [templates](../guides/templates.md)",
    "fallback": "[fallbacks](fallback.md)",
    "methods": "[R^4](methods.md#r4), [SORE](methods.md#sore)",
    "empty": "[fallbacks](fallback.md#nothing-is-main)",
    "limits": "[the largest pages](../internals/pages.md#limits)",
    "retry_shells": "[JavaScript pages](../guides/javascript.md#which-pages-need-it)",
    "markdown": "[Markdown](markdown.md), [front matter](../guides/rag.md#front-matter), [the types](content-list.md)",
    "chunks": "[how the content is cut](../guides/rag.md#how-the-content-is-cut)",
    "items": "[feeds](../guides/feeds.md)",
    "fill_by_name": "[which items](../guides/addon.md#which-items)",
    "content_field": "[the content list](content-list.md)",
    "chunks_field": "[chunks](../guides/rag.md#chunks)",
    "metadata_field": "[metadata](metadata.md)",
    "meta_field": "[below](#the-dict-about-an-extraction)",
    "warc": "[archives](../guides/archives.md)",
    "replay": "[replaying](../guides/archives.md#replaying-a-crawl)",
    "report": "[the pages of a crawl](../guides/inspect.md#the-pages-of-a-crawl)",
}
"""Where to read more about an option."""
EVERY_FIELD = "With `None`, no setting names such a field. A request can set each of them."


def settings(page: str) -> str:
    """Return settings.md with its groups of settings."""
    options = {option.name: option for option in fields(Config)}
    lines: list[str] = []
    for heading, names in groups():
        lines += [f"## {heading}", ""]
        for name in names:
            if not name.endswith("_field"):
                lines += section(options[name])
        if named := [name for name in names if name.endswith("_field")]:
            lines += [*wrapped(f"Each of these settings takes {expected(options[named[0]])}. {EVERY_FIELD}"), ""]
            lines += ["| setting | default | value of the field |", "|---|---|---|"]
            lines += [*map(row, (options[name] for name in named)), ""]
    return replaced(page, "settings", lines[:-1])


def groups() -> Iterator[tuple[str, list[str]]]:
    """Yield the headings of settings.md, each with the names of its options: the comments in the class have them."""
    _, *parts = re.split(r"^    # (.+)\n(?=    \w+:)", inspect.getsource(Config), flags=re.M)
    for heading, part in zip(parts[::2], parts[1::2], strict=True):
        yield heading, re.findall(r"^    (\w+): .+ = _\w+\(", part, re.M)


def section(option: Field[Any]) -> list[str]:
    """Return the part of settings.md about an option: its facts, what it does, and its keys if it is a dict."""
    check = option.metadata["check"]
    keys = fields(check) if isinstance(check, type) else ()
    facts = "a dict" if keys else f"{expected(option)} · default `{default(option)}`"
    more = f" More: {MORE[option.name]}." if option.name in MORE else ""
    facts += " · •" if option.metadata["per_request"] else ""
    lines = [f"### {PREFIX}{option.name.upper()}", *wrapped(f"*{facts}.* {in_code(option.metadata['doc'])}{more}")]
    if keys:
        lines += ["", "| key | default | |", "|---|---|---|"]
        lines += [f'| `"{key.name}"` | `{default(key)}` | {in_code(key.metadata["doc"])} |' for key in keys]
    return [*lines, ""]


def wrapped(text: str) -> list[str]:
    """Return a paragraph in lines."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def row(option: Field[Any]) -> str:
    """Return the row of a setting that names a field."""
    value = in_code(option.metadata["output"]["what"])
    more = f". More: {MORE[option.name]}" if option.name in MORE else ""
    return f"| `{PREFIX}{option.name.upper()}` | `{default(option)}` | {value}{more} |"


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
            f" of at most {LONGEST_VALUE:,} characters", ""
        )  # This limit applies to all options.
    try:
        return takes if check(None) is not None else f"{takes}, or `None`"
    except ValueError:
        return takes


def in_code(text: str) -> str:
    """Return a line of documentation as Markdown, with quoted values and settings as code."""
    code = rf"'(\w+)'|\b({PREFIX}\w+|scrapy_dripper\.\w+)"
    return re.sub(code, lambda match: f'`"{match[1]}"`' if match[1] else f"`{match[2]}`", text)


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
