"""Every form of the output is limited in proportion to the page, for the model and for every fallback."""

from __future__ import annotations

import json
import tracemalloc
from functools import cache
from typing import Any

import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction, FallbackReason
from scrapy_dripper.output import SMALLEST_PAGE, most_chars
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.items import Cell, Paragraph, Table, Text
from scrapy_dripper.structures.tables import linear, table_html
from scrapy_dripper.testing import FakeEngine
from tests.security.checks import Silent

URL = "https://example.org/" + "path/" * 300
FACTOR = Config().limits.output

_quotes = "<blockquote>" * 10
PAGES = {
    "a ragged table": f"<table><tr>{'<th>x' * 400}{'<tr><td>x<td>y' * 400}</table>",
    "spans": f"<table><tr>{'<td>x' * 1_000}{'<tr><td colspan=1000>y' * 100}</table>",
    "a long text that spans": f"<table><tr>{'<td>x' * 1_000}<tr><td colspan=1000>{'word ' * 3_000}</table>",
    "a long text beside rows": f"<table><tr><td rowspan=65000>{'word ' * 3_000}<td>y{'<tr><td>y' * 500}</table>",
    "<base>": f"<base href='https://example.org/{'a/' * 2_000}'>" + "<a href=x>y</a> " * 500,
    "links": "<p><a href=x>y</a>" * 400,
    "images": "<p>a<img src=x.png alt=y>" * 250,
    "candidates of an image": f"<p>words<img src=x.png alt=y srcset='{'x.png 1w, ' * 500}'>",
    "players": "<p>a<video src=x.mp4></video>" * 250,
    "a link around images": f"<p>words</p><a href='http://e.org/{'a' * 8_000}'>"
    + "<p><img src=http://e.org/a.png><p><img src=http://e.org/b.png>" * 100,
    "a title around paragraphs": f"<p>words</p><a href=/x title='{'word ' * 99}'>" + "<p>*" * 300,
    "formats around paragraphs": "<sub><sup>" * 6 + "<p>a" * 400,
    "quotes around code": f"<p>x</p>{_quotes}<pre>a{chr(10) * 20_000}a</pre>",
    "lists around code": f"<p>x</p>{'<ul><li>' * 10}<pre>" + "a\n" * 9_000 + "</pre>",
    "tables in tables": ("<table><tr><th>a<th>b<tr><td>" * 6 + "&quot;$" * 20 + "</table>" * 6) * 20,
    "letters": "<p>a" * 1_000,
}
WAYS: dict[str, dict[str, Any]] = {
    "all main": {},
    "linear": {"markdown": {"tables": "linear", "links": "citations"}, "absolute_urls": True},
    "truncate": {"oversize": "truncate", "markdown": {"tables": "linear"}},
    "html": {"fallback": "html"},
    "trafilatura": {"fallback": "trafilatura"},
}


@cache
def extractor(way: str) -> Extractor:
    engine = Silent() if way in ("html", "trafilatura") else FakeEngine()
    return Extractor(Config(processes=0, content_field="content", **WAYS[way]), engine=engine)


