"""Pages with the markup of real generators have the right Markdown.

README.md in this folder describes the pages. The measures of :mod:`tests.structured.measures` are tested here as well,
because a wrong measure proves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.output.forms import forms_of
from tests.structured.features.checks import BASE_URL, FEATURES, Feature

HERE = Path(__file__).parent
PAGES = sorted(page for page in HERE.glob("*/*.html") if page.with_suffix(".md").exists())


def written(html: str) -> str:
    """Return our Markdown of a page whose content is all main."""
    return forms_of(f"<html><body>{html}</body></html>", BASE_URL).markdown


def name(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page(page: Path) -> None:
    """The Markdown equals the gold, to the character."""
    gold = page.with_suffix(".md").read_text(encoding="utf-8")
    assert written(page.read_text(encoding="utf-8")) + "\n" == gold


def test_set_is_large_enough() -> None:
    """There are at least 80 pages, each with its gold."""
    assert len(PAGES) >= 80
    assert {page.stem for page in HERE.glob("*/*.md")} == {page.stem for page in PAGES}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_feature(feature: Feature) -> None:
    """Every row of the table of structures passes."""
    ours = written(feature.html)
    assert feature.verdict(ours) == "yes", ours


def test_every_feature_has_a_page() -> None:
    """There are 55 rows, each with an HTML file."""
    assert len(FEATURES) == 55
    assert {feature.name for feature in FEATURES} == {page.stem for page in (HERE / "features").glob("*.html")}


def test_documented_table_is_this_one() -> None:
    """The table of the results has a row for each feature, and our output is right in all of them."""
    lines = (HERE.parents[1] / "benchmarks/results/structures.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    first = next(number for number, row in enumerate(rows) if row[0] == FEATURES[0].title)
    documented = rows[first : first + len(FEATURES)]
    assert [row[:2] for row in documented] == [[feature.title, "yes"] for feature in FEATURES]


@pytest.mark.parametrize(
    ("markdown", "verdict"),
    [
        ("", "no"),
        ("The sum x+1 is odd.", "no"),
        ("The sum x+1$x+1$ is odd.", "no"),
        ("The sum $x+2$ is odd.", "no"),
        ("The sum\n\n$x+1$\n\nis odd.", "yes"),
        (r"The sum \\(x+1\\) is odd.", "yes"),
    ],
)
def test_checks_see_what_is_wrong(markdown: str, verdict: str) -> None:
    """A check fails if a formula is missing, doubled or wrong, and accepts every way to write it."""
    feature = next(feature for feature in FEATURES if feature.name == "katex-inline")
    assert feature.verdict(markdown) == verdict
