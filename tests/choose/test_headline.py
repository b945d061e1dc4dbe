"""The headline is the heading that names the main content. It comes first in the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scrapy_dripper.choose.headings import headline, with_headline
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import Page
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.testing import page as page_of

BODY = "<p>In winter the bees of a hive hold close together, eat honey and shiver with their wings.</p>"
NAMED = '<meta property="og:title" content="Warm bees">'
NEXT = "<p>The heat is kept in the middle of the cluster, where the queen sits, and all the bees change places.</p>"


def page(html: str, **options: Any) -> Page:
    return page_of(html, "https://www.hive.example/posts/warm", config=Config(**options))


def named(html: str) -> str | None:
    """Return the headline of a page on which the blocks with one of two words are main."""
    cut = page(html)
    labels = np.array(["winter" in text or "cluster" in text for text in cut.blocks.text])
    found = headline(cut, labels)
    return None if found is None else cut.blocks.text[found]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (f"<h1>How bees keep warm</h1>{BODY}", "How bees keep warm"),
        (
            f"<title>How bees keep warm - Hive</title><h1>Hive</h1><h2>How bees keep warm</h2>{BODY}",
            "How bees keep warm",
        ),
        (
            f"<title>How bees keep warm</title><h2>Read too: wasps</h2><h3>How bees keep warm</h3>{BODY}",
            "How bees keep warm",
        ),
        # nearest above the text, not the copy in a bar that follows the reader
        (f"<title>Warm bees</title><div><h2>Warm bees</h2></div><h1>Warm bees</h1>{BODY}", "Warm bees"),
        (f'<meta property="og:title" content="Warm bees"><h2>Warm bees</h2>{BODY}', "Warm bees"),
        (
            '<script type="application/ld+json">{"@type": "Article", "headline": "Warm &amp; \\u0062usy bees"}</script>'
            f"<h2>Warm &amp; busy bees</h2>{BODY}",
            "Warm & busy bees",
        ),
        (f"<title>How bees keep warm in winter | Hive</title><h1>How bees keep warm</h1>{BODY}", "How bees keep warm"),
        (
            f"<title>Bienen im Winter – Imkerei</title><div role=heading>Bienen im Winter</div>{BODY}",
            "Bienen im Winter",
        ),
        (f"<title>蜜蜂如何取暖_蜂巢网</title><h1>蜜蜂如何取暖</h1>{BODY}", "蜜蜂如何取暖"),
        (f"<title>Warm bees</title>{BODY}{NEXT}<h2>Warm bees</h2>", None),  # not above the text
        # the site's name, by its link to the front page, by the head and by the host
        (f"<h1><a href=/>Bee news</a></h1>{BODY}", None),
        (f'<meta property="og:site_name" content="Bee news"><h1>Bee News</h1>{BODY}', None),
        (f"<title>Warm bees - Hive</title><h1>Hive</h1>{BODY}", None),
        # the site's name is the last part of the title, or a piece of it; a book has one on each page
        (f"<title>Loops - The Hive Book</title><h1>The Hive Book</h1><h2>Loops</h2>{BODY}", "Loops"),
        (f"<title>Loops - The whole Hive Book</title><h1 class=menu-title>The whole Hive Book</h1>{BODY}", None),
        (f"<title>All the warm bees | Example official blog</title><h1>Official blog</h1>{BODY}", None),
        (f"<title>Techlog: How bees keep warm</title><h2>How bees keep warm</h2>{BODY}", "How bees keep warm"),
        (f"<title>Git - Loops</title><h1>3.1 Git Loops</h1><h2>Loops</h2>{BODY}", "3.1 Git Loops"),
        # of forums, above the subject of the first post
        (
            f"<title>Loops of bees</title><h1>Thread: Loops of bees</h1><h2>Loops of bees</h2>{BODY}",
            "Thread: Loops of bees",
        ),
        # what separates the parts of a title may stand in a name, whichever part the site's is
        (
            f"<title>The new hive: how warm? - The Old Bee Keepers Club</title><h1>The Old Bee Keepers Club</h1>"
            f"<h2>The new hive: how warm?</h2>{BODY}",
            "The new hive: how warm?",
        ),
        (f"<title>Hive • View topic - Year 2: Warm!</title><h2>Year 2: Warm!</h2>{BODY}", "Year 2: Warm!"),
        # the name goes on with who wrote or sells it; an only h1 comes before such a heading, and so does a whole name
        (f"<title>How bees stay warm by Ada Example</title><h2>How bees stay warm</h2>{BODY}", "How bees stay warm"),
        (f"<title>How bees stay warm by Ada Example</title><h2>How bees</h2>{BODY}", None),
        (
            f"<title>Old bees of the hill, wild</title><h1>Wild, in hives</h1><h2>Old bees of</h2>{BODY}",
            "Wild, in hives",
        ),
        # a line that is no heading, with the words of the title; not of breadcrumbs, nor few words
        (f"<title>How bees keep warm - Hive</title><div>How bees keep warm</div>{BODY}", None),
        (
            f"<title>How bees of hives keep warm - Hive</title><b>How bees of hives keep warm</b>{BODY}",
            "How bees of hives keep warm",
        ),
        (f"<title>How bees of hives keep warm</title><a href=/p>How bees of hives keep warm</a>{BODY}", None),
        (
            f"<title>How bees of hives keep warm</title><h1>Best of</h1><p>How bees of hives keep warm</p>{BODY}",
            "How bees of hives keep warm",
        ),
        # a page that is a <nav>, or hidden, as a whole
        (f"<title>Bees</title><nav><h1>Warm bees in winter</h1>{BODY}</nav>", "Warm bees in winter"),
        (
            f"<title>Bees</title><div style='display:none'><h1>Warm bees in winter</h1>{BODY}</div>",
            "Warm bees in winter",
        ),
        # others' headings
        (f"<title>Warm bees</title><h2>How wasps live</h2>{BODY}", None),
        (f"<title>Warm bees</title><h1>How wasps live</h1><h1>How ants live</h1>{BODY}", None),
        (f"<title>Warm bees</title><aside><h2>Warm bees</h2></aside>{BODY}", None),
        (f"<title>Warm bees</title><h1 hidden>Warm bees</h1>{BODY}", None),
        # a script draws the headline, and an h1 that is not seen says it to search engines
        (f"{NAMED}<h1 hidden>Warm bees</h1><p>30 March</p>{BODY}", "Warm bees"),
        (f"{NAMED}<h1 hidden>Warm wasps</h1>{BODY}", None),
        (f"{NAMED}<h1 hidden>Warm bees</h1><p>Warm bees</p>{BODY}", None),
        (f"{NAMED}<footer><h1 hidden>Warm bees</h1></footer>{BODY}", None),
        (f"{NAMED}{BODY}<h1 hidden>Warm bees</h1>", None),
        (f"{BODY}<h1>How wasps live</h1>", None),
        ("<h1>Warm bees</h1><p>Nothing that is main.</p>", None),
        # what the metadata calls the page, and not the logo or the name of the book
        (f"{NAMED}<title>Warm bees</title><h1>Acme</h1>{BODY}", None),
        (f"{NAMED}<title>Acme | Warm bees</title><h1>Acme</h1>{BODY}", None),
        (f"{NAMED}<title>Acme | Warm bees</title><h1>Acme</h1><h2>Warm bees</h2>{BODY}", "Warm bees"),
        (f"<title>Tides</title><h1>The Sea</h1>{BODY}", "The Sea"),
    ],
)
def test_the_heading_that_names_the_content(html: str, expected: str | None) -> None:
    assert named(html) == expected


def test_of_breadcrumbs_and_heading_it_is_the_heading() -> None:
    cut = page(f"<title>Warm bees</title><nav><h1>Warm bees</h1></nav><h2>Warm bees</h2>{BODY}")

    assert headline(cut, np.array([False, False, True])) == 1


@pytest.mark.parametrize(
    ("between", "probability", "kept"),
    [
        ("<p>The bees of a hive do not sleep in winter, they shiver.</p>", 0.5, True),
        ("<p>“The bees of a hive do not sleep in winter, they shiver.”</p>", 0.5, True),
        ("<p>The bees of a hive do not sleep in winter, they shiver.</p>", 0.3, False),
        ("<p>They do not sleep.</p>", 0.5, False),
        ("<p>By a keeper of bees and a beekeeper, both of them of the hive</p>", 0.5, False),
        ("<ul><li>The bees of a hive do not sleep in winter, they shiver.</li></ul>", 0.5, False),
        ("<nav><p>The bees of a hive do not sleep in winter, they shiver.</p></nav>", 0.5, False),
    ],
)
@pytest.mark.parametrize("title", ["keep", "drop"])
def test_a_lead_stays_with_its_text(between: str, probability: float, kept: bool, title: str) -> None:
    html = f"<title>Warm bees</title><h1>Warm bees</h1><p>3 May</p>{between}<p>By A. B.</p>{BODY}"
    cut = page(html, title=title)
    p = np.array([0.2, 0.1, probability, 0.1, 0.9], dtype=np.float32)

    main = with_headline(ScoredPage(cut, Labels(p)), p > 0.8)

    assert main.tolist() == [title == "keep", False, kept, False, True]


STANDFIRST = "The bees of a hive do not sleep, but shiver, as a keeper has found out"


@pytest.mark.parametrize(
    ("description", "between", "kept"),
    [
        (STANDFIRST, f"<p>{STANDFIRST}</p>", True),
        (STANDFIRST, f"<h2>{STANDFIRST}.</h2>", True),
        (STANDFIRST[:40] + " …", f"<div>{STANDFIRST}</div>", True),  # descriptions are often cut off
        (f"{STANDFIRST} {STANDFIRST}", f"<p>{STANDFIRST}</p>", True),
        ("Our hive in pictures", f"<p>{STANDFIRST}</p>", False),
        ("", f"<h2 class=dek>{STANDFIRST}</h2>", True),  # by its name
        ("", f"<div class=post-subtitle><h3>{STANDFIRST}</h3></div>", True),
        ("", f"<p class='chapo x'>{STANDFIRST}</p>", True),
        ("", "<p class=dek>By A. B.</p>", False),
        ("", f"<nav><p class=dek>{STANDFIRST}</p></nav>", False),
        ("A. B., beekeeper", "<p>A. B., beekeeper</p>", False),  # an author, not a sentence
        ("How bees keep warm in winter", "<p>How bees keep warm in winter</p>", False),  # the headline once more
        (STANDFIRST, f"<nav><p>{STANDFIRST}</p></nav>", False),
        (STANDFIRST, f"<p><a href=/>{STANDFIRST}</a></p>", False),
    ],
)
def test_a_standfirst_is_what_the_head_says(description: str, between: str, kept: bool) -> None:
    """The model often mistakes it for a summary, with a probability near 0."""
    name = "How bees keep warm in winter"
    cut = page(f'<title>{name}</title><meta name=description content="{description}"><h1>{name}</h1>{between}{BODY}')
    p = np.array([0.9, 0.05, 0.9], dtype=np.float32)

    assert with_headline(ScoredPage(cut, Labels(p)), p > 0.8).tolist() == [True, kept, True]


def test_a_standfirst_that_occurs_twice_is_kept_once() -> None:
    """Some themes repeat it for narrow screens."""
    name = "How bees keep warm in winter"
    cut = page(
        f'<title>{name}</title><meta name=description content="{STANDFIRST}">'
        f"<h1>{name}</h1><p>{STANDFIRST}</p><div>{STANDFIRST}</div>{BODY}"
    )
    p = np.array([0.9, 0.2, 0.3, 0.9], dtype=np.float32)

    assert with_headline(ScoredPage(cut, Labels(p)), p > 0.8).tolist() == [True, True, False, True]


ARTICLE = (
    "<title>Warm bees - Hive</title><p>Home / Insects</p><p>A sure lead.</p><h1>Warm bees</h1><p>3 May</p>"
    + BODY
    + NEXT
)
P = np.array([0.5, 0.9, 0.1, 0.3, 0.9, 0.9], dtype=np.float32)


@pytest.mark.parametrize(
    ("title", "main"),
    [
        ("keep", [False, True, True, False, True, True]),  # what is unsure above it goes, what is sure stays
        ("drop", [True, True, False, False, True, True]),
    ],
)
def test_labels_with_and_without(title: str, main: list[bool]) -> None:
    labels = np.array([True, True, False, False, True, True])

    assert with_headline(ScoredPage(page(ARTICLE, title=title), Labels(P)), labels).tolist() == main
    assert labels.tolist() == [True, True, False, False, True, True]


@pytest.mark.parametrize(("above", "stays"), [("\u00a349.00", True), ("Now 12,50 \u20ac", True), ("Lamps", False)])
def test_a_price_above_the_headline_stays(above: str, stays: bool) -> None:
    cut = page(f"<title>Warm lamp</title><p>{above}</p><h1>Warm lamp</h1>{BODY}")
    found = with_headline(
        ScoredPage(cut, Labels(np.array([0.3, 0.5, 0.9], dtype=np.float32))), np.ones(3, dtype=np.bool_)
    )

    assert found.tolist() == [stays, True, True]


@pytest.mark.parametrize("profile", ["native", "v1.0"])
def test_every_engine_gets_it_and_a_request_can_leave_it_out(profile: str) -> None:
    engine = FakeEngine(main=lambda text: "bees of" in text)
    engine.profile = profile
    html = f"<html><head><title>Warm bees</title></head><body><h1>Warm bees</h1>{BODY}</body></html>"
    with_it, without = Extractor(engine=engine).extract([html, Document(html, config=Config(title="drop"))])

    assert (with_it.markdown or "").startswith("# Warm bees\n\nIn winter")
    assert with_it.labels == (True, True)
    assert (without.markdown or "").startswith("In winter")
    assert without.labels == (False, True)


def test_hostile_headings() -> None:
    """With many headings and a long title, the time is linear in the page."""
    title = " - ".join(f"part {i}" for i in range(5_000))
    body = "".join(f"<h1>part {i}</h1>" for i in range(5_000))

    assert named(f"<title>{title}</title>{body}{BODY}") is not None


@pytest.mark.parametrize("below", ["Tales of the hive", "A series of ten parts", "Version 2.1 and later"])
def test_an_h1_comes_before_a_subtitle(below: str) -> None:
    """The subtitle is the lead, and so is main, too."""
    cut = page(f"<title>Warm bees: {below} - Hive</title><h1>Warm bees</h1><h2>{below}</h2>{BODY}")
    main = np.array([False, False, True])

    assert headline(cut, main) == 0
    assert with_headline(ScoredPage(cut, Labels(np.array([0.2, 0.2, 0.9], dtype=np.float32))), main).all()
