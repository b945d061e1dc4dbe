"""The posts of threads in all forms of the output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_dripper import Config, Document, Extraction, Extractor, markdown
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_json import from_json
from scrapy_dripper.output.markdown import markdown as written
from scrapy_dripper.structures.items import (
    Item,
    Items,
    Paragraph,
    Post,
    Text,
    ThematicBreak,
    Title,
    without_empty_posts,
)
from scrapy_dripper.testing import FakeEngine

A = "The lower screw of the derailleur is loose, and the chain jumps off on every hill."
B = "Turn it a little to the right, until the chain stays on, and then try the other one."
C = "That has helped me as well, after years of trouble with the largest of the gears."
HEAD = "<p class=author>{name}</p><p class=date>{date}</p>"
POST = "<li class=comment>" + HEAD + "<p>{text}</p>{more}</li>"


def post(name: str, date: str, text: str, more: str = "") -> str:
    return POST.format(name=name, date=date, text=text, more=more)


THREAD = (
    "<h1>A loose screw</h1><ol id=comments>"
    + post("Ann", "6 May 2024", A, "<ul><li>one <b>word</b></li></ul><hr>")
    + post("Ben", "7 May 2024", B, f"<ol>{post('Cat', '8 May 2024', C)}</ol><p>And tell us.</p>")
    + "</ol><h2>The end</h2><p>The thread is closed.</p>"
)


class Engine(FakeEngine):
    """An engine that labels all blocks main, but the lines with authors and dates."""

    def __init__(self, page_type: str | None = "forum", heads: bool = False) -> None:
        super().__init__(main=lambda text: heads or not (len(text) == 3 or text.endswith("2024")))
        self.page_type = page_type

    def answer(self, page: Any) -> Labels | EngineError:
        labels = super().answer(page)
        assert isinstance(labels, Labels)
        return replace(labels, page_types={self.page_type: 1.0} if self.page_type else {})


def extracted(engine: Engine, html: str = THREAD, **options: Any) -> Extraction:
    config = Config(content_field="content", chunks_field="chunks", **options)
    return Extractor(config, engine).extract([Document(html, "https://example.org/t")])[0]


@pytest.fixture(scope="module")
def thread() -> Extraction:
    return extracted(Engine())


def speakers(found: Extraction) -> list[tuple[int, str, str]]:
    return [
        (item.get("number", 0), item.get("author", ""), item.get("date", ""))
        for item in found.content or ()
        if item["type"] == "post"
    ]


ANN, BEN, CAT = (1, "Ann", "2024-05-06"), (2, "Ben", "2024-05-07"), (3, "Cat", "2024-05-08")


def test_marks_begin_posts(thread: Extraction) -> None:
    """The mark of a post is repeated behind a reply, and there is one behind the last post."""
    assert speakers(thread) == [ANN, BEN, CAT, BEN, (0, "", "")]
    assert [item["type"] for item in thread.content or ()] == (
        "title post paragraph list post paragraph post paragraph post paragraph post title paragraph".split()
    )


def test_rules_part_posts_in_markdown_and_blank_lines_in_text(thread: Extraction) -> None:
    assert thread.markdown == (
        f"# A loose screw\n\n{A}\n\n- one **word**\n\n---\n\n{B}\n\n---\n\n{C}\n\n---\n\nAnd tell us.\n\n---\n\n"
        "## The end\n\nThe thread is closed."
    )
    assert thread.text == (
        f"A loose screw\n\n{A}\none word\n\n{B}\n\n{C}\n\nAnd tell us.\n\nThe end\nThe thread is closed."
    )


def test_posts_are_named_on_request(thread: Extraction) -> None:
    named = extracted(Engine(), markdown={"posts": "named"}).markdown or ""
    assert named.startswith(f"# A loose screw\n\n**Ann**, 2024-05-06\n\n{A}\n\n- one **word**\n\n---\n\n**Ben**, 2024-")
    assert named == markdown(thread, posts="named")


@pytest.mark.parametrize(("before", "repeated"), [(2, False), (4, True)])
def test_a_name_at_the_beginning_of_a_post_is_not_repeated(before: int, repeated: bool) -> None:
    post = [Paragraph((Text(text),)) for text in (*"x" * before, "Ann")]
    assert ("**Ann**" in written((Post(1, "Ann"), *post), posts="named")) is repeated


def test_a_name_in_the_main_text_is_not_repeated() -> None:
    assert "**Ann**" not in (extracted(Engine(heads=True), markdown={"posts": "named"}).markdown or "")


def test_main_html_has_no_marks(thread: Extraction) -> None:
    assert thread.main_html == extracted(Engine(page_type="article")).main_html
    assert "<ol id=" in (thread.main_html or "")


def test_a_chunk_holds_one_post(thread: Extraction) -> None:
    """The heading of the thread is with its first post."""
    assert [(chunk["markdown"][:15], chunk["author"], chunk["date"]) for chunk in thread.chunks or ()] == [
        ("# A loose screw", "Ann", "2024-05-06"),
        (B[:15], "Ben", "2024-05-07"),
        (C[:15], "Cat", "2024-05-08"),
        ("And tell us.", "Ben", "2024-05-07"),
        ("## The end\n\nThe", "", ""),
    ]
    assert [chunk["headings"] for chunk in thread.chunks or ()] == [["A loose screw"]] * 4 + [
        ["A loose screw", "The end"]
    ]


@pytest.mark.parametrize("around", ["{}", "<blockquote class=text>{}</blockquote>"])
def test_a_post_may_quote_another_and_its_text_is_no_quote(around: str) -> None:
    """Some forums put the text of every post into a ``<blockquote>``. Those in it are quotes."""
    texts = f"<p>{A}</p>", f"<p>{B}</p><blockquote class=quote>{A}</blockquote><p>Right.</p>"
    heads = HEAD.format(name="Ann", date="6 May 2024"), HEAD.format(name="Ben", date="7 May 2024")
    posts = (f"<li class=comment>{head}{around.format(text)}</li>" for head, text in zip(heads, texts, strict=True))

    assert extracted(Engine(), f"<ol>{''.join(posts)}</ol>").markdown == f"{A}\n\n---\n\n{B}\n\n> {A}\n\nRight."


def test_a_heading_does_not_make_the_text_of_a_short_post_a_quote() -> None:
    """vBulletin repeats the headline above each reply."""
    replies = [("Ann", A), ("Ben", "Right."), ("Cy", B)]
    html = "".join(
        f"<li class=comment>{HEAD.format(name=name, date='6 May 2024')}<h2>Re: A loose screw in the wheel</h2>"
        f"<blockquote class=text>{text}</blockquote></li>"
        for name, text in replies
    )

    assert ">" not in (extracted(Engine(), f"<ol>{html}</ol>").markdown or "")


def passages(*some: tuple[int, str]) -> Items:
    """Return posts by their numbers, with a title for a text that begins with #, and a rule for ---."""

    def item(part: str) -> Item:
        return (
            ThematicBreak()
            if part == "---"
            else Title(2, (Text(part[1:]),))
            if part[0] == "#"
            else Paragraph((Text(part),))
        )

    made: list[Item] = []
    for number, text in some:
        made += [Post(number, f"N{number}"), *map(item, text.split("/"))]
    return without_empty_posts(made)


