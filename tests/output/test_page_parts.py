"""Images, videos and readers' comments of a page as fields of their own, and those of its metadata."""

from __future__ import annotations

from typing import Any

import pytest

import scrapy_dripper
from scrapy_dripper import Config, Extractor
from scrapy_dripper.config import OUTPUT_FIELDS

TEXT = "<p>The tide comes in twice a day, and sailors plan their passages by its times at the harbour.</p>" * 9
SAID = ("I have seen that tide myself, and it was higher than you say.", "Where was that? I live at the harbour.")


def comment(name: str, day: int, text: str) -> str:
    return (
        f"<li class=comment><cite class=author>{name}</cite> <time datetime=2024-05-0{day}>May {day}, 2024</time>"
        f"<div class=comment-body><p>{text}</p></div></li>"
    )


def page(comments: str) -> str:
    return (
        "<!doctype html><html lang=en><head><title>Tides</title><meta property=og:site_name content=Harbour>"
        "<meta property=article:tag content=sea></head><body><nav><a href=/>Home</a></nav><main><article><h1>Tides</h1>"
        f"{TEXT}<figure><img src=/wave.jpg width=600 alt='A wave'><figcaption>A high wave</figcaption></figure>{TEXT}"
        f"<p>Beside <img src=/wave.jpg alt=again>.</p><iframe src=https://www.youtube.com/embed/abc12345678></iframe>"
        f"{TEXT}</article></main>{comments}<footer>Imprint</footer></body></html>"
    )


NAMED = f"<section id=comments class=comments><h2>2 comments</h2><ol>{comment('Ann', 1, SAID[0])}" + (
    f"{comment('Bob', 2, SAID[1])}</ol></section>"
)
BARE = f"<section id=comments class=comments><p>{SAID[0]}</p></section>"
POSTS = [
    {"author": "Ann", "date": "2024-05-01", "text": SAID[0]},
    {"author": "Bob", "date": "2024-05-02", "text": SAID[1]},
]


@pytest.mark.parametrize(
    ("comments", "expected"),
    [("", []), (NAMED, POSTS), (BARE, [{"author": "", "date": "", "text": SAID[0]}])],
    ids=["none", "named", "bare"],
)
@pytest.mark.parametrize("option", ["auto", "keep", "drop"])
def test_comments_are_a_field_of_their_own(option: str, comments: str, expected: Any) -> None:
    """They have it whether they are part of the main content or not. Names and dates are no part of their text."""
    found = scrapy_dripper.extract(page(comments), comments=option)

    assert found.comments == expected
    assert (SAID[0] in found.text) == (option == "keep" and bool(comments))


def test_a_thread_has_no_comments() -> None:
    """Its posts are the main content."""
    thread = "".join(comment(name, day, SAID[0] * 3) for day, name in enumerate(("Ann", "Bob", "Cy", "Dee"), 1))
    linked = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'

    found = scrapy_dripper.extract(f"{linked}<h1>Tides</h1><ol class=comments>{thread}</ol>", comments="keep")

    assert SAID[0] in found.text
    assert found.comments == []


def test_images_and_videos() -> None:
    """Each URL once, with its caption."""
    found = scrapy_dripper.extract(page(""), url="https://e.org/tides")

    assert found.images == [{"url": "https://e.org/wave.jpg", "alt": "A wave", "title": "", "caption": "A high wave"}]
    assert [one["url"] for one in found.videos] == ["https://www.youtube.com/embed/abc12345678"]


def test_one_value_of_the_metadata_can_be_asked_for() -> None:
    """The metadata are read for it."""
    with Extractor(Config(tags_field="tags", site_name_field="site")) as extractor:
        [found] = extractor.extract([page("")])

    assert (OUTPUT_FIELDS["tags"].value(found), OUTPUT_FIELDS["site_name"].value(found)) == (["sea"], "Harbour")
