"""Images and players have their real URLs, or none."""

from __future__ import annotations

from urllib.parse import urljoin

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from scrapy_dripper.structures.images import (
    LAZY_SOURCES,
    PLAYER_TAGS,
    emoji,
    image,
    largest,
    player,
    same_image,
)
from scrapy_dripper.structures.items import Audio, Image, Video
from tests.output.forms import forms_of

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


def element(html: str) -> etree._Element:
    return lxml.html.fragment_fromstring(html)


def resolve(url: str) -> str:
    return urljoin("https://example.org/a/b", url)


def src(html: str) -> str | None:
    found = image(element(html), resolve)
    return None if found is None else found.src


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("src=/photo?id=3", "https://example.org/photo?id=3"),
        # What loads late comes before what is there already: that may be a small blurred copy.
        ("src=/small.jpg data-src=/i.png", "https://example.org/i.png"),
        ("data-lazy-src=/i.png data-src=''", "https://example.org/i.png"),
        ("src=/i.png srcset='/1.png 100w, /2.png 200w'", "https://example.org/i.png"),
        (f"src={PIXEL} data-unheard-of='/i.png?w=3'", "https://example.org/i.png?w=3"),
        (f"src={PIXEL} data-src={PIXEL} data-page='/about.html'", None),
        # No addresses.
        ("", None),
        ("src=''", None),
        ("src='/'", None),
        ("src=about:blank", None),
        ("src=blob:https://example.org/1", None),
        ("src='javascript:x()'", None),
        ("src='${src}'", None),
        # Placeholders by their names, and pictures of about the same names.
        ("src=/img/blank.png?v=2", None),
        ("src=/img/lazy-load.svg", None),
        ("src=/img/placeholder-800x600.jpg", None),
        ("src=/img/loader.gif", None),
        ("src=/img/pixel.jpg", "https://example.org/img/pixel.jpg"),
        ("src=/img/spinner.jpg", "https://example.org/img/spinner.jpg"),
        ("src=/img/blanket.png", "https://example.org/img/blanket.png"),
        ("src=/img/blank-form.png", "https://example.org/img/blank-form.png"),
        ("src=/img/f1.gif", "https://example.org/img/f1.gif"),
        # Pixels that count visits.
        ("src=/count.php?i=1 height=0", None),
        ("src=/map.png width=100% height=10", "https://example.org/map.png"),
    ],
)
def test_address(attributes: str, expected: str | None) -> None:
    """The URL is the first usable one in the order of the docstring. Each lazy attribute is before ``src``."""
    assert src(f"<img {attributes}>") == expected
    assert {src(f"<img src=/small.jpg {name}=/i.png>") for name in LAZY_SOURCES} == {"https://example.org/i.png"}


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ("class='card__icon' src=/shield.png alt='Shield Icon'", False),
        ("src=/images/icons/arrow.svg alt=More", False),
        ("src=/forum/images/buttons/quote.gif alt='Reply With Quote'", False),
        ("src=/images/button-states.png alt='The three states of a button'", True),
        ("src=/icon-garantie.svg?v=2 alt=Garantie", False),
        ("class='photo has-icon' src=/i.png alt=Pier", True),
        ("class=icon-shield src=/i.png alt=Pier", False),
        ("src=/i.png alt='' aria-hidden=true", False),
        ("src=/i.png alt='' aria-hidden=true width=90", False),
        ("src=/i.png alt='' aria-hidden=true width=120", True),
        ("src=/i.png alt='' width=24 height=24px", False),
        ("src=/i.png alt='A chart' aria-hidden=true", True),
        ("src=/i.png alt=''", True),  # as most photographs have it
        ("src=/i.png width=24 height=300", True),
        ("src=/i.png alt='Level 3' width=24 height=24", True),
        ("src=/photos/iconic-tower.jpg class=iconic-photo", True),
        ("src=/app-icon.png alt='The new icon'", True),
        ("src=/img/divider.gif", False),
        ("src=/img/arrow-left_red2.png", False),
        ("src=/img/64ca5799dbd70f68dfa6a7db_Tick-White.svg", False),
        ("src=/img/printButton.png alt=''", False),
        ("src=/img/arrow-left.png alt='The way to the left'", True),
        ("src=/img/finish-line.png", True),
        ("src=/img/line.jpg", True),
        ("src=/img/borders-of-prussia.png", True),
    ],
)
def test_decoration(attributes: str, kept: bool) -> None:
    """Icons, avatars and decorative images are not content."""
    assert (image(element(f"<img {attributes}>"), str) is not None) == kept