@pytest.mark.parametrize("overlap", [0, 40])
def test_no_chunk_mixes_speakers(overlap: int) -> None:
    """Long posts are cut, and their headings are not above other posts."""
    texts = [f"word{number} " * 40 for number in range(1, 4)]
    items = passages((1, "#Mine/" + texts[0]), (2, texts[1] + "/#Only this"), (3, texts[2]))
    for chunk in chunks(items, size=100, overlap=overlap):
        number = chunk.author[1:]
        assert {word[4:] for word in chunk.markdown.split() if word.startswith("word")} <= {number}
        assert chunk.headings == (("Mine",) if number == "1" else ("Only this",) if "Only" in chunk.markdown else ())


def test_the_title_in_the_first_post_is_that_of_the_thread() -> None:
    items = (Post(1, "Ann"), Title(1, (Text("Loose"),)), *passages((2, "So what?/#Only this"), (3, "That.")))
    assert [chunk.headings for chunk in chunks(items, size=50)] == [("Loose",)] * 3


def test_marks_stay_with_what_is_left() -> None:
    items = passages((1, "One"), (2, "#Two"), (3, "---/Three/---"), (1, "End"), (0, "---"))
    assert [type(item).__name__ for item in items] == "Post Paragraph Post Title Post Paragraph Post Paragraph".split()
    found = extracted(Engine(), markdown={"types": ["paragraph"]})
    assert speakers(found) == [ANN, BEN, CAT, BEN, (0, "", "")]
    assert speakers(extracted(Engine(), markdown={"types": ["list"]})) == [ANN]
    assert from_json(found.content or ())[0] == Post(*ANN)


LD = '<script type="application/ld+json">{"@type": "%s"}</script>'


@pytest.mark.parametrize(
    ("page_type", "declared", "comments", "expected"),
    [
        ("forum", "", "auto", 3),
        ("article", "", "auto", 0),
        ("listing", "", "auto", 0),
        ("listing", "BlogPosting", "auto", 0),
        (None, "DiscussionForumPosting", "auto", 3),
        ("article", "QAPage", "auto", 3),
        ("article", "https://schema.org/DiscussionForumPosting", "auto", 3),
        ("listing", "", "keep", 3),
    ],
)
def test_where_there_are_posts(page_type: str | None, declared: str, comments: str, expected: int) -> None:
    thread = f"<main itemscope itemtype='{declared}'>{THREAD}</main>" if "/" in declared else LD % declared + THREAD
    found = extracted(Engine(page_type), f"<html><body>{thread}</body></html>", comments=comments)
    assert len({number for number, _, _ in speakers(found)} - {0}) == expected


def test_kept_comments_do_not_make_posts_of_cards() -> None:
    cards = THREAD.replace("id=comments", "id=news").replace("class=comment", "class=card")
    assert speakers(extracted(Engine("listing"), cards, comments="keep")) == []


@pytest.mark.parametrize(
    ("opening", "closing"), [("<table><tr><td>", "</td></tr></table>"), ("<dl><dd>", "</dd></dl>"), ("", "")]
)
def test_what_arranges_posts_is_not_in_the_content_list(opening: str, closing: str) -> None:
    """Lists, tables and quotations in posts are in it."""
    table = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    posts = post("Ann", "6 May 2024", A, table) + post(
        "Ben", "7 May 2024", B, "<blockquote><p>So what?</p></blockquote>"
    )
    found = extracted(Engine(), f"{opening}{posts.replace('<li', '<div').replace('</li', '</div')}{closing}")
    assert [item["type"] for item in found.content or ()] == "post paragraph table post paragraph quote".split()
