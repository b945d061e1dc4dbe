"""The figures of the documentation are those of the committed results that they name.

A *record* is a file of ``benchmarks/results``, the model card, or a section of the page of results. A passage that
links to records has figures of these alone. After a new run, this test names the passages that have to follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_site import FILES, MARKDOWN, PAGES, ROOT, slug

RESULTS = ROOT / "benchmarks" / "results"
CARD = ROOT / "models" / "tagger" / "README.md"
SECTIONS = (ROOT / "docs" / "internals" / "results.md", ROOT / "docs" / "guides" / "bad-pages.md")
"""Pages whose sections are records: one names files itself, the other shows the output of a command in a test."""
figures = re.compile(r"(?<![\w.,])(?:\d[\d,]*(?:\.\d+)*|\.\d+)(?![\d\w])").findall
numbers = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+").findall


def passages(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Return the text of each passage, without code, and the targets of its links.

    A passage is a paragraph, with the table before it. A cell that links to a record is a passage of its own.
    """
    table, inside = "", False
    for token in MARKDOWN.parse(page.read_text(encoding="utf-8")):
        inside = token.type != "table_close" and (inside or token.type == "table_open")
        if token.type == "inline":
            text = " ".join(child.content for child in token.children or () if child.type == "text")
            targets = [str(child.attrGet("href")) for child in token.children or () if child.type == "link_open"]
            if not inside:
                yield f"{table} {text}", targets
                table = ""
            elif any(record(page, target) for target in targets):
                yield text, targets
            else:
                table += f" {text}"


def record(page: Path, target: str) -> str:
    """Return the text of a record that a link of a page leads to, and an empty text for any other link."""
    path, _, anchor = target.partition("#")
    inside = FILES.match(path)
    file = ((ROOT / path[inside.end() :]) if inside else (page.parent / path)).resolve()
    if file == CARD or (file.parent == RESULTS and file.is_file()):
        return file.read_text(encoding="utf-8")
    if file not in SECTIONS or file == page or not anchor:
        return ""
    parts = re.split(r"^## (.+)\n", file.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(map(slug, parts[1::2]), parts[2::2], strict=True)).get(anchor, "")


def is_in(figure: str, text: str) -> bool:
    """Return True if a text has a figure, with more digits or as many, as a share or in percent."""
    if figure.count(".") > 1:
        return figure in text
    value, half = float(figure.replace(",", "")), 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 1e-9
    known = [float(number.replace(",", "")) for number in numbers(text)]
    return any(abs(value - factor * one) <= half for one in known for factor in (1, 100, 0.01))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_figures_are_those_of_the_records_that_a_passage_names(page: Path) -> None:
    """If a figure is of something else, it needs a paragraph of its own."""
    wrong = {}
    for text, targets in passages(page):
        records = "\n".join(filter(None, (record(page, target) for target in targets)))
        missing = [figure for figure in figures(text) if records and not is_in(figure, records)]
        if missing:
            wrong[text.strip()[:60]] = missing
    assert wrong == {}


def test_every_decimal_of_the_readme_has_a_record() -> None:
    """Nothing is claimed that no file shows."""
    page = ROOT / "README.md"
    bare = [text for text, targets in passages(page) if not any(record(page, target) for target in targets)]

    assert [found for text in bare for found in figures(text) if re.fullmatch(r"\d*\.\d+", found)] == [
        "3.10",
        "3.13",
        "2.14",
    ]


def test_every_file_of_results_is_named_by_a_page() -> None:
    """A file that no page names is not what any figure is of."""
    named = {Path(target).name for page in PAGES for _, targets in passages(page) for target in targets}

    assert {file.name for file in RESULTS.iterdir()} <= named
