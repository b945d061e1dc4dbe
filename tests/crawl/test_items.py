"""Which items are filled, and how: named classes, single dicts of a response, titles, texts, chunks and
absolute URLs."""

from __future__ import annotations

import csv
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest
import scrapy
from itemadapter import ItemAdapter

from scrapy_dripper import PageItem
from scrapy_dripper.config import ConfigError
from scrapy_dripper.fingerprint import content_hash
from tests.crawl.crawling import Crawls, EngineLog, Site, page, parse_with, spider, warnings, workers

MAIN = "MAIN text of page 1, which is about nothing in particular."


class Article(scrapy.Item):
    url = scrapy.Field()
    markdown = scrapy.Field()


class LongArticle(Article):
    pass


@dataclass
class Plain:
    name: str


@dataclass
class Author:
    name: str
    markdown: str | None = None


@pytest.mark.parametrize("between", [(), ("/page/2",)])
def test_several_dicts_of_a_response_are_left_as_they_are(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture, between: tuple[str, ...]
) -> None:
    """None of them stands for the page, so it is not extracted. A warning says how to change that.

    While a request between two items is scheduled, the page of the first may already be extracted.
    """
    entries = [part for number in range(50) for part in ({"n": number}, *between)]

    result = crawl(spider([site.url("/page/1")], parse_with(*entries)))

    assert result.items == [{"n": number} for number in range(50)]
    assert result.stat("unfilled") == 50
    (warning,) = warnings(caplog)
    assert "DRIPPER_ITEMS = ['dict']" in warning
    assert between or not engine.batches


def test_dicts_of_an_api_are_not_filled(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """JSON has no main content, whatever is yielded."""
    site.routes["/api"] = ("application/json", b"[1, 2]")

    result = crawl(spider([site.url("/api")], parse_with({"n": 1}, {"n": 2})))

    assert result.items == [{"n": 1}, {"n": 2}]
    assert result.stat("unfilled") == 0
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    ("wanted", "filled"),
    [
        (["dict"], {"dict"}),
        ([dict, "Author"], {"dict", "Author"}),
        ("Article", {"Article", "LongArticle"}),
        ([LongArticle], {"LongArticle"}),
        ([f"{__name__}.Article"], {"Article", "LongArticle"}),
        ([], set()),
    ],
)
def test_items_that_are_named_are_filled_and_no_others(
    crawl: Crawls, site: Site, engine: EngineLog, wanted: Any, filled: set[str]
) -> None:
    """Classes or their names select items, with subclasses. A request can have its own."""
    entries = [{"n": 0}, {"n": 1}, Article(), LongArticle(), Author("x")]
    of_crawl = crawl(spider([site.url("/page/1")], parse_with(*entries)), {"DRIPPER_ITEMS": wanted})
    engine.batches.clear()
    entries = [{"n": 0}, {"n": 1}, Article(), LongArticle(), Author("x")]
    meta = {"dripper": {"items": wanted}}
    of_request = crawl(spider([site.url("/page/1")], parse_with(*entries), meta))

    for result in (of_crawl, of_request):
        found = {type(item).__name__ for item in result.items if MAIN in str(item)}
        assert found == filled
    assert bool(engine.batches) == bool(filled)


