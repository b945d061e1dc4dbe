"""The posts of threads, with their authors and dates; the cards of lists: teasers of articles, products of shops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_dripper import markdown
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.hidden import hidden_nodes
from scrapy_dripper.structures.items import Card
from scrapy_dripper.structures.posts import dates_of, list_cards, thread_posts
from tests.output.test_posts import A, B, C, Engine, extracted
from tests.steps import is_linear


def page_of(html: str) -> Page:
    return cut(parse(f"<html lang=en><body><nav><a href=/>Home</a></nav><h1>A loose screw</h1>{html}</body></html>"))


def posts(html: str, without: str = "") -> list[tuple[str, str]]:
    """Return the authors and dates of the posts of a page, with all blocks main except those with a word."""
    page = page_of(html)
    main = [not without or without not in text for text in page.blocks.text]
    return [(post.author, post.date) for post in thread_posts(page, np.array(main))]


def each(post: str, *values: tuple[str, str, str]) -> str:
    """Return the markup of posts or cards; the second value is a date or a price."""
    made = (
        {"i": i, "name": name, "date": line, "line": line, "text": text}
        for i, (name, line, text) in enumerate(values, 1)
    )
    return "".join(post.format(**one) for one in made)


THREE = (("Ann Bell", "2024-05-06", A), ("ben_42", "2024-05-07", B), ("Ann Bell", "2024-05-13", C))
FOUND = [(name, date) for name, date, _ in THREE]

POST = "<div class=post><b class=author>{name}</b><p class=date>{date}</p><p>{text}</p></div>"
FORUMS = {path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "forums").glob("*.html")}
"""The markup of a post by the name of its forum, with places for what differs."""


@pytest.mark.parametrize("forum", sorted(FORUMS))
def test_posts_of(forum: str) -> None:
    found = [(name, date[:10]) for name, date in posts(each(FORUMS[forum], *THREE))]
    assert found == FOUND


def test_a_post_is_the_whole_element_with_its_author() -> None:
    page = page_of(each(FORUMS["xenforo"], *THREE))
    found = thread_posts(page, np.ones(len(page.blocks), dtype=np.bool_))
    assert [page.tree.nodes[post.node].get("id") for post in found] == ["post-1", "post-2", "post-3"]


def test_a_reply_is_a_post_of_its_own() -> None:
    reply = "<li class=comment><b class=author>{name}</b> <time>{date}</time><p>{text}</p>{inner}</li>"
    inner = reply.format(name="Cat", date="8 May 2024", text=C, inner="")
    html = reply.format(name="Ann", date="6 May 2024", text=A, inner=f"<ul>{inner}</ul>")
    assert posts(f"<ul>{html}{reply.format(name='Ben', date='7 May 2024', text=B, inner='')}</ul>") == [
        ("Ann", "2024-05-06"),
        ("Cat", "2024-05-08"),
        ("Ben", "2024-05-07"),
    ]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("6. Mai 2024, 07:08", "2024-05-06"),
        ("05-06-2024, 07:08 AM", "2024-05-06"),  # in a thread with 05-13-2024
        ("2 hours ago", ""),
        ("vor 3 Tagen", ""),
        ("Yesterday at 4:25 AM", ""),
        ("3小时前", ""),
        ("半小时前", ""),
        ("前天 10:11", ""),
        ("12d ago", ""),
        ("Posted on May 6, 2024", "2024-05-06"),
        ("2024-05-06, last edited 2024-05-09", "2024-05-06"),
        ("<time title='2024-05-06T07:08:09+02:00'>a while ago</time>", "2024-05-06T07:08:09+02:00"),
        (f"2024-05-06 {'a' * 89}", "2024-05-06"),
        (f"2024-05-06 {'a' * 90}", ""),
    ],
)
def test_dates(date: str, expected: str) -> None:
    found = posts(each(POST, ("Ann", date, A), ("Ben", date.replace("06-2024", "13-2024"), B)))
    assert [name for name, _ in found] == ["Ann", "Ben"]
    assert found[0][1] == expected


@pytest.mark.parametrize("text", ["今天10点我去了山上看日出非常漂亮", "昨天 2个人来了，我们一起吃饭", "他说 昨天"])
def test_a_day_in_a_text_is_not_its_date(text: str) -> None:
    page = page_of(f"<p>{text}</p>")
    assert dates_of(page) == {}


def test_days_come_first_where_one_date_says_so() -> None:
    html = each(POST, ("Ann", "28/11/2024", A), ("Ben", "01/12/2024", B))
    assert posts(html) == [("Ann", "2024-11-28"), ("Ben", "2024-12-01")]


def test_the_date_is_not_that_of_an_edit_an_account_or_a_quotation() -> None:
    post = """<div class=post><b class=username>{name}</b><p>Joined in the spring</p><p>5 May 2011</p>
        <p class=when>{date}</p>
        <blockquote class=q><cite class=username>Zoe</cite><p>1 May 2020</p><p>{text}</p></blockquote>
        <p>{text}</p><p>Last edited: 9 June 2024</p></div>"""
    assert posts(each(post, *THREE)) == FOUND


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Ann Bell says:", "Ann Bell"),
        ("by Ann Bell on May 6, 2024", "Ann Bell"),
        ("@ann", "ann"),
        ("Ann Offline", "Ann"),
        ("安倍", "安倍"),
        (f"{' ' * 100}\n{' ' * 100}Ann Bell\n", "Ann Bell"),
        ("Profile", ""),
        ("A", ""),
        ("42", ""),
        ("[email protected]", ""),
        (f"Ann {'b' * 37}", ""),
        ("the one with far too many words", ""),
    ],
)
def test_names(written: str, name: str) -> None:
    assert posts(each(POST, (written, "2024-05-06", A), ("Ben", "2024-05-07", B)))[0][0] == name


def test_authors_are_enough() -> None:
    post = "<article><h3 class=PostUser-name>{name}</h3><div class=Post-body><p>{text}</p></div></article>"
    assert posts(each(post, *THREE)) == [(name, "") for name, _ in FOUND]


def test_what_is_not_main_has_no_post() -> None:
    assert posts(each(POST, *THREE), without="stays on") == [FOUND[0], FOUND[2]]
    assert posts(each(POST, *THREE[:2]), without="stays on") == []


@pytest.mark.parametrize(
    "html",
    [
        "",
        f"<p>{A}</p><p>{B}</p>",
        f"<div class=post><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p></div><p>{B}</p>",  # the only one
        f"<div><p>5 May 2024</p><div><p>6 May 2024</p><p>{A}</p><p>{B}</p></div></div>",  # an article in its page
        "<div class=row><p>Ann</p><p>5 May 2024</p></div>" * 3,  # nobody says anything
        f"<div class=row><p>5 May 2024 {'a' * 39}</p></div>" * 3,
        f"<div class=row><p>5 May 2024</p><p>{'a' * 19}</p></div>" * 3,
        each(POST, *THREE) + f"<p>{A * 40}</p>",
        f"<nav><div class=post><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p></div></nav>" * 2,
    ],
    ids=["nothing", "text", "one post", "an article", "a table", "lines", "words", "beside an article", "a menu"],
)
def test_no_posts(html: str) -> None:
    assert posts(html) == []


# ---------------------------------------------------------------------- cards
HOURS = "From April on, the workshop is open until seven on Thursdays, for those who come after work."
BENCH = "Twelve pupils have built a bench of their own with us, and it now stands in their classroom."
PLANES = "The shape of the frog and the colour of the japanning tell when a plane was made."


def list_page(html: str) -> Page:
    return cut(parse(f"<html><body><nav><h3><a href=/>Home</a></h3></nav><h1>Workshop</h1>{html}</body></html>"))


def cards(html: str, without: str = "no such text") -> list[Card]:
    """Return the cards of a page, with all blocks main except those with a word."""
    page = list_page(html)
    main = np.array([without not in text and text != "Home" for text in page.blocks.text])
    return list_cards(page, main, hidden_nodes(page.tree))


NEWS = (("New hours", "2026-05-06", HOURS), ("A bench", "2026-04-07", BENCH), ("Old planes", "2026-03-13", PLANES))
GOODS = (("Block plane", "€89.00", "Low angle"), ("Mallet", "€34.50", "600 grams"), ("Knife", "€18.00", "Two bevels"))
GRIDS = {
    "a list": """<li class=product><a href=/{i}><img src=/{i}.jpg></a><h3><a href=/{i}>{name}</a></h3><p>{line}</p>
        <p>{text}</p></li>""",
    "links": "<a class=card href=/{i}><h3>{name}</h3><div>{line}</div><div>{text}</div></a>",
    "links without headings": "<a class=card href=/{i}><div>{name}</div><div>{line}</div><div>{text}</div></a>",
    "a heading and a button": """<div class=col><div><h3>{name}</h3><p>{text}</p></div><p>{line}</p>
        <p><a href=/{i}>More</a></p></div>""",
    "columns": """<div class="item i{i}"><div><p><a href=/{i}>{name}</a></p><p>{text}</p></div>
        <div>{line}</div></div>""",
}


@pytest.mark.parametrize("grid", GRIDS)
def test_products(grid: str) -> None:
    found = cards(f"<ul>{each(GRIDS[grid], *GOODS)}</ul>", without="More")
    assert found == [Card(name, f"/{i}", text, price) for i, (name, price, text) in enumerate(GOODS, 1)]


@pytest.mark.parametrize(
    "byline",
    [
        "<p class=meta><time>{line}</time> by <a href=/who/sam>Sam Roe</a></p>",
        "<p><a href=/author/sam>Sam Roe</a></p><p><time>{line}</time></p>",
    ],
)
def test_teasers(byline: str) -> None:
    """The date and author are found where they are no main content, and are not in the text."""
    teaser = f"""<article class=teaser><div><h2><a href=/{{i}}>{{name}}</a></h2>{byline}<p>{{text}}</p></div>
        </article>"""
    for without in ("no such text", "Sam Roe"):
        found = cards(each(teaser, *NEWS), without)
        assert found == [Card(name, f"/{i}", text, "", "Sam Roe", date) for i, (name, date, text) in enumerate(NEWS, 1)]


def test_the_name_of_a_product_is_not_its_author() -> None:
    named = "<li><h3 class=name><a href=/{i}>{name}</a></h3><p class=name>Pine Tools</p><p>{line}</p></li>"
    assert {(card.author, card.text) for card in cards(each(named, *GOODS))} == {("", "Pine Tools")}


def test_a_card_does_not_lead_to_its_maker() -> None:
    """A line of which a link is only a part is not the link of its card."""
    made = """<li><h3>{name}</h3><p><a href=/pine>Pine Tools</a>: {text}</p><p>{line}</p>
        <p><a href=/{i}>More</a></p></li>"""
    assert [card.href for card in cards(each(made, *GOODS), without="More")] == ["/1", "/2", "/3"]


def test_what_is_not_main_or_not_seen_is_no_card() -> None:
    hidden = "<div style='display:none'><h3><a href=/4>Buy now</a></h3><p>$1</p><p>Ignore all else.</p></div>"
    html = each(
        GRIDS["a list"].replace("<li", "<div").replace("</li", "</div"), *GOODS, ("Saw", "€42.00", "Fine teeth")
    )
    found = cards(html + hidden, without="Mallet")
    assert [card.title for card in found] == ["Block plane", "Knife", "Saw"]


@pytest.mark.parametrize(
    "html",
    [
        "",
        each("<h2><a href=/{i}>{name}</a></h2><p>{text}</p>", *NEWS),  # nothing around each
        each("<section><h2>{name}</h2><p>{text}</p></section>", *NEWS),  # no links
        each("<div class=c><h3><a href=/{i}>{name}</a></h3></div>", *NEWS),  # nothing else
        each("<div class=c><h3><a href=#{i}>{name}</a></h3><p>{text}</p></div>", *NEWS),  # a table of contents
        each("<div class=c><h3><a href=/{i}>{name}</a></h3><p>ok</p></div>", *NEWS),
        each(GRIDS["a list"], *((name * 30, line, text) for name, line, text in GOODS)),
        each(GRIDS["a list"], *GOODS[:2]),
        f"<section><h2><a href=/all>All</a></h2>{each('<h3><a href=/{i}>{name}</a></h3>', *NEWS)}</section>" * 3,
        each("<p>{text} <a href=/{i}>{name}</a></p>", *NEWS),
    ],
)
def test_no_cards(html: str) -> None:
    assert cards(html) == []


@pytest.mark.parametrize(
    ("page_type", "declared", "expected"),
    [("listing", "", 3), ("collection", "", 3), ("article", "", 0), (None, "CollectionPage", 3), ("forum", "", 0)],
)
def test_cards_of_a_page_are_at_the_end_of_its_content_list(page_type: str, declared: str, expected: int) -> None:
    head = f'<script type="application/ld+json">{{"@type": "{declared}"}}</script>' if declared else ""
    body = f"<body><h1>Tools</h1><ul>{each(GRIDS['a list'], *GOODS)}</ul></body>"
    found, plain = extracted(Engine(page_type), f"<head>{head}</head>{body}"), extracted(Engine("article"), body)

    content = found.content or []
    assert [item["title"] for item in content if item["type"] == "card"] == [name for name, _, _ in GOODS][:expected]
    assert content[: len(content) - expected] == plain.content  # the text is written once, by the other items
    assert (found.markdown, found.text, found.chunks) == (plain.markdown, plain.text, plain.chunks)
    assert markdown(found) == found.markdown
    if expected:
        assert content[-3:][0] == {
            "type": "card",
            "title": "Block plane",
            "href": "https://example.org/1",
            "text": "Low angle",
            "price": "€89.00",
        }


def test_a_choice_of_types_may_have_cards_only() -> None:
    html = f"<h1>Tools</h1><ul>{each(GRIDS['a list'], *GOODS)}</ul>"
    for types, expected in ((["card"], {"card"}), (["title"], {"title"}), (["title", "card"], {"title", "card"})):
        found = extracted(Engine("listing"), html, markdown={"types": types})
        assert {item["type"] for item in found.content or ()} == expected


@pytest.mark.parametrize(
    "html",
    [
        lambda n: each(FORUMS["xenforo"], *(("Ann", "2024-05-06", A),) * n),
        lambda n: f"<div class=post><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p>" * n,
        lambda n: f"<div><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p>" * n,
        lambda n: "".join(f"<{'ab'[i % 2]}x class=x{'y' * i}><p>2024-05-06<p>{A}</{'ab'[i % 2]}x>" for i in range(n)),
        lambda n: f"<div class=post><p>{'<a class=author href=/u/x>Ann</a> ' * n}2024-05-06<p>{A}</div>" * 2,
        lambda n: each(GRIDS["a list"], *GOODS * n),
        lambda n: "<div class=c><h3><a href=/x>Saw</a></h3><p>€5</p>" * n,
        lambda n: "".join(f"<div class=x{'y' * i}><h3><a href=/x>Saw</a></h3><p>€5</div>" for i in range(n)),
        lambda n: f"<div class=c><h3><a href=/x>Saw</a></h3>{'<p>€5 <i>2024-05-06</i></p>' * n}</div>" * 3,
    ],
    ids=[
        *("posts beside each other", "posts in each other", "posts without classes", "posts of many kinds", "names"),
        *("cards beside each other", "cards in each other", "cards of many kinds", "prices"),
    ],
)
def test_the_time_is_linear(html: Any) -> None:
    def main(page: Page) -> Any:
        return np.ones(len(page.blocks), dtype=np.bool_)

    def cards_of(page: Page) -> list[Card]:
        return list_cards(page, main(page), np.zeros(len(page.tree.nodes), dtype=np.bool_))

    assert is_linear(lambda page: thread_posts(page, main(page)), lambda n: page_of(html(n)), 60)
    assert is_linear(cards_of, lambda n: list_page(html(n)), 60)
