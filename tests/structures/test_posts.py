"""The posts of threads, with their authors and dates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.posts import thread_posts
from tests.steps import is_linear

A = "The lower screw of the derailleur is loose, and the chain jumps off on every hill."
B = "Turn it a little to the right, until the chain stays on, and then try the other one."
C = "That has helped me as well, after years of trouble with the largest of the gears."


def page_of(html: str, lang: str = "en") -> Page:
    return cut(
        parse(f"<html lang={lang}><body><nav><a href=/>Home</a></nav><h1>A loose screw</h1>{html}</body></html>")
    )


def posts(html: str, lang: str = "en", without: str = "") -> list[tuple[str, str]]:
    """Return the authors and dates of the posts of a page, with all blocks main except those with a word."""
    page = page_of(html, lang)
    main = [not without or without not in text for text in page.blocks.text]
    return [(post.author, post.date) for post in thread_posts(page, np.array(main))]


def each(post: str, *values: tuple[str, str, str]) -> str:
    return "".join(post.format(i=i, name=name, date=date, text=text) for i, (name, date, text) in enumerate(values, 1))


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


@pytest.mark.parametrize(
    "html",
    [
        lambda n: each(FORUMS["xenforo"], *(("Ann", "2024-05-06", A),) * n),
        lambda n: f"<div class=post><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p>" * n,
        lambda n: f"<div><b class=author>Ann</b><p>2024-05-06</p><p>{A}</p>" * n,
        lambda n: "".join(f"<{'ab'[i % 2]}x class=x{'y' * i}><p>2024-05-06<p>{A}</{'ab'[i % 2]}x>" for i in range(n)),
        lambda n: f"<div class=post><p>{'<a class=author href=/u/x>Ann</a> ' * n}2024-05-06<p>{A}</div>" * 2,
    ],
    ids=["beside each other", "in each other", "without classes", "of many kinds", "names"],
)
def test_the_time_is_linear(html: Any) -> None:
    def run(page: Page) -> None:
        thread_posts(page, np.ones(len(page.blocks), dtype=np.bool_))

    assert is_linear(run, lambda n: page_of(html(n)), 60)
