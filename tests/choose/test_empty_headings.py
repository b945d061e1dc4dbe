"""A heading without content goes with it."""

from __future__ import annotations

import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.testing import FakeEngine

TEXT = "<h1>Baskets</h1><p>Weave the rods."


@pytest.mark.parametrize(
    ("markup", "markdown"),
    [
        ("<h2>Related</h2><ul><li><a href=/a>- One</a><li><a href=/b>- Two</a></ul>", ""),
        ("<h2>Reviews</h2><p>- Log in<h2>Tools</h2><p>A knife.", "## Tools\n\nA knife."),
        ("<h2>Reviews</h2><h3>Of others</h3><p>- Log in", ""),
        ("<h2>Reviews</h2><p>- Log in<h3>Of Ann</h3><p>Good.", "## Reviews\n\n### Of Ann\n\nGood."),
        ("<h2>A plan</h2><img src=/plan.png width=600 height=400><p>- Log in", "## A plan"),
        ("<h2><a href=/all>All of them</a></h2><p>- Log in", "## [All of them](https://example.org/all)"),
        ("<h2>Part two</h2><h2>Part three</h2><p>The end.", "## Part two\n\n## Part three\n\nThe end."),
        ("<h2>Hidden</h2><p hidden>- Log in", "## Hidden"),
        (
            "".join(f"<h2>Card {number}</h2><p>- More" for number in range(4)),
            "\n\n".join(f"## Card {number}" for number in range(4)),
        ),
    ],
    ids=[
        "the last",
        "before another",
        "with a heading",
        "with a part",
        "image",
        "link",
        "no content",
        "hidden",
        "cards",
    ],
)
def test_a_heading_goes_with_its_content(markup: str, markdown: str) -> None:
    engine = FakeEngine(main=lambda text: not text.startswith("-"))
    [page] = Extractor(engine=engine).extract([Document(TEXT + markup, url="https://example.org/")])

    assert page.markdown is not None
    kept = page.markdown.removeprefix("# Baskets\n\nWeave the rods.").strip()
    assert kept.replace("\n\n![](https://example.org/plan.png)", "") == markdown
