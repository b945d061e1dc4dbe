"""The fallbacks ``readability``, ``justext`` and ``title_paragraphs``, and methods as engines, without a model."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from hypothesis import given, settings

from scrapy_dripper import Config, Document, Extraction, Extractor
from scrapy_dripper.checks import METHODS
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.fallback import fall_back
from scrapy_dripper.fallback.methods import MAX_PARAGRAPHS
from tests.crawl.crawling import Crawls, Site, spider
from tests.html_strategies import documents

NAMES = ["readability", "justext", "title_paragraphs"]
SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
GERMAN = "Die Flut kommt zweimal am Tag, und jede Sandburg an diesem Strand muss mit ihr rechnen, so wie es war. "
CHINESE = (
    "潮水每天涨落两次，这片沙滩上的每座沙堡都要算上这一点。"
    + "孩子们第二天早上又建起新的城墙和塔楼，直到海水再来。" * 2
)


def page(sentence: str = SENTENCE, lang: str = "en", more: str = "") -> str:
    return f"""<!DOCTYPE html><html lang="{lang}"><head><title> Tides &amp; sand </title><script>x = 1</script></head>
<body>Top<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h2>High water</h2><p onclick="x()">{sentence * 3}<b>Mind</b> the <a href="/gap">gap</a>.</p>
<p>{sentence * 4}</p>{more}<p>{sentence * 3} a &lt;b&gt;</p></article>
<footer><div>Imprint</div></footer></body></html>"""


def extracted(name: str, html: str, **options: Any) -> Extraction:
    if name == "readability":
        pytest.importorskip("readability")
    config = Config(fallback=name, content_field="content", **options)
    return fall_back(Document(html, "http://example.com/"), config, FallbackReason.TIMEOUT)


@pytest.mark.parametrize("name", NAMES)
def test_an_article(name: str) -> None:
    """Text, Markdown and Main-HTML have the paragraphs, and nothing that could run."""
    found = extracted(name, page())

    assert (found.source, found.title, found.error) == (f"fallback:{name}", "Tides & sand", None)
    assert found.content
    for output in (found.text, found.markdown, found.main_html):
        assert str(output).count("sandcastle") == 10
        assert "Imprint" not in str(output)
        assert "onclick" not in str(output)
        assert "x = 1" not in str(output)
    assert "a <b>" in str(found.text)


@pytest.mark.parametrize(
    ("name", "form", "kept", "left"),
    [
        ("readability", "markdown", "**Mind** the [gap](http://example.com/gap)", "Imprint"),
        ("justext", "main_html", "<h2>High water</h2>", "<a"),
        ("justext", "text", "Mind the gap.", "Imprint"),
        ("title_paragraphs", "markdown", "# Tides & sand\n", "High water"),
        ("title_paragraphs", "text", "Tides & sand\n", "Top"),
    ],
)
def test_what_each_keeps(name: str, form: str, kept: str, left: str) -> None:
    """jusText keeps headings and no links, and the title is the first of its paragraphs."""
    found = str(getattr(extracted(name, page()), form))

    assert found.startswith(kept) if name == "title_paragraphs" else kept in found
    assert left not in found


@pytest.mark.parametrize("name", NAMES)
def test_control_characters_break_none(name: str) -> None:
    """lxml's parser accepts them, but lxml rejects them when text is set."""
    found = extracted(name, page(SENTENCE + "\x85\x1f&#11;").replace("sand</title>", "sand\x1b</title>"))

    assert (found.source, found.error) == (f"fallback:{name}", None)
    assert str(found.text).count("sandcastle") == 10


def test_a_page_without_a_title_has_paragraphs() -> None:
    assert extracted("title_paragraphs", "<p>One <i>more</i></p><div>no</div><p>Two</p>").text == "One more\nTwo"


@pytest.mark.parametrize(
    ("lang", "sentence", "word"),
    [
        ("de", GERMAN, "Sandburg"),
        ("de-AT", GERMAN, "Sandburg"),
        ("", GERMAN, "Sandburg"),
        ("zh", CHINESE, "沙堡"),
        ("xx", SENTENCE, "sandcastle"),
    ],
)
def test_justext_takes_the_stop_words_of_the_page(lang: str, sentence: str, word: str) -> None:
    """With English stop words, text in other languages would count as boilerplate. Without a list, stop words are
    ignored.
    """
    assert str(extracted("justext", page(sentence, lang)).text).count(word) == 10


