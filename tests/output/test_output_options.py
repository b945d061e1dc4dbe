"""The options of the output, and the values that items get."""

from __future__ import annotations

import json
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper import Extractor, extract, markdown
from scrapy_dripper.cli import main
from scrapy_dripper.config import OUTPUT_FIELDS, Config
from scrapy_dripper.data import Document, Extraction, FallbackReason, nothing
from scrapy_dripper.fallback import fall_back
from scrapy_dripper.output import Written
from scrapy_dripper.output.content_json import from_json
from scrapy_dripper.structures.items import Image, Text, Title
from tests.output.forms import forms_of

URL = "https://example.org/news/1"
SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
PAGE = f"""<!doctype html><html lang="en-GB"><head><title>Tides | Sand</title>
<link rel="canonical" href="https://example.org/tides"><meta name="author" content="Ada Marsh">
<meta property="og:site_name" content="Sand"><meta property="og:title" content="Tides">
<meta property="og:image" content="/tide.png"><meta name="description" content="About the sea.">
<meta property="article:published_time" content="2024-05-01T10:00:00Z"></head><body><article>
<h1>Tides</h1><p>{SENTENCE * 3}</p><h2>High</h2><p>{SENTENCE * 3} <a href="/more">more</a></p><img src="/a.png">
<table><tr><th>a<th colspan=2>b<tr><td>1<td>2<td>3</table><ul><li>{SENTENCE}</ul></article></body></html>"""


def run(**options: Any) -> Written:
    return forms_of(PAGE, URL, **options)


def test_html2text_stays() -> None:
    """The papers' form of Markdown is available, with and without links."""
    assert "* The tide" in run(markdown="html2text").markdown
    assert "[more](https://example.org/more)" in run(markdown="html2text").markdown
    assert "](" not in run(markdown={"writer": "html2text", "links": "drop"}).markdown.replace("![](", "")


def test_only_some_types() -> None:
    """The option applies to the content list, Markdown and text. Main-HTML is not filtered."""
    found = run(markdown={"types": "title, list"})

    assert [item.type for item in found.content] == ["title", "title", "list"]
    assert found.text.splitlines()[:2] == ["Tides", "High"]
    assert found.markdown.startswith("# Tides\n\n## High\n\n- ")  # what is in a list stays with it
    assert found.main_html == run().main_html
    assert len(run(markdown={"types": ["title", "list", "paragraph"]}).text.splitlines()) == 5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("image,title", ("title", "image")),
        (("title", "title"), ("title",)),
        ("", None),
        (None, None),
    ],
)
def test_content_types(value: Any, expected: Any) -> None:
    assert Config(markdown={"types": value}).markdown.types == expected


# ---------------------------------------------------------------------- fallbacks
@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
def test_fallbacks_have_a_content_list_too(fallback: str) -> None:
    """It is read from the HTML that they return, and the same code writes the Markdown and keeps to types."""

    def found(**options: Any) -> tuple[list[Any], str, str]:
        config = Config(fallback=fallback, markdown=options, content_field="c")
        one = fall_back(Document(PAGE, URL), config, FallbackReason.NO_BLOCKS)
        return one.content or [], one.markdown or "", one.text or ""

    content, written, _ = found(links="drop")
    assert Title(2, (Text("High"),)) in from_json(content)
    assert "paragraph" in [item["type"] for item in content]
    assert "## High" in written
    assert "](https://example.org/more)" not in written

    _, written, text = found(types=["title"])
    assert written.endswith("## High")
    assert text.endswith("High")
    assert "sandcastle" not in written + text


def extraction(html: str, url: str) -> Extraction:
    return Extraction(url, None, "<p>a <img src=/i.png></p>", "own", "own", "own")


def test_the_content_list_of_a_callable() -> None:
    """It is only created if an item needs it. The callable's own output is not changed."""
    config = Config(fallback=extraction)
    assert fall_back(Document(PAGE, URL), config, FallbackReason.NO_BLOCKS).content is None
    found = fall_back(Document(PAGE, URL), Config(fallback=extraction, content_field="c"), FallbackReason.NO_BLOCKS)
    assert found.content is not None
    assert Image("https://example.org/i.png") in from_json(found.content)[0].runs  # type: ignore[union-attr]
    assert (found.markdown, found.text) == ("own", "own")


