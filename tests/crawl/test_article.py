"""zyte-common-items: ``def parse(self, response, article: Article)``, and page objects that return an article."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import scrapy

from tests.crawl.crawling import Crawls, EngineLog, Site, spider

pytest.importorskip("scrapy_poet")
pytest.importorskip("zyte_common_items")

from scrapy_poet import DummyResponse
from zyte_common_items import Article, AutoArticlePage
from zyte_common_items.fields import auto_field

from scrapy_dripper.crawl.article import to_article
from scrapy_dripper.data import Extraction, Metadata
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.providers import MainContent

POET = {
    "ADDONS": {"scrapy_poet.Addon": 300, "scrapy_dripper.Addon": 500},
    "DRIPPER_HTML_FIELD": None,
    "DRIPPER_MARKDOWN_FIELD": None,
}
SENTENCE = "MAIN text about the tide, which comes in twice a day and leaves no castle on this beach as it was. "
PAGE = f"""<!doctype html><html lang="en-GB"><head><title>Tides | Sand</title>
<link rel="canonical" href="/tides"><meta property="og:image" content="/tide.png">
<meta name="description" content="About the sea."><script type="application/ld+json">
{{"@context": "https://schema.org", "@graph": [{{"@type": "NewsArticle", "headline": "Tides",
"author": [{{"@type": "Person", "name": "Ada Marsh"}}, {{"@type": "Person", "name": "Bo Chan"}}],
"datePublished": "2024-05-01T10:00:00Z", "dateModified": "2024-06-02"}},
{{"@type": "BreadcrumbList", "itemListElement": [
{{"@type": "ListItem", "position": 2, "name": "Beach", "item": "/beach"}},
{{"@type": "ListItem", "position": 1, "name": "Home", "item": "/"}}]}}]}}</script></head><body>
<nav><a href="/">Menu</a></nav><article><h1>Tides</h1><p>{SENTENCE * 3}</p><p>MAIN <img src="/castle.png"> and
{SENTENCE}</p><p>{SENTENCE * 2}</p></article><footer><p>Contact</p></footer></body></html>"""


@pytest.fixture(autouse=True)
def news(site: Site) -> None:
    """An article at /news."""
    site.routes["/news"] = ("text/html; charset=utf-8", PAGE.encode())


def labels(page: Any) -> Labels:
    main = np.array(["MAIN" in text or text == "Tides" for text in page.blocks.text])
    return Labels(main.astype(np.float32), main)


def check(article: Article, site: Site) -> None:
    assert article.url == site.url("/news")
    assert article.headline == "Tides"
    assert (article.datePublished, article.dateModified) == ("2024-05-01T10:00:00Z", "2024-06-02T00:00:00")
    assert [author.name for author in article.authors or ()] == ["Ada Marsh", "Bo Chan"]
    crumbs = [(one.name, one.url) for one in article.breadcrumbs or ()]
    assert crumbs == [("Home", site.url("/")), ("Beach", site.url("/beach"))]
    assert article.inLanguage == "en"
    assert article.mainImage is not None
    assert article.mainImage.url == site.url("/tide.png")
    assert [image.url for image in article.images or ()] == [site.url("/castle.png")]
    assert article.canonicalUrl == site.url("/tides")
    assert article.description == "About the sea."
    assert SENTENCE.strip() in (article.articleBody or "")
    assert "Menu" not in (article.articleBody or "")
    assert "<h1>Tides</h1>" in (article.articleBodyHtml or "")


def parse(self: scrapy.Spider, response: DummyResponse, article: Article) -> Any:
    """Yield the article."""
    yield article


class NewsPage(AutoArticlePage):
    @auto_field
    def description(self) -> str | None:
        return (self.article.description or "").upper()


@pytest.mark.parametrize("processes", [0, 1])
def test_a_callback_can_ask_for_an_article(crawl: Crawls, site: Site, processes: int) -> None:
    """It has the page's metadata, whatever the settings are, and the bundled model's probability."""

    result = crawl(spider([site.url("/news")], parse), {**POET, "DRIPPER_PROCESSES": processes})

    (article,) = result.items
    check(article, site)
    assert article.metadata is not None
    assert 0 <= article.metadata.probability <= 1


def test_a_page_object_can_change_one_field(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    engine.act = lambda engine, pages: [labels(page) for page in pages]

    async def parse(self: scrapy.Spider, response: DummyResponse, page: NewsPage) -> Any:
        yield await page.to_item()

    (article,) = crawl(spider([site.url("/news")], parse), POET).items

    assert article.description == "ABOUT THE SEA."
    check(attrs.evolve(article, description="About the sea."), site)


def test_both_come_from_one_extraction(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """An item that the add-on fills shares it, too."""

    def parse(self: scrapy.Spider, response: Any, main: MainContent, article: Article) -> Any:
        yield {"headline": article.headline, "text": main.text}

    settings = {**POET, "DRIPPER_MARKDOWN_FIELD": "markdown"}
    (item,) = crawl(spider([site.url("/news")], parse), settings).items

    assert item["headline"] == "Tides"
    assert "MAIN" in item["markdown"]
    assert sum(map(len, engine.batches)) == 1


def test_other_files_give_no_article(crawl: Crawls, site: Site) -> None:
    site.routes["/file"] = ("application/pdf", b"%PDF-1.4")

    (article,) = crawl(spider([site.url("/file")], parse), POET).items

    assert article.url == site.url("/file")
    assert (article.headline, article.articleBody, article.metadata.probability) == (None, None, 0.0)


def test_it_can_be_cached(crawl: Crawls, site: Site, engine: EngineLog, tmp_path: Path) -> None:
    pytest.importorskip("zyte_common_items.serialization", reason="came with zyte-common-items 0.30")

    settings = {**POET, "SCRAPY_POET_CACHE": str(tmp_path)}
    first, second = (crawl(spider([site.url("/news")], parse), settings).items for _ in range(2))

    for (article,) in (first, second):
        check(article, site)
    assert sum(map(len, engine.batches)) == 1


@pytest.mark.parametrize(
    ("page_type", "likely", "expected"),
    [("article", 0.9, 0.9), ("listing", 0.9, 0.1), ("listing", 0.4, 0.4), (None, None, 1.0)],
)
def test_probability(page_type: str | None, likely: float | None, expected: float) -> None:
    """For another type, the probability is an upper bound."""
    found = Extraction("u", "t", "<p>x", "x", "x", "tagger", page_type=page_type)
    found = found.with_details(page_type_probability=likely)
    article = to_article(found)
    assert article.metadata is not None
    assert article.metadata.probability == pytest.approx(expected)
    assert (article.headline, article.authors, article.images) == ("t", None, None)


def test_the_last_change_stands_for_the_publication() -> None:
    """zyte-common-items requires this if the page has no date of publication."""
    found = Extraction("u", "t", "<p>x", "x", "x", "tagger", metadata=Metadata(date_modified="2024-06-02"))
    assert to_article(found).datePublished == "2024-06-02T00:00:00"
