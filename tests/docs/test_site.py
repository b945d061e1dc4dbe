"""The documentation as a whole: links resolve, generated parts match the code, and forms are well formed.

The content of single pages is tested with their subject, for example in ``tests/crawl/test_docs.py``.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from scrapy_dripper.checks import FALLBACKS, METHODS
from scrapy_dripper.config import Config

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/scrapy-dripper/scrapy-dripper"
FILES = re.compile(
    rf"{REPOSITORY}/(?:blob|tree)/main/|https://raw\.githubusercontent\.com/scrapy-dripper/scrapy-dripper/main/"
)
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.md"),
        ROOT / "lab" / "README.md",
        *(ROOT / name for name in ("benchmarks/README.md", "models/tagger/README.md", "tests/structured/README.md")),
    ]
)
MARKDOWN = MarkdownIt().enable("table")


def loaded(name: str) -> ModuleType:
    """Return a script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tokens(page: Path) -> Iterator[Token]:
    """Return the tokens of a page, including inline tokens."""
    for token in MARKDOWN.parse(page.read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def links(page: Path) -> list[str]:
    """Return the targets of the links and pictures of a page."""
    found = [token.attrGet("href") or token.attrGet("src") for token in tokens(page)]
    return [str(target) for target in found if target]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    found: set[str] = set()
    parsed = MARKDOWN.parse(page.read_text(encoding="utf-8"))
    for opening, inline in pairwise(parsed):
        if opening.type == "heading_open":
            found.add(slug("".join(child.content for child in inline.children or ())))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """The files and headings that are linked to exist."""
    wrong = []
    for target in links(page):
        inside = FILES.match(target)
        if re.match(r"[a-z]+:", target) and not inside:
            continue
        path, _, anchor = (target[inside.end() :] if inside else target).partition("#")
        file = (ROOT if inside else page.parent) / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.resolve())):
            wrong.append(target)
    assert wrong == []


def test_links_of_the_readme_are_absolute() -> None:
    """The package index shows the README without the files that it links to."""
    assert [target for target in links(ROOT / "README.md") if not target.startswith("https://")] == []


@pytest.mark.parametrize("name", ["settings.md", "stats.md"])
def test_the_reference_is_that_of_the_code(name: str) -> None:
    """`make reference` would change nothing."""
    generate = loaded("generate")
    page = (generate.REFERENCE / name).read_text(encoding="utf-8")

    assert generate.PAGES[name](page) == page


def test_every_fallback_is_described() -> None:
    """A new method has a row in the table of fallbacks, and a sentence about what it does."""
    rows, methods = ((ROOT / "docs" / "reference" / name).read_text("utf-8") for name in ("fallback.md", "methods.md"))

    assert set(FALLBACKS) <= set(re.findall(r'^\| `"(\w+)"`', rows, re.M))
    assert [name for name in METHODS if not re.search(rf'[`"]{name}["`]', methods)] == []


def test_every_setting_is_in_a_group() -> None:
    """A new option has to be put into one."""
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"^(?:### |\| `)DRIPPER_(\w+)", page, re.M)) == sorted(
        one.name.upper() for one in fields(Config)
    )


def test_every_page_is_in_the_menu() -> None:
    """Readers can get to every page."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([a-z][\w/-]+)$", "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", index, re.S)), re.M)

    on_disk = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(on_disk - {"index"})


def test_the_citation_is_of_this_version() -> None:
    """The citation names the current version."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    (version,) = re.findall(r'^version = "(.+)"$', project, re.M)
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.M)
    assert json.dumps(REPOSITORY) in citation