# ---------------------------------------------------------------------- items
def test_json_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the content list and the metadata on request. Options of Markdown are flags."""
    file = tmp_path / "page.html"
    file.write_text(PAGE, encoding="utf-8")
    arguments = ["extract", str(file), "-f", "jsonl", "--url", URL]

    assert main([*arguments, "--content", "--metadata", "--links", "drop"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metadata"]["author"] == "Ada Marsh"
    assert record["metadata"]["authors"] == ["Ada Marsh"]
    assert (record["metadata"]["date"], record["metadata"]["breadcrumbs"]) == ("2024-05-01", [])
    assert {"title", "paragraph"} <= {item.type for item in from_json(record["content"])}
    assert "](https://example.org/more)" not in record["markdown"]

    assert main([*arguments, "--types", "paragraph"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert "sandcastle" in record["markdown"]
    assert "High" not in record["markdown"]
    assert not {"content", "metadata"} & set(record)


def test_callouts() -> None:
    """Call-outs are GitHub alerts or quotations with a title, as configured for the crawl or the request."""
    html = '<article><p>Before.</p><div class="admonition tip"><p class="admonition-title">Tip</p><p>Wax it.</p></div>'
    assert forms_of(html).markdown == "Before.\n\n> [!TIP]\n> Wax it."
    assert forms_of(html, markdown={"callouts": "quotes"}).markdown == "Before.\n\n> **Tip**\n>\n> Wax it."
    assert forms_of(html).text == "Before.\nTip\nWax it."


# ---------------------------------------------------------------------- scrapy_dripper.markdown
def test_markdown_has_the_options_of_the_setting() -> None:
    """Its arguments are the keys of DRIPPER_MARKDOWN, with the same defaults."""
    _, *arguments = signature(markdown).parameters.values()
    keys = fields(Config().markdown)

    assert {one.name: one.default for one in arguments} == {key.name: key.default for key in keys[1:]}
    assert keys[0].name == "writer"


def test_markdown_of_an_extraction_of_a_content_list_and_of_json() -> None:
    extraction = extract(PAGE, URL)
    assert extraction.content is not None
    expected = run(markdown={"links": "drop", "types": ["title", "paragraph"]}).markdown

    for content in (extraction, extraction.content, from_json(extraction.content)):
        assert markdown(content, links="drop", types=["title", "paragraph"]) == expected
    assert markdown(extraction) == extraction.markdown
    assert markdown(extraction, front_matter=True).startswith("---\ntitle:")
    with pytest.raises(ValueError, match="front_matter needs an extraction"):
        markdown(extraction.content, front_matter=True)
    with pytest.raises(ValueError, match="has no content list"):
        markdown(nothing(URL, None, None))
    with pytest.raises(ValueError, match=r"links.* must be one of 'keep', 'drop', 'citations' .*did you mean drop"):
        markdown(extraction, links="dropp")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="for the HTML of a page, there is extract"):
        markdown("<p>A page.</p>")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- parts of a page as fields
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
    found = extract(page(comments), comments=option)

    assert found.comments == expected
    assert (SAID[0] in found.text) == (option == "keep" and bool(comments))


def test_a_thread_has_no_comments() -> None:
    """Its posts are the main content."""
    thread = "".join(comment(name, day, SAID[0] * 3) for day, name in enumerate(("Ann", "Bob", "Cy", "Dee"), 1))
    linked = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'

    found = extract(f"{linked}<h1>Tides</h1><ol class=comments>{thread}</ol>", comments="keep")

    assert SAID[0] in found.text
    assert found.comments == []


def test_images_and_videos() -> None:
    """Each URL once, with its caption."""
    found = extract(page(""), url="https://e.org/tides")

    assert found.images == [{"url": "https://e.org/wave.jpg", "alt": "A wave", "title": "", "caption": "A high wave"}]
    assert [one["url"] for one in found.videos] == ["https://www.youtube.com/embed/abc12345678"]


def test_one_value_of_the_metadata_can_be_asked_for() -> None:
    """The metadata are read for it."""
    with Extractor(Config(tags_field="tags", site_name_field="site")) as extractor:
        [found] = extractor.extract([page("")])

    assert (OUTPUT_FIELDS["tags"].value(found), OUTPUT_FIELDS["site_name"].value(found)) == (["sea"], "Harbour")
