"""Methods as engines: ``DRIPPER_ENGINE`` names what extracts all pages without a model."""

from __future__ import annotations

import pytest

from scrapy_dripper import Config, Document, Extraction, Extractor
from scrapy_dripper.checks import METHODS
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.fallback import fall_back
from tests.crawl.crawling import Crawls, Site, spider
from tests.fallback.test_other_extractors import SENTENCE, page

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