def test_justext_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It searches all paragraphs for the neighbours of each short one, so it gets parts of the page."""
    core = pytest.importorskip("justext.core")
    sizes: list[int] = []
    revise = core.revise_paragraph_classification

    def noted(part: list[Any]) -> None:
        sizes.append(len(part))
        revise(part)

    monkeypatch.setattr(core, "revise_paragraph_classification", noted)
    found = extracted("justext", page(more="<p>Cons</p>" * 6_000))

    assert str(found.text).count("sandcastle") == 10
    assert len(sizes) > 1
    assert max(sizes) <= MAX_PARAGRAPHS


def test_readability_does_not_clean_attributes_with_a_pattern() -> None:
    """Its pattern for attributes takes minutes for this tag."""
    hostile = "<p " + " ".join(f"x{i}=' style= onx '" for i in range(1_000)) + f">{SENTENCE * 2}</p>"

    assert "sandcastle" in str(extracted("readability", page(more=hostile)).text)


@pytest.mark.parametrize("name", [*NAMES, "r4"])
@pytest.mark.parametrize("html", ["<p></p>", "<frameset></frameset>", "<div>one two</div>", "<title>T</title>", "<hr>"])
def test_a_page_with_nothing_to_find_breaks_none(name: str, html: str) -> None:
    assert extracted(name, html).error is None


@pytest.mark.parametrize("name", [*NAMES, "r4"])
@settings(max_examples=40)
@given(documents())
def test_any_page(name: str, html: str) -> None:
    """What is extracted is text of the page, and no page breaks a fallback."""
    found = extracted(name, html)

    assert found.error is None or "PageError" in found.error
    assert set("".join(str(found.text).split())) <= set(html + unescape(html) + "\\")  # as in the LaTeX of a formula


# ---------------------------------------------------------------------- DRIPPER_ENGINE names a method
WITHOUT_EXTRA = [name for name, method in METHODS.items() if not method.module]
URL = "https://example.org/tides"


def extract(html: str | bytes, engine: str, *, own: Config | None = None, **options: object) -> Extraction:
    """Extract a document with a method as the engine. It has options of its own, or those of the extractor."""
    with Extractor(Config(engine=engine, processes=0, **options)) as extractor:  # type: ignore[arg-type]
        [found] = extractor.extract([Document(html, URL, config=own)])
    return found


@pytest.mark.parametrize("name", [*WITHOUT_EXTRA, "readability", "justext"])
def test_it_gives_what_the_fallback_of_this_name_gives(name: str) -> None:
    """Only who answered differs."""
    if METHODS[name].module:
        pytest.importorskip(METHODS[name].module)
    options = Config(fallback=name, content_field="content", metadata_field="metadata")
    as_fallback = fall_back(Document(page(), URL), options, FallbackReason.ENGINE_ERROR)

    found = extract(page(), name, content_field="content", metadata_field="metadata")

    assert (found.source, found.fallback_reason, found.error) == (name, None, None)
    assert found.metadata is not None
    assert found.metadata.title == "Tides & sand"
    for form in ("title", "main_html", "markdown", "text", "content"):
        assert getattr(found, form) == getattr(as_fallback, form), form
    assert str(found.text).count("sandcastle") == 10


def test_a_method_that_chooses_blocks_labels_them() -> None:
    found = extract(page(), "r4")

    assert len(found.labels) == found.details["blocks"] > found.main_blocks > 0


def test_a_document_can_have_a_method_of_its_own() -> None:
    """Other options of a document leave the extractor's engine as it is."""
    assert extract(page(), "tagger", own=Config(engine="title_paragraphs")).source == "title_paragraphs"
    assert extract(page(), "r4", own=Config(title_field="title")).source == "r4"


@pytest.mark.parametrize(
    ("html", "empty", "source", "reason"),
    [
        ("<div>one two</div>", "auto", "title_paragraphs", "no_main"),
        ("<div>one two</div>", "fallback", "fallback:html", "no_main"),
        ("", "auto", "fallback:empty", "empty_body"),
        (b"%PDF-1.7 \x00", "auto", "fallback:empty", "not_html"),
    ],
)
def test_what_it_finds_nothing_on(html: str | bytes, empty: str, source: str, reason: str) -> None:
    found = extract(html, "title_paragraphs", empty=empty, fallback="html")

    assert (found.source, found.fallback_reason) == (source, reason)


def test_what_it_fails_on_goes_to_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Extraction:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("scrapy_dripper.fallback.methods.by_r4", fail)
    found = extract(page(), "r4", fallback="html")

    assert (found.source, found.fallback_reason) == ("fallback:html", "engine_error")
    assert found.error == "ZeroDivisionError: by zero"


def test_a_page_over_the_limit_has_its_first_part() -> None:
    found = extract(page() * 3, "r4", limits={"bytes": len(page())})

    assert (found.source, found.truncated) == ("r4", True)
    assert str(found.text).count("sandcastle") == 10


def test_the_data_of_a_page_that_waits_for_its_script_are_read() -> None:
    data = f'<script type="application/ld+json">{{"@type": "Article", "articleBody": "{SENTENCE * 5}"}}</script>'

    found = extract(f"<title>T</title>{data}<div id=root></div>", "r4")

    assert (found.source, str(found.text).count("sandcastle")) == ("fallback:embedded", 5)


def test_r4_takes_the_arguments_of_its_paper() -> None:
    """With one candidate, one of two articles side by side is found. ``hr`` links are no group of links yet."""
    links = "".join(f'<a href="/{i}">Topic {i}</a> ' for i in range(8))
    one, two = (f"<article><p>{SENTENCE * n}</p><div>{links}more</div><p>{SENTENCE * n}</p></article>" for n in (4, 3))

    def count(word: str, **arguments: object) -> int:
        return str(extract(f"<body>{one}{two}</body>", "r4", methods=arguments).text).count(word)

    assert (count("sandcastle", c=1), count("sandcastle", c=10)) == (8, 14)
    assert (count("Topic", c=1), count("Topic", c=1, hr=8), count("Topic", c=1, tr=20)) == (0, 8, 8)


def test_a_crawl(crawl: Crawls, site: Site) -> None:
    """Trafilatura extracts the pages of a crawl in worker processes; a request can name another method."""
    site.routes |= {f"/{n}": ("text/html; charset=utf-8", page().encode()) for n in range(3)}
    urls = [site.url(f"/{n}") for n in range(3)]
    settings = {
        "DRIPPER_ENGINE": "trafilatura",
        "DRIPPER_META_FIELD": "by",
        "DRIPPER_PROCESSES": 1,
    }
    result = crawl(spider(urls), settings)
    other = crawl(spider(urls[:1], meta={"dripper": {"engine": "title_paragraphs"}}), settings)

    assert {item["by"]["source"] for item in result.items} == {"trafilatura"}
    assert all(item["markdown"].count("sandcastle") == 10 for item in result.items)
    assert result.stat("pages/trafilatura") == 3
    assert [item["by"]["source"] for item in other.items] == ["title_paragraphs"]
