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


def test_a_box_on_every_page_is_left_out_from_the_fourth_on() -> None:
    texts = extracted(site(*["*" + TEAM] * 8))

    assert ["The team" in text for text in texts] == [True] * 3 + [False] * 5
    assert ["Ann writes" in text for text in texts] == [True] * 3 + [False] * 5
    assert all(text.count("Sentence") == 8 for text in texts)


@pytest.mark.parametrize("box", ["<p class=about>{}</p>", "<div class='about us'><p>{}</p></div>"])
def test_a_box_of_one_paragraph_is_left_out_if_it_has_a_class_of_its_own(box: str) -> None:
    """The text around it is the article's, but no article has another text in its place."""
    texts = extracted(site(*["*" + box.format("About us: we sail, write about the sea, and sell what we catch.")] * 8))

    assert ["About us" in text for text in texts] == [True] * 3 + [False] * 5
    assert all(text.count("Sentence") == 8 for text in texts)


def test_a_box_in_several_languages() -> None:
    """Once its place is known, two pages in a language are enough."""
    teams = [
        TEAM.replace("The team", f"Team {i}").replace("writes", f"writes {i}").replace("takes", f"takes {i}")
        for i in range(3)
    ]
    texts = extracted(site(*["*" + teams[i % 3] for i in range(12)]))

    assert ["Ann writes" in text for text in texts] == [True] * 6 + [False] * 6
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


def test_a_menu_above_the_text_is_left_out() -> None:
    """An example is the table of contents of a book, which is longer than a notice and is in no list of articles."""
    chapters = "".join(f"<p>Chapter {i}, in which the ships sail to island number {i}</p>" for i in range(20))
    texts = extracted(site(*[f"<nav>{chapters}</nav><div>*</div>"] * 8))

    assert ["Chapter 7" in text for text in texts] == [True] * 3 + [False] * 5
    assert all(text.count("Sentence") == 8 for text in texts)


def test_a_page_seen_at_many_addresses_stays() -> None:
    """Examples are print versions, other parameters, and repeated downloads."""
    html = f"<body><article>{OWN}{TEAM}</article></body>"
    documents = [Document(html, f"https://e.org/a?from={i // 2}") for i in range(12)]

    assert {text.count("Sentence") for text in extracted(documents)} == {8}


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


def test_parts_of_an_article_keep_their_text() -> None:
    """Each part has the headline and the introduction of the whole article."""
    head = (
        "<header><h1>The sea, in nine parts</h1><p>All that we know of it, told by those who were there.</p></header>"
    )
    texts = extracted(site(*[f"{head}<div>*</div><p class=next>Part {i} of 9</p>" for i in range(9)]))

    assert all(text.count("Sentence") == 8 for text in texts)


def test_a_site_of_short_pages_keeps_them() -> None:
    """If little would remain, the pages are copies of each other, and nothing is boilerplate."""
    texts = extracted(site(*[f"<p>Chapter {i}</p>{TEAM}" for i in range(8)]))

    assert all("Ann writes" in text for text in texts)


def test_class_names_that_number_a_page_make_no_difference() -> None:
    texts = extracted(
        site(
            *[
                f"*<div class='box post-{i}'><p>Subscribe to our letter.</p><p>It costs nothing.</p></div>"
                for i in range(8)
            ]
        )
    )

    assert "Subscribe" not in texts[-1]


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
