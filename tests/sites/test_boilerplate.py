"""Which blocks are boilerplate, judging by other pages of the site, and which never are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.data import SiteData
from scrapy_dripper.sites.memory import boilerplate, places
from scrapy_dripper.testing import FakeEngine, page
from tests.html_strategies import documents

OWN = "".join(f"<p>Sentence {i} of this page says what no other page of the site has ever said.</p>" for i in range(8))
TEAM = "<section class=team><h3>The team</h3><p>Ann writes about the sea.</p><p>Ben takes the pictures.</p></section>"


def site(*bodies: str) -> list[Document]:
    """Return pages of one host, with unique text in place of a star."""
    return [
        Document(
            f"<body><article>{body.replace('@', f'{i}').replace('*', OWN.replace('of this page', f'number {i}'))}"
            "</article></body>",
            url,
        )
        for i, body in enumerate(bodies)
        for url in [f"https://e.org/{i}"]
    ]


def reader(sites: str = "memory") -> Extractor:
    """Return an extractor with an engine that labels every block main."""
    return Extractor(Config(sites=sites, processes=0), FakeEngine())


def extracted(documents: list[Document]) -> list[str]:
    """Return the texts of documents that are extracted one by one."""
    extractor = reader()
    return [found.text or "" for document in documents for found in extractor.extract([document])]


ABOUT = "About us: we sail, write about the sea, and sell what we catch."
TEAMS = [
    TEAM.replace("The team", f"Team {i}").replace("writes", f"writes {i}").replace("takes", f"takes {i}")
    for i in range(3)
]
CHAPTERS = "".join(f"<p>Chapter {i}, in which the ships sail to island number {i}</p>" for i in range(20))


@pytest.mark.parametrize(
    ("bodies", "words", "shown"),
    [
        (["*" + TEAM] * 8, ["The team", "Ann writes"], 3),
        # The text around a paragraph with a class is the article's, but no article has another text in its place.
        (["*" + f"<p class=about>{ABOUT}</p>"] * 8, ["About us"], 3),
        (["*" + f"<div class='about us'><p>{ABOUT}</p></div>"] * 8, ["About us"], 3),
        (["*<div class='box post-@'><p>Subscribe to it.</p><p>It costs nothing.</p></div>"] * 8, ["Subscribe"], 3),
        # Once its place is known, two pages in a language are enough.
        (["*" + TEAMS[i % 3] for i in range(12)], ["Ann writes"], 6),
        # A table of contents is longer than a notice, and is in no list of articles.
        ([f"<nav>{CHAPTERS}</nav><div>*</div>"] * 8, ["Chapter 7"], 3),
    ],
    ids=["box", "paragraph", "box of a paragraph", "class with a number", "several languages", "menu above the text"],
)
def test_what_is_on_every_page_is_left_out(bodies: list[str], words: list[str], shown: int) -> None:
    """From the fourth page on, and nothing else is."""
    texts = extracted(site(*bodies))

    for word in words:
        assert [word in text for text in texts] == [True] * shown + [False] * (len(texts) - shown)
    assert all(text.count("Sentence") == 8 for text in texts)


def test_pages_of_one_call_know_of_those_before() -> None:
    found = reader().extract(site(*["*" + TEAM] * 8))

    assert [one.details["repeated"] for one in found] == [0] * 3 + [3] * 5


def test_off_nothing_is_left_out() -> None:
    found = reader("off").extract(site(*["*" + TEAM] * 8))

    assert all("The team" in (one.text or "") for one in found)
    assert {(one.details["repeated"], one.site) for one in found} == {(0, SiteData())}


@pytest.mark.parametrize(
    "body",
    [
        "<h2>Parameters</h2>*<h2>Returns</h2>",
        "<p>This post is part of a series on the sea, see the first part.</p>*",
        "*<p>Thanks for reading, and until next week. Ann</p>",
        "<div><h2>Usage</h2>*</div>",
        "<div class=label>Prep time and ingredients</div>*",
        "<h2 class=title>What you need to know of the sea before you sail it</h2>*",
        "<p class=lead>This post is part of a series on the sea, see the first part.</p><p class=lead>Number @</p>*",
        # Each part of an article has the headline and the introduction of the whole.
        "<header><h1>The sea, in eight parts</h1><p>All that we know of it, told by those who were there.</p></header>"
        "<div>*</div><p class=next>Part @ of 8</p>",
        # If little would remain, the pages are copies of each other.
        f"<p>Chapter @</p>{TEAM}",
    ],
)
def test_what_an_author_repeats_stays(body: str) -> None:
    """Headings, introductions and signatures are beside text of the page itself."""
    texts = extracted(site(*[body] * 8))
    plain = reader("off").extract(site(*[body] * 8))

    assert texts == [one.text for one in plain]


def test_a_headline_that_lists_repeat_stays() -> None:
    """Lists have it in another place."""
    lists = ["*<ul class=recent><li><a href=/7>The rise and fall of the sea at the coast</a></li></ul>"] * 7
    texts = extracted(site(*lists, "<h1>The rise and fall of the sea at the coast</h1>*"))

    assert "rise and fall" in texts[-1]


COMMENTS = OWN.replace("of this page", "of a reader")


@pytest.mark.parametrize("comments", ["", COMMENTS, COMMENTS + COMMENTS.replace("has ever said", "will say") * 4])
def test_an_article_that_lists_show_in_full_stays(comments: str) -> None:
    """It is kept with any comments below it, although front page, category, month and author pages have shown it."""
    article = f"<div class=post>{OWN.replace('of this page', 'of the article')}</div>"
    lists = [
        f"<div class=post>*</div>{article}<div class=post><p>Another post, number {i}.</p></div>" for i in range(5)
    ]
    texts = extracted(site(*lists, article + comments))

    assert texts[-1].count("of the article") == 8


@pytest.mark.parametrize("changed", [1, 2, 3, 4])
@pytest.mark.parametrize("versions", [3, 5])
def test_versions_of_a_text_keep_it(changed: int, versions: int) -> None:
    """Most sentences in the documentation of several releases are on several pages, in the same place."""
    bodies = []
    for topic in range(4):
        for version in range(versions):
            new = [version if i < changed else 0 for i in range(12)]
            lines = [
                f"Line {i} of topic {topic}, as of version {n}. " + "It says what it is about. " * 4
                for i, n in enumerate(new)
            ]
            parts = ["".join(f"<p>{line}</p>" for line in part) for part in (lines[:changed], lines[changed:])]
            bodies.append("".join(f"<section>{part}</section>" for part in parts))
    texts = extracted(site(*bodies))

    assert all(text.count("Line") == 12 for text in texts)


@given(documents())
def test_no_page_is_boilerplate_as_a_whole(html: str) -> None:
    """Only main blocks can be boilerplate, and only if main content remains."""
    one = page(f"<body><p>text</p>{html}</body>")  # a template may hide all that follows
    n = len(one.blocks)
    main = np.arange(n) % 3 > 0
    found = places(one)

    taken = boilerplate(one, main, found, np.unique(found[::2]))

    assert found.shape == (n,)
    assert not (taken & ~main).any()
    assert not main.any() or (main & ~taken).any()