def forms(found: Extraction) -> dict[str, str]:
    """Return all forms of an extraction."""
    content = json.dumps(found.content or [], ensure_ascii=False, separators=(",", ":"))
    return {
        "html": found.main_html or "",
        "markdown": found.markdown or "",
        "text": found.text or "",
        "content": content,
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PAGES)
def test_no_form_is_longer_than_its_bound(name: str, way: str) -> None:
    """No intermediate result is much longer either, and the output is never empty. Tracing memory takes most of the
    time, so it is done for one way.
    """
    page = PAGES[name]
    engine = extractor(way)
    engine.extract(["<p>Words that warm it up.</p>"])
    if way == "all main":
        tracemalloc.start()
    (found,) = engine.extract([Document(page, URL)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lengths = {form: len(text) for form, text in forms(found).items()}

    assert max(lengths.values()) <= FACTOR * len(page), lengths
    assert found.main_html
    assert peak < 20_000_000 + 1_500 * len(page)


def test_the_error_names_the_setting_that_is_exceeded() -> None:
    """The error comes first. The fallback's output is then cut for the same reason, as its meta field says."""
    page = PAGES["formats around paragraphs"]
    (found,) = Extractor(Config(fallback="html"), engine=FakeEngine()).extract([page])

    assert found.fallback_reason is FallbackReason.OVERSIZE
    assert found.error == (
        f"the content list would have over {20 * len(page):,} characters: "
        f'DRIPPER_LIMITS["output"] = 20 times the {len(page):,} of the page'
    )
    assert found.truncated
    assert found.markdown


def test_oversize_output_can_be_cut() -> None:
    page = PAGES["formats around paragraphs"]
    (found,) = Extractor(Config(oversize="truncate"), engine=FakeEngine()).extract([page])

    assert found.fallback_reason is None
    assert found.truncated
    assert 50 < (found.text or "").count("a") < 400
    assert (found.main_html or "").count("<p>") == (found.text or "").count("a")  # all forms are of the same part


def test_output_that_cannot_be_cut_is_empty() -> None:
    """The extraction has the reason. A single text cannot be divided further."""
    page = f"<table><tr><th rowspan=2>a<th>b<tr><td>{'$' * 5_000}</table>"
    (found,) = Extractor(
        Config(oversize="truncate", limits={"output": 1}, fallback="empty"), engine=FakeEngine()
    ).extract([page])

    assert (found.main_html, found.markdown, found.text) == ("", "", "")
    assert found.fallback_reason is FallbackReason.OVERSIZE
    assert 'DRIPPER_LIMITS["output"] = 1' in (found.error or "")


def test_few_words_have_room() -> None:
    """Pages of fewer than a thousand characters count as a thousand."""
    (found,) = Extractor(engine=FakeEngine()).extract([Document("<p>a <a href=x>b</a>", URL)])

    assert found.fallback_reason is None
    assert found.markdown == f"a [b]({URL}x)"
    assert most_chars(5, 20) == 20 * SMALLEST_PAGE


def test_links_stay_as_they_are_where_they_would_multiply() -> None:
    """The first links are absolute, and no link is missing."""
    (found,) = Extractor(engine=FakeEngine()).extract([Document("<p><a href=page>words</a>" * 2_000, URL)])
    markdown = found.markdown or ""

    assert markdown.startswith(f"[words]({URL}page)\n")
    assert markdown.endswith("[words](page)")
    assert markdown.count("[words](") == 2_000


def test_a_table_is_filled_up_only_where_that_is_little() -> None:
    """A few short rows are padded. If most cells would be padding, the table is HTML or its rows stay short."""
    short = "<table><tr><th>a<th>b<th>c<tr><td>d<tr><td>e<td>f</table>"
    (table,) = content_list(parse(short))
    assert markdown((table,)) == "| a | b | c |\n| --- | --- | --- |\n| d |  |  |\n| e | f |  |"

    long = f"<table><tr>{'<th>x' * 500}{'<tr><td>a' * 500}<tr><td>a<td>b</table>"
    (table,) = content_list(parse(long))
    assert isinstance(table, Table)
    assert not table.simple
    assert markdown((table,)) == table_html(table)
    assert [len(row) for row in table.rows] == [500, *[1] * 500, 2]
    lines = markdown((table,), tables="linear").splitlines()
    assert len(lines) == 503
    assert lines[-2:] == ["| a |", "| a | b |"]


def test_a_long_cell_is_not_repeated_for_ever() -> None:
    """In a simple table, short cells are repeated over their span, and long ones occur once."""
    rows = tuple((Cell((Paragraph((Text(text),)),), colspan=100),) for text in ("short", "long " * 5_000))

    assert [len(row) for row in linear(Table(rows)).rows] == [100, 1]