@pytest.mark.parametrize(
    ("attributes", "alt", "title"),
    [
        ("alt='The pier' title='The pier'", "The pier", ""),
        ("alt='The pier' title='In 1912'", "The pier", "In 1912"),
        ("alt='D501F6EB-868E.thumb.png' title=Pier", "", "Pier"),
        ("alt='Version 2.0 of pier.png'", "Version 2.0 of pier.png", ""),
    ],
)
def test_words_of_an_image(attributes: str, alt: str, title: str) -> None:
    """Repeated texts are written once, and file names are ignored."""
    found = image(element(f"<img src=/i.png {attributes}>"), str)
    assert found == Image("/i.png", alt, title)


def test_picture() -> None:
    """For a ``<picture>``, use its ``<img>``, or else the largest candidate of the first usable source."""
    sources = "<source srcset=''><source srcset='/1.webp 1x, /2.webp 2x'><source srcset=/3.jpg>"
    assert src(f"<picture>{sources}<img src=/i.png></picture>") == "https://example.org/i.png"
    assert src(f"<picture>{sources}<img src={PIXEL}></picture>") == "https://example.org/2.webp"
    assert src(f"<picture>{sources}</picture>") == "https://example.org/2.webp"
    found = image(element(f"<picture>{sources}<img alt=' a\n b' title=t></picture>"), resolve)
    assert found == Image("https://example.org/2.webp", "a b", "t")


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


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("alt=' ✅ '", "✅"),
        ("alt=':-)'", ""),
        ("alt='A party 🎉'", ""),
        ("alt=猫", ""),
        ("class=emoji", ""),
    ],
)
def test_emoji(attributes: str, expected: str) -> None:
    """An image that stands for a character becomes that character."""
    assert emoji(element(f"<img {attributes}>")) == expected


@pytest.mark.parametrize(("src", "speaks"), [("/images/icons/yes.svg", True), ("/forum/images/buttons/yes.gif", False)])
def test_an_icon_speaks_for_its_cell_and_a_button_does_not(src: str, speaks: bool) -> None:
    """Feature tables have check marks. Old forums are tables, with a button below each post."""
    html = f"<table><tr><th>Feature<th>Here<tr><td>Trains<td><a href=/x><img src={src} alt=Yes></a></table><p>Text."
    assert ("Yes" in forms_of(html).markdown) == speaks


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<video src=/v.mp4 poster=/p.jpg title=T></video>", Video("/v.mp4", "/p.jpg", "T")),
        ("<video poster=data:image/png;base64,AA><source src=/v.webm><source src=/v.mp4></video>", Video("/v.webm")),
        ("<video src='blob:https://example.org/1'></video>", None),
        ("<audio></audio>", None),
        ("<iframe src='https://notyoutube.com/x'></iframe>", None),
        ("<iframe src='http://[x/'></iframe>", None),
        ("<iframe src=/page></iframe>", None),
        (
            "<lite-youtube videoid=x playlabel='Play: T'></lite-youtube>",
            Video("https://www.youtube.com/watch?v=x", title="Play: T"),
        ),
        ("<amp-youtube data-videoid=x></amp-youtube>", Video("https://www.youtube.com/watch?v=x")),
        ("<lite-youtube></lite-youtube>", None),
    ],
)
def test_player(html: str, expected: Video | Audio | None) -> None:
    """Videos and sounds with a URL, and frames of sites with players."""
    found = element(html)
    assert found.tag in PLAYER_TAGS
    assert player(found, str) == expected
