"""Labels that are scrambled with UUIDs, lists of fields for scripts, and placeholder text."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from lxml.html import document_fromstring

from scrapy_dripper.engines.machine_text import without_machine_text
from scrapy_dripper.page.blocks import cut

IDS = [str(UUID(int=2**127 + 7919 * i)) for i in range(9)]


def kept(body: str) -> list[bool]:
    """Return the labels of the blocks of a page that were all main."""
    page = cut(document_fromstring(f"<body>{body}</body>"), "")
    return without_machine_text(page, np.ones(len(page.blocks), dtype=np.bool_)).tolist()


@pytest.mark.parametrize("between", ["", " "])
def test_a_scrambled_label_is_left_out(between: str) -> None:
    letters = between.join(
        f"<span class=a>{letter}</span>{between}<span class=b>{one}</span>"
        for letter, one in zip("Sponsored", IDS, strict=True)
    )
    assert kept(f"<h2>Similar items</h2><div>{letters}</div><p>A chain.</p>") == [True, False, True]


@pytest.mark.parametrize(
    "body",
    [
        f"<p>The disks {IDS[0]}, {IDS[1]}, {IDS[2]}, {IDS[3]} and {IDS[4]} have failed.</p>",
        f"<p>{' '.join(IDS[:3])}</p>",
        f"<pre>{chr(10).join(IDS)}</pre>",
        f"<table><tr><td>{' '.join(IDS)}<td>b<tr><td>c<td>d</table>",
        f"<p>{'a-b-c-d-e ' * 20}</p>",
    ],
    ids=["a sentence", "a few", "code", "a table", "hyphens"],
)
def test_other_uuids_are_kept(body: str) -> None:
    assert all(kept(f"<h1>Disks</h1>{body}"))


FIELDS = "".join(f"<dt>thumb_{i}:</dt><dd>https://cdn.example/{i}/a.jpg?v={i}</dd>" for i in range(9))


def test_a_list_of_fields_is_left_out_whole() -> None:
    body = f"<p>A chair of oak.</p><dl class=hide>{FIELDS}<dt>tab_details:</dt><dd>TRUE</dd></dl><p>Two years.</p>"
    assert [i for i, one in enumerate(kept(body)) if one] == [0, len(kept(body)) - 1]


@pytest.mark.parametrize(
    "body",
    [
        FIELDS.replace("dt>", "h3>").replace("dd>", "p>"),
        f"<dl>{FIELDS[: FIELDS.index('thumb_7')]}</dl>",
        f"<dl>{FIELDS}{'<dt>Oak</dt><dd>Comes from the old forest</dd>' * 40}</dl>",
        f"<dl>{FIELDS.replace('<dd>', '<dd><a href=/>').replace('</dd>', '</a></dd>')}</dl>",
        f"<dl>{FIELDS.replace('.jpg', '/page')}</dl>",
    ],
    ids=["not a list", "a few", "mostly text", "links", "other URLs"],
)
def test_other_lists_are_kept(body: str) -> None:
    assert all(kept(f"<h1>Chairs</h1>{body}"))


LOREM = "Lorem ipsum dolor sit amet, consectetur adipiscing elit"


@pytest.mark.parametrize(
    ("title", "body", "placeholder"),
    [
        ("Chairs", f"<p>{LOREM}</p>", False),
        ("The origin of Lorem ipsum", f"<p>{LOREM}</p>", True),
        ("Chairs", f"<pre>{LOREM}</pre>", True),
        ("Chairs", f"<p>A template begins with {LOREM}</p>", True),
    ],
)
def test_placeholder_text_is_left_out_unless_the_page_is_about_it(title: str, body: str, placeholder: bool) -> None:
    text = "<p>A chair of oak stands in the hall, and another one in the kitchen.</p>"
    assert kept(f"<title>{title}</title><h1>Chairs</h1>{body}{text}") == [True, placeholder, True]


def test_placeholder_text_is_kept_if_there_is_little_else() -> None:
    """A page for tests is made of it. A text that a template repeats counts once."""
    text = "<p>A chair of oak stands in the hall, and another one in the kitchen.</p>"
    assert all(kept(f"<h1>Chairs</h1><p>{LOREM}</p>"))
    assert kept(f"<h1>Chairs</h1>{f'<p>{LOREM}</p>' * 4}{text}") == [True, False, False, False, False, True]
