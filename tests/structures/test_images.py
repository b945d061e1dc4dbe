"""Addresses of images, beside tests/structured/variants/pictures.html and players.html."""

from __future__ import annotations

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from scrapy_dripper.structures.images import (
    LAZY_SOURCES,
    image,
    largest,
    player,
    same_image,
)
from scrapy_dripper.structures.items import Image, Video


def element(html: str) -> etree._Element:
    return lxml.html.fragment_fromstring(html)


def test_lazy_sources_come_before_src() -> None:
    """What loads late comes before what is there already: that may be a small blurred copy."""
    found = {image(element(f"<img src=/small.jpg {name}=/i.png>"), str) for name in LAZY_SOURCES}
    assert found == {Image("/i.png")}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<video src=/v.mp4 poster=/p.jpg title=T></video>", Video("/v.mp4", "/p.jpg", "T")),
        ("<video poster=data:image/png;base64,AA><source src=/v.webm></video>", Video("/v.webm")),
    ],
)
def test_poster_of_a_video(html: str, expected: Video) -> None:
    assert player(element(html), str) == expected


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ("a.png 1.5x, b.png 1x", "a.png"),
        ("a.png 10w 20h, b.png 30w 5h", "b.png"),
        ("a.png, b.png", "a.png"),
        (" \n a.png   2x\n,\n b.png 3x ,", "b.png"),
        ("a.png huge, b.png 0x", "a.png"),
        (",", ""),
    ],
)
def test_largest(candidates: str, expected: str) -> None:
    """Commas within URLs do not end them. Of equal candidates, the first one counts."""
    assert largest(candidates) == expected


@given(st.text(st.sampled_from("a, 12xwh.\n"), max_size=40))
def test_largest_is_of_the_candidates(candidates: str) -> None:
    """For any text, the result is a part of it."""
    assert largest(candidates) in candidates


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/a/i.jpg", "/a/i.jpg", True),
        ("/a/i.jpg?w=300", "/a/i.jpg#x", True),
        ("/a/i-300x200.jpg", "/a/i-scaled.jpg", True),
        ("/a/i.jpg", "/b/i.jpg", False),
        ("/a/i-1.jpg", "/a/i-2.jpg", False),
    ],
)
def test_same_image(one: str, other: str, same: bool) -> None:
    """Two URLs that only differ in size are the same image."""
    assert same_image(Image(one), Image(other)) is same
