"""A heading comes and goes with its content."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.choose.headings import with_headings
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.testing import page as page_of

TEXT = "<h1>Baskets</h1><p>Weave the rods."


@pytest.mark.parametrize(
    ("markup", "markdown"),
    [
        ("<h2>Related</h2><ul><li><a href=/a>- One</a><li><a href=/b>- Two</a></ul>", ""),  # the last
        ("<h2>Reviews</h2><p>- Log in<h2>Tools</h2><p>A knife.", "## Tools\n\nA knife."),  # before another
        ("<h2>Reviews</h2><h3>Of others</h3><p>- Log in", ""),  # with a heading
        ("<h2>Reviews</h2><p>- Log in<h3>Of Ann</h3><p>Good.", "## Reviews\n\n### Of Ann\n\nGood."),  # with a part
        ("<h2>A plan</h2><img src=/plan.png width=600 height=400><p>- Log in", "## A plan"),
        ("<h2><a href=/all>All of them</a></h2><p>- Log in", "## [All of them](https://example.org/all)"),
        ("<h2>Part two</h2><h2>Part three</h2><p>The end.", "## Part two\n\n## Part three\n\nThe end."),
        ("<h2>Hidden</h2><p hidden>- Log in", "## Hidden"),
        ("<h3>Leave a Reply</h3>", ""),  # above a form that is not there
        ("<h3>Kommentar schreiben</h3><form><textarea></textarea></form>", ""),
        ("<h3>Leave a comment</h3><p>Press the key C.", "### Leave a comment\n\nPress the key C."),
        (
            "".join(f"<h2>Card {number}</h2><p>- More" for number in range(4)),
            "\n\n".join(f"## Card {number}" for number in range(4)),
        ),
    ],
)
def test_a_heading_goes_with_its_content(markup: str, markdown: str) -> None:
    engine = FakeEngine(main=lambda text: not text.startswith("-"))
    [page] = Extractor(engine=engine).extract([Document(TEXT + markup, url="https://example.org/")])

    assert page.markdown is not None
    kept = page.markdown.removeprefix("# Baskets\n\nWeave the rods.").strip()
    assert kept.replace("\n\n![](https://example.org/plan.png)", "") == markdown


@pytest.mark.parametrize(
    ("section", "probability", "kept"),
    [
        ("<p>- Three leeks.<p>- A pot.", 0.4, True),
        ("<p>- Three leeks.<p>- A pot.", 0.1, False),
        ("<button>1x</button><button>2x</button><p>- Three leeks.", 0.4, True),
        ("<p>- Three leeks.<p>Log in and say what you think of this soup.", 0.4, False),
        ("", 0.4, False),
    ],
)
def test_a_section_keeps_its_heading(section: str, probability: float, kept: bool) -> None:
    page = page_of(f"<h1>- Leek soup</h1><div><p>- It is thick.<h3>What goes in</h3>{section}</div><p>- The end.")
    main = np.array([text.startswith("-") for text in page.blocks.text])
    p = np.where(main, 0.9, probability).astype(np.float32)

    labels = with_headings(ScoredPage(page, Labels(p)), main)

    assert ("What goes in" in page.text_of(labels)) == kept