def test_a_class_that_is_not_named_is_logged_once(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The name may be a mistake."""
    caplog.set_level(logging.INFO, "scrapy_dripper")

    crawl(spider(site.pages(3), parse_with(Article(), Article())), {"DRIPPER_ITEMS": ["Artikel"]})

    (message,) = [record.getMessage() for record in caplog.records if "DRIPPER_ITEMS" in record.getMessage()]
    assert "class Article" in message


def test_titles_and_texts_have_fields(crawl: Crawls, site: Site) -> None:
    """A title that is already set is kept, and does not count as main content."""
    settings = {"DRIPPER_TITLE_FIELD": "title", "DRIPPER_TEXT_FIELD": "text", "DRIPPER_HTML_FIELD": None}

    first = crawl(spider([site.url("/page/1")]), settings)
    second = crawl(spider([site.url("/page/1")], parse_with({"title": "mine"})), settings)

    assert first.items == [{"url": site.url("/page/1"), "title": "Page 1", "text": MAIN, "markdown": MAIN}]
    assert second.items == [{"title": "mine", "text": MAIN, "markdown": MAIN}]


def test_urls_in_main_html_can_be_absolute(crawl: Crawls, site: Site) -> None:
    """Links within the page are not changed."""
    links = '<p>MAIN <a href="/a?b=1">one</a> <a href="#c">two</a> <img src="d.png" srcset="e.png, f.png 2x"></p>'
    site.routes["/page/1"] = ("text/html", page(1, links).encode())

    (kept,) = crawl(spider([site.url("/page/1")])).items
    (made,) = crawl(spider([site.url("/page/1")]), {"DRIPPER_ABSOLUTE_URLS": True}).items

    assert 'href="/a?b=1"' in kept["main_html"]
    for part in (f'href="{site.url("/a?b=1")}"', 'href="#c"', f'src="{site.url("/page/d.png")}"'):
        assert part in made["main_html"]
    assert f'srcset="{site.url("/page/e.png")}, {site.url("/page/f.png")} 2x"' in made["main_html"]
    assert kept["markdown"] == made["markdown"]


def test_a_csv_feed_has_the_content_whatever_comes_first(
    crawl: Crawls, site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Scrapy takes the columns from the first item. A warning at the start says how to name them. Cells are empty, or
    hold a dict as Python prints it.
    """
    site.routes["/file"] = ("application/pdf", b"%PDF-1.4")
    path = tmp_path / "pages.csv"
    settings = {"FEEDS": {str(path): {"format": "csv"}}, "CONCURRENT_REQUESTS": 1, "DRIPPER_METADATA_FIELD": "about"}
    crawl(spider([site.url("/file"), *site.pages(3)]), settings)
    with path.open(newline="", encoding="utf-8") as file:
        first, *rows = csv.DictReader(file)

    assert list(first) == ["url", "main_html", "markdown", "about"]
    assert list(first.values())[1:] == [""] * 3
    assert [(row["markdown"][:4], row["about"][:2]) for row in rows] == [("MAIN", "{'")] * 3
    (warning,) = warnings(caplog)
    assert "FEED_EXPORT_FIELDS = ['url', 'main_html', 'markdown', 'about']" in warning


@pytest.mark.parametrize(
    "settings",
    [
        {"FEED_EXPORT_FIELDS": ["url", "markdown"]},
        {"FEEDS": {"pages.csv": {"format": "csv", "fields": {"url": "URL", "markdown": "markdown"}}}},
        {"FEEDS": {"pages.jsonl": {"format": "jsonlines"}}},
        {"DRIPPER_HTML_FIELD": "None", "DRIPPER_MARKDOWN_FIELD": "None"},
    ],
)
def test_a_feed_that_loses_nothing_gets_no_warning(
    crawl: Crawls,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    crawl(spider([site.url("/page/1")]), {"FEEDS": {"pages.csv": {"format": "csv"}}} | settings)

    assert warnings(caplog) == []


def test_the_order_in_which_items_of_a_response_leave(crawl: Crawls, site: Site) -> None:
    """What is not filled leaves at once; filled items in their order; a dict last, since another might follow."""
    entries = [{"n": 1}, Article(url="2"), Author("3"), "/page/2", Plain("4"), Article(url="5")]

    items = crawl(spider([site.url("/page/1")], parse_with(*entries))).items

    assert [getattr(item, "name", None) or next(iter(item.values())) for item in items] == ["4", "2", "3", "5", 1]
    filled = [ItemAdapter(item).get("markdown", "") for item in items]
    assert [MAIN in text for text in filled] == [False, True, True, True, True]


class Recipe(PageItem):
    minutes = scrapy.Field()


def test_a_page_item_is_filled_without_any_setting(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Its page is extracted once, even if Scrapy processes items one at a time (pitfall 10). Other items of the
    response only get the fields of the settings.
    """
    url = site.url("/page/1")
    parse = parse_with(Recipe(url=url, minutes=5), Author("Ann"), {"n": 1})

    recipe, author, plain = crawl(spider([url], parse), {"CONCURRENT_ITEMS": 1}).items

    assert dict(recipe, main_html="", metadata=recipe["metadata"]["title"]) == {
        "url": site.url("/page/1"),
        "minutes": 5,
        "title": "Page 1",
        "markdown": MAIN,
        "text": MAIN,
        "main_html": "",
        "metadata": "Page 1",
    }
    assert MAIN in recipe["main_html"]
    assert author.markdown == MAIN
    assert set(plain) == {"n", "main_html", "markdown"}
    assert len(engine.batches) == 1


class Story(scrapy.Item):
    url, title, text, metadata, markdown = (scrapy.Field() for _ in range(5))


@dataclass(slots=True)
class DataStory:
    url: str
    title: str | None = None
    text: str = ""
    metadata: dict[str, Any] | None = None
    markdown: str | None = None


@attrs.define
class AttrsStory:
    url: str
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] = attrs.field(factory=dict)
    markdown: str = ""


class PydanticStory(pydantic.BaseModel):
    url: str
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None
    markdown: str | None = None


@pytest.mark.parametrize("cls", [Story, DataStory, AttrsStory, PydanticStory])
def test_a_class_gets_the_fields_that_it_has(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture, cls: type
) -> None:
    """Without a setting, but never over a value of the spider; a message says so once. A setting names another field,
    and one switch leaves out what no setting names.
    """
    caplog.set_level(logging.INFO, "scrapy_dripper")
    ways: list[dict[str, Any]] = [
        {},
        {"DRIPPER_FILL_BY_NAME": False},
        {"DRIPPER_TITLE_FIELD": "text", "DRIPPER_HTML_FIELD": None},
    ]
    found, told = [], []
    for settings in ways:
        caplog.clear()
        items = [cls(url=str(number), text="mine") for number in range(2)]
        made = crawl(spider([site.url("/page/1")], parse_with(*items, cls(url="3"))), settings).items
        found.append([[*map(ItemAdapter(one).get, ("title", "text", "markdown"))] for one in made])
        about = ItemAdapter(made[-1]).get("metadata")
        assert bool(about) == (settings.get("DRIPPER_FILL_BY_NAME") is not False)
        told.append([text for one in caplog.records if "are filled" in (text := one.getMessage())])

    nothing = [""] if cls is DataStory else [None]
    assert found[0] == [["Page 1", "mine", MAIN]] * 2 + [["Page 1", MAIN, MAIN]]
    assert found[1] == [[None, "mine", MAIN]] * 2 + [[None, *nothing, MAIN]]
    assert found[2] == [[None, "mine", MAIN]] * 2 + [[None, "Page 1", MAIN]]
    assert [len(one) for one in told] == [1, 1, 1]
    assert "metadata, title" not in told[1][0]
    assert "DRIPPER_FILL_BY_NAME = False" in told[0][0]
    assert warnings(caplog) == []


class Product(scrapy.Item):
    price = scrapy.Field()


class Half(Article):
    text = scrapy.Field()


def test_one_warning_for_each_class_that_lacks_fields(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """Classes without any of the fields are on purpose beside others that have them. So is a class that only lacks a
    field of the default settings.
    """
    parse = parse_with(Product(price=5), Article(url="a"), Half(url="b"), Article(url="c"))
    settings = {"DRIPPER_TEXT_FIELD": "text", "DRIPPER_TITLE_FIELD": "title"}

    result = crawl(spider(site.pages(3), parse), settings)

    assert sorted(message.partition(" and are")[0] for message in warnings(caplog)) == [
        "Items of class Article have no field text, title",
        "Items of class Half have no field title",
    ]
    assert all("DRIPPER_ITEMS" in message for message in warnings(caplog))
    assert result.stat("field_errors/Article.title") == 6


def test_a_warning_if_no_class_has_a_field(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """It comes early in a long crawl, and at the end of a short one."""
    crawl(spider(site.pages(1), parse_with(Product(price=5))))

    (warning,) = warnings(caplog)
    assert warning.startswith("No item can be filled: the class Product has none of the fields main_html, markdown, ")


PAGE = b"""<!doctype html><html lang="en"><head><title>Tides</title></head><body><nav><a href="/">Menu</a></nav><main>
<h1 id="tides">MAIN heading of tides</h1><p>MAIN text with <a href="/moon">the Moon</a>.</p>
<h2 id="spring">MAIN part of spring tides</h2><p>MAIN text of that part, which is longer than the others are.</p>
</main></body></html>"""
FIELDS = {"chunks_field": "chunks", "links_field": "links", "markdown": {"front_matter": True}, "chunks": {"size": 100}}
TOKENIZER = Path(__file__).parents[1] / "engines/qwen3/prepared/tokenizer.json"


@pytest.mark.parametrize("processes", [0, 1])
def test_the_fields_of_an_item(crawl: Crawls, site: Site, processes: int) -> None:
    """Values are plain, and the same from a worker process and from the crawl's own."""
    site.routes["/tides"] = ("text/html", PAGE)
    url = site.url("/tides")
    (item,) = crawl(spider([url]), workers(processes, **FIELDS)).items

    first = f"# MAIN heading of tides\n\nMAIN text with [the Moon]({site.url('/moon')})."
    second = "## MAIN part of spring tides\n\nMAIN text of that part, which is longer than the others are."
    headings = ["MAIN heading of tides", "MAIN part of spring tides"]
    for chunk, markdown, anchor, above in zip(
        item["chunks"], (first, second), ("tides", "spring"), (headings[:1], headings), strict=True
    ):
        where = {"headings": above, "anchor": anchor, "url": f"{url}#{anchor}"}
        whose = {"author": "", "date": "", "overlap": 0}
        assert chunk == {"markdown": markdown, "size": len(markdown)} | where | whose
    assert item["links"] == [{"url": site.url("/moon"), "text": "the Moon"}]
    assert item["markdown"].startswith(f'---\ntitle: "MAIN heading of tides"\nurl: "{url}"\n')
    text = (
        "MAIN heading of tides\nMAIN text with the Moon.\nMAIN part of spring tides\n"
        "MAIN text of that part, which is longer than the others are."
    )
    assert item["by"]["content_hash"] == content_hash(text)


@pytest.mark.parametrize("processes", [0, 1])
def test_tokens(crawl: Crawls, site: Site, processes: int) -> None:
    """They are counted where pages are extracted. An invalid tokenizer stops the crawl at its start."""
    site.routes["/tides"] = ("text/html", PAGE)
    (item,) = crawl(
        spider([site.url("/tides")]),
        workers(processes, **FIELDS | {"chunks": {"size": 100, "tokenizer": str(TOKENIZER)}}),
    ).items
    assert 0 < max(chunk["size"] for chunk in item["chunks"]) <= 100

    with pytest.raises(ConfigError, match="must be the path of a tokenizer"):
        crawl(spider([site.url("/tides")]), workers(processes, **FIELDS | {"chunks": {"tokenizer": "/nowhere.json"}}))
