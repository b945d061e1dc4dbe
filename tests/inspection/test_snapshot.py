"""The snapshot of a page shows all of its blocks and has nothing that runs, loads or leads away."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from lxml import html as lxml_html

from scrapy_dripper import Config, Document
from scrapy_dripper.inspection.look import MARK, STYLE, snapshot, style_sheets
from scrapy_dripper.page import Page, PageError, read
from tests.html_strategies import documents


def page_of(html: str) -> Page:
    return read(Document(html), Config())


def marked(picture: str) -> dict[int, str]:
    """Return the letters and digits of each marked block."""
    texts: dict[int, str] = defaultdict(str)
    for element in lxml_html.document_fromstring(picture).iter():
        if element.get(MARK):
            texts[int(element.get(MARK))] += "".join(filter(str.isalnum, element.text_content()))
    return texts


@given(documents())
def test_each_block_is_marked_with_its_own_text(html: str) -> None:
    try:
        page = page_of(html)
    except PageError:
        return

    texts = marked(snapshot(page))

    assert {i: texts[i] for i in sorted(texts)} == {
        i: "".join(filter(str.isalnum, text)) for i, text in enumerate(page.blocks.text, 1)
    }


def test_a_block_that_fills_its_element_is_marked_there_and_pieces_of_others_are_wrapped() -> None:
    picture = snapshot(page_of("<div><p class=lead>Alone in here</p>loose text <b>bold</b> on it</div>"))

    assert f'<p class="lead" {MARK}="1">Alone in here</p>' in picture
    assert picture.count(f'<dripper-piece {MARK}="2">') == 3


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>ran(1)</script>",
        "<img src=https://e.org/i.png srcset='https://e.org/i.png 2x' onerror=ran(1)>",
        "<img src='data:image/svg+xml,<svg onload=ran(1)>'>",
        "<iframe src=https://e.org srcdoc='<script>ran(1)</script>'></iframe>",
        "<meta http-equiv=refresh content='0;url=https://e.org'><base href=https://e.org target=_top>",
        "<link rel=stylesheet href=https://e.org/s.css>",
        "<form action=https://e.org><button formaction='javascript:ran(1)'>go</button><input name=body></form>",
        "<a href='javascript:ran(1)' target=_top ping=https://e.org>out</a>",
        "<object data=https://e.org/x></object><embed src=https://e.org/x>",
        "<video src=https://e.org/v poster=https://e.org/p autoplay></video>",
        "<svg><a xlink:href='javascript:ran(1)'><text>x</text></a></svg>",
        "<div style='background:url(https://e.org/b.png)' onclick=ran(1)>x</div>",
        "<noscript><p title='</noscript><img src=x onerror=ran(1)>'>x</p></noscript>",
        "<dripper-piece data-dripper-block=7>x</dripper-piece>",
        "<p data-dripper-block=7 data-dripper-label=main>x</p>",
    ],
)
def test_nothing_runs_loads_or_leads_away(hostile: str) -> None:
    root = lxml_html.document_fromstring(snapshot(page_of(f"<p>Some text</p>{hostile}<p>More text</p>")))

    names = {name for element in root.iter() for name in element.attrib}
    values = [value for element in root.iter() for name, value in element.items() if name != "title"]
    tags = {str(element.tag) for element in root.iter()}
    assert tags.isdisjoint("script iframe meta base link form object embed video svg noscript".split())
    assert not any(name.startswith("on") for name in names)
    assert names.isdisjoint("src srcset srcdoc action formaction poster ping name style target".split())
    assert "data-dripper-label" not in names
    assert not [value for value in values if "e.org" in value or "ran(" in value]
    assert {element.get("href") for element in root.iter("a")} <= {"#", None}
    assert 7 not in marked(lxml_html.tostring(root, encoding="unicode"))


def test_small_pictures_and_styles_of_the_page_itself_stay() -> None:
    """The outer document sets the styles, because its policy forbids style attributes."""
    html = """<html dir=rtl lang=ar><style media=print>p { color: red }</style><style>
    @import "https://e.org/s.css"; p { background: url(https://e.org/i.png) url("data:image/png;base64,AA") }</style>
    <p style="color: green">Some text<img src="data:image/png;base64,AAAA" alt=dot></p>"""

    picture = snapshot(page_of(html))

    assert '<html dir="rtl" lang="ar">' in picture
    assert f'{STYLE}="color: green"' in picture
    assert 'src="data:image/png;base64,AAAA"' in picture
    (print_only, screen) = style_sheets(Document(html), Config())
    assert print_only == ("print", "p { color: red }")
    assert 'p { background: none url("data:image/png;base64,AA") }' in screen[1]
