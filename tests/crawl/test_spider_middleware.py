"""The add-on and its spider middleware, with a single line in the settings."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest
import scrapy
from scrapy.logformatter import LogFormatter
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_dripper.addon import Addon, DripperLogFormatter
from scrapy_dripper.checks import METHODS, Method
from scrapy_dripper.crawl import Dripper
from scrapy_dripper.downloadermiddlewares import DripperBackpressureMiddleware
from scrapy_dripper.spidermiddlewares import DripperSpiderMiddleware
from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Site, page, parse_with, spider, warnings, workers

MAIN = "MAIN text of page 1, which is about nothing in particular."
PATH = "scrapy_dripper.spidermiddlewares.DripperSpiderMiddleware"
BACKPRESSURE = "scrapy_dripper.downloadermiddlewares.DripperBackpressureMiddleware"


def no_engine(engine: FakeEngine, pages: Any) -> Any:
    """Label nothing as main, so that the fallback runs."""
    raise RuntimeError("out of order")


def test_page_types_and_quality_are_counted(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """They are in items and stats."""
    names = ["article", "article", "forum"]
    urls = site.pages(len(names))
    kinds = dict(zip(urls, names, strict=True))

    def act(engine: FakeEngine, pages: Any) -> Any:
        return [replace(engine.answer(page), page_types={kinds[page.url]: 0.9}, quality=0.25) for page in pages]

    engine.act = act
    found = crawl(spider(urls), {"DRIPPER_META_FIELD": "by"})

    assert {item["url"]: item["by"]["page_type"] for item in found.items} == kinds
    assert (found.stat("page_type/article"), found.stat("page_type/forum")) == (2, 1)
    assert (found.stat("quality/pages"), found.stat("quality/mean")) == (len(names), 0.25)


def test_the_engine_knows_what_a_page_wants(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The options come from the spider's settings, or from the request. Comments are removed after the engine."""
    wishes = {}

    def act(engine: FakeEngine, pages: Any) -> Any:
        wishes.update({page.url: (page.config.favor, page.config.comments) for page in pages})

    engine.act = act
    first, second = site.url("/a"), site.url("/b")
    text = "MAIN article, which is longer than what its readers say of it."
    for path in ("/a", "/b"):
        body = f"<p>{text}</p><div class='comments'><p>MAIN comment</p></div>"
        site.routes[path] = ("text/html", body.encode())

    both = spider([first, scrapy.Request(second, meta={"dripper": {"favor": "precision", "comments": "keep"}})])
    both.custom_settings = {"DRIPPER_FAVOR": "recall", "DRIPPER_COMMENTS": "drop"}
    found = crawl(both)
    assert wishes == {first: ("recall", "drop"), second: ("precision", "keep")}
    texts = {item["url"]: item["markdown"].split("\n\n") for item in found.items}
    assert texts == {first: [text], second: [text, "MAIN comment"]}


FIELDS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"main_html", "markdown"}),
    ({"main_html": None, "markdown": ""}, {"main_html", "markdown"}),
    ({"markdown": "mine"}, set()),  # of another document, perhaps: beside it, this one's would be wrong
    ({"main_html": "mine", "markdown": ""}, set()),
    ({"main_html": 0, "markdown": False}, set()),
    ({"main_html": "mine", "markdown": "mine"}, set()),
]
"""The fields of an item, and those that are filled."""


def number_of(url: str) -> int:
    """Return the number of a page."""
    return int(url.rpartition("/")[2])


def test_a_field_with_a_value_keeps_it(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Missing, None and empty fields are filled, or there at least. A page without such a field is not extracted."""

    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield {"n": number_of(response.url), **FIELDS[number_of(response.url)][0]}

    items = crawl(spider(site.pages(len(FIELDS)), parse)).items

    assert len(items) == len(FIELDS)
    for item in items:
        given, expected = FIELDS[item["n"]]
        text = MAIN.replace("page 1", f"page {item['n']}")
        assert {name for name in ("main_html", "markdown") if text in str(item[name])} == expected
        kept = {"n": item["n"], "main_html": None, "markdown": None} | given
        assert item == kept | {name: item[name] for name in expected}
    extracted = {number_of(url) for batch in engine.batches for url in batch}
    assert extracted == {n for n, (_, expected) in enumerate(FIELDS) if expected}


def test_a_page_without_items_costs_nothing(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """A listing page that yields only requests is not extracted."""

    def parse(self: scrapy.Spider, response: Any) -> Any:
        if response.url.endswith("/list"):
            yield response.follow("/page/1")
        else:
            yield {"url": response.url}

    result = crawl(spider([site.url("/list")], parse))

    assert engine.batches == [[site.url("/page/1")]]
    assert [item["markdown"].strip() for item in result.items] == [MAIN]


def test_items_do_not_wait_for_the_end_of_their_callback(crawl: Crawls, site: Site) -> None:
    """Otherwise, a callback that waits for its own first item would run forever."""
    scraped: list[Any] = []

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        def seen(item: Any) -> None:
            scraped.append(item)

        self.crawler.signals.connect(seen, scrapy.signals.item_scraped)
        yield {"n": 0}
        while not scraped:
            await asyncio.sleep(0.01)
            yield {"n": 1}

    result = crawl(spider([site.url("/page/1")], parse), {"DRIPPER_ITEMS": [dict]})

    assert scraped[0]["n"] == 0
    assert {item["markdown"].strip() for item in result.items} == {MAIN}


PIPELINE = {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_dripper.pipelines.DripperPipeline": 300}}


def with_html(self: scrapy.Spider, response: Any) -> Any:
    """Yield an item that every door can fill."""
    yield {"url": response.url, "html": response.text}


@pytest.mark.parametrize(
    ("broken", "settings", "filled"),
    [
        ("crawl.Dripper.start", {}, False),
        ("crawl.Dripper.extract", {}, False),
        ("crawl.Dripper.wait_for_capacity", {}, True),
        ("crawl.Dripper.extract_document", PIPELINE, False),
        ("data.Extraction.meta", {"DRIPPER_META_FIELD": "by"}, True),
    ],
)
def test_a_bug_in_the_plugin_loses_no_item(
    crawl: Crawls,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    broken: str,
    settings: dict[str, Any],
    filled: bool,
) -> None:
    """All items and responses are passed on, by each door, with one error in the log and a stat. If only the value of
    one field cannot be made, the others are filled.
    """

    def bug(*_: Any, **__: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr(f"scrapy_dripper.{broken}", bug)

    result = crawl(spider(site.pages(3), with_html), settings)

    assert sorted(item["url"] for item in result.items) == sorted(site.pages(3))
    assert ["MAIN" in (item.get("markdown") or "") and "by" not in item for item in result.items] == [filled] * 3
    assert result.stat("bugs") == 3
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


def test_objects_that_are_not_items_are_passed_on(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """All that Scrapy passes to pipelines is passed on."""
    result = crawl(spider([site.url("/page/1")], parse_with(None, 7, "text")))

    assert result.items == [7, "text"]
    assert engine.batches == []


class Evil:
    """An object that raises if its class is accessed, like a dead ``weakref.proxy``."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise ReferenceError


DIFFERENT: list[tuple[dict[str, Any], set[str], str | None]] = [
    ({}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": True}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": None}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": False}, set(), None),
    ({"dripper": {"fallback": "none"}}, {"main_html", "markdown"}, "fallback:none"),
    ({"dripper": {"fallback": "empty"}}, {"main_html", "markdown"}, "fallback:empty"),
    ({"dripper": {"html_field": None, "markdown_field": "body"}}, {"body"}, "fallback:html"),
    # A part that is wrong is left out, the rest counts.
    ({"dripper": {"fallback": "empty", "fields": 1}}, {"main_html", "markdown"}, "fallback:empty"),
    ({"dripper": {"fallback": "os.system"}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {"limits": {"bytes": 0}}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {"enabled": False}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": "no"}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": Evil()}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {"fallback": Evil()}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {"markdown_field": Evil()}}, {"main_html", "markdown"}, "fallback:html"),
    ({"dripper": {**{f"x{i}": i for i in range(1_000)}, "markdown_field": None}}, {"main_html"}, "fallback:html"),
]
"""The meta of a request, the fields that its item gets, and their source."""
MISTAKES = 8 + 1_000


def test_one_request_can_differ(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """``meta["dripper"]`` is False or a dict of options. A mistake in it has no effect on the crawl, and is counted."""
    engine.act = no_engine

    urls = site.pages(len(DIFFERENT))
    requests = [scrapy.Request(url, meta=dict(meta)) for url, (meta, _, _) in zip(urls, DIFFERENT, strict=True)]
    result = crawl(spider(requests), {"DRIPPER_FALLBACK": "html", "DRIPPER_META_FIELD": "by"})

    assert len(result.items) == len(DIFFERENT)
    assert result.stat("skipped/disabled") == sum(source is None for *_, source in DIFFERENT)
    assert (result.stat("meta_errors"), result.stat("bugs")) == (MISTAKES, 0)
    for item in result.items:
        meta, names, source = DIFFERENT[number_of(item["url"])]
        assert set(item) == {"url"} | names | ({"by"} if source else set()), meta
        assert item.get("by", {}).get("source") == source, meta


def test_a_request_cannot_have_a_fallback_whose_extra_is_missing(
    crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It counts as a mistake. The crawl's fallback and the other options still apply."""
    monkeypatch.setitem(METHODS, "html", Method("methods:whole_page", "no_such_library", "needy"))
    result = crawl(spider(site.pages(1), meta={"dripper": {"fallback": "html", "markdown_field": None}}))

    (warning,) = warnings(caplog)
    assert "DRIPPER_FALLBACK is 'html', which needs no_such_library" in warning
    assert result.stat("meta_errors") == 1
    assert [set(item) for item in result.items] == [{"url", "main_html"}]


def test_each_kind_of_mistake_in_meta_is_warned_about(
    crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """It can be in the same request or another one. All unknown names are one warning. Similar names are suggested, and
    the number of warnings is limited.
    """
    odd = ({"title": f"odd {number}"} for number in range(20))
    metas = [{"title": "dropp", "favor": "recal"}, {"fallbak": "html", **{f"x{i}": i for i in range(1_000)}}, *odd]
    urls = site.pages(len(metas))
    crawl(spider([scrapy.Request(url, meta={"dripper": meta}) for url, meta in zip(urls, metas, strict=True)]))

    said = warnings(caplog)
    first = site.url("/page/0")
    (title,) = [message for message in said if message.startswith(f'{first}: meta["dripper"]["title"] must be')]
    assert "did you mean drop?" in title
    assert any('meta["dripper"]["favor"] must' in message and "did you mean recall?" in message for message in said)
    assert any("has no key 'fallbak'; did you mean fallback?" in message for message in said)
    assert sum("has no key" in message for message in said) == 1
    assert len(said) == 10


@pytest.mark.parametrize("processes", [0, 1])
def test_a_step_that_would_remove_the_main_text_is_told(crawl: Crawls, site: Site, processes: int) -> None:
    """The item and the stats name the step: here, nearly all main text counts as hidden."""
    hidden = "<div hidden>" + "".join(f"<p>MAIN sentence {i} about the tides.</p>" for i in range(9)) + "</div>"
    site.routes["/page/1"] = ("text/html", page(1, hidden).encode())

    result = crawl(spider([site.url("/page/1"), *site.pages(1)]), workers(processes, text_field="text"))

    plain, told = sorted(result.items, key=lambda item: len(item["text"]))
    assert (plain["by"]["overruled"], told["by"]["overruled"]) == ([], ["hidden"])
    assert "MAIN sentence 8" in told["text"]
    assert result.stat("overruled/hidden") == 1


def test_the_meta_field_has_the_source(crawl: Crawls, site: Site) -> None:
    """It is a small dict of plain values, which feeds can export."""
    result = crawl(spider(site.pages(1)), {"DRIPPER_META_FIELD": "dripper"})

    (item,) = result.items
    assert item["dripper"].pop("milliseconds") > 0
    assert len(item["dripper"].pop("content_hash")) == 32
    assert len(item["dripper"].pop("simhash")) == 16
    unknown = "fallback_reason error limit page_type page_type_probability quality rules template".split()
    assert item["dripper"] == dict.fromkeys(unknown) | {
        "source": "fake",
        "confidence": 0.9,
        "blocks": 3,
        "main_blocks": 1,
        "overruled": [],
        "missing": [],
        "failed": [],
        "truncated": False,
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"DRIPPER_ENABLED": False},
        {"SPIDER_MIDDLEWARES": {PATH: None}},
        {**PIPELINE, "DRIPPER_ENABLED": False},
    ],
)
def test_every_door_can_be_switched_off(crawl: Crawls, site: Site, engine: EngineLog, settings: dict[str, Any]) -> None:
    """The plugin's setting or Scrapy's disables it. Then no engine is loaded, and items are not changed."""
    result = crawl(spider(site.pages(1), with_html), settings)

    assert [set(item) for item in result.items] == [{"url", "html"}]
    assert engine.engines == []


SIZE, ITEMS, LOG = "SCRAPER_SLOT_MAX_ACTIVE_SIZE", "CONCURRENT_ITEMS", "LOG_FORMATTER"
BEFORE, AFTER = "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES"


class Mine(LogFormatter):
    """A user's log formatter."""


@pytest.mark.parametrize("by", ["project", "addon"])
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {BEFORE: {DripperSpiderMiddleware: 25}, AFTER: {DripperBackpressureMiddleware: 20}}),
        ({}, {SIZE: 8_000_000, ITEMS: 32, LOG: DripperLogFormatter}),
        ({"DRIPPER_BATCH_SIZE": 100}, {SIZE: 100_000_000, ITEMS: 100}),  # Scrapy's own items are less
        ({"DRIPPER_BATCH_SIZE": 30}, {SIZE: 30_000_000, ITEMS: 60}),
        ({"DRIPPER_BATCH_SIZE": 1}, {SIZE: 5_000_000, ITEMS: 32}),  # Scrapy's own size is more
        ({SIZE: 7, ITEMS: 100}, {SIZE: 7, ITEMS: 100}),
        ({ITEMS: 8}, {SIZE: 8_000_000, ITEMS: 8}),
        ({"DRIPPER_ENABLED": False}, {SIZE: 5_000_000, ITEMS: 100, LOG: Settings()[LOG]}),
        ({LOG: Mine}, {LOG: Mine}),
        *(
            ({name: {entry: place}},) * 2
            for name, entry in ((BEFORE, PATH), (BEFORE, DripperSpiderMiddleware), (AFTER, BACKPRESSURE))
            for place in (600, None)
        ),
    ],
)
def test_the_addon_respects_what_others_have_set(settings: dict[str, Any], expected: dict[str, Any], by: str) -> None:
    """What the user or another add-on has set stays. Otherwise, there is room for two batches of large pages, and for
    each waiting response, Scrapy creates no more tasks than there may be items.
    """
    merged = Settings({"DRIPPER_PROCESSES": 1})
    for name, value in settings.items():
        merged.set(name, value, by)

    Addon().update_settings(merged)

    assert {name: merged[name] for name in expected} == expected


def test_a_page_that_scrapy_cannot_decode_has_its_content(
    crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``response.text`` is never used, because decoding would block the event loop."""

    def broken(response: Any) -> str:
        raise LookupError("no such encoding")

    monkeypatch.setattr(scrapy.http.HtmlResponse, "text", property(broken))

    result = crawl(spider(site.pages(2)), {"METAREFRESH_ENABLED": False})

    assert ["MAIN" in item["markdown"] for item in result.items] == [True, True]


def test_a_page_of_which_the_first_part_is_labelled_is_counted(crawl: Crawls, site: Site) -> None:
    result = crawl(spider(site.pages(1)), {"DRIPPER_LIMITS": {"blocks": 2}, "DRIPPER_OVERSIZE": "truncate"})

    assert result.stat("truncated") == 1
    assert MAIN.replace("page 1", "page 0") in result.items[0]["markdown"]


@pytest.mark.parametrize(
    ("path", "filled"), [("/gone", True), ("/nowhere", False), (None, False)], ids=["rejected", "failed", "of start"]
)
def test_items_without_a_callback(crawl: Crawls, site: Site, engine: EngineLog, path: str | None, filled: bool) -> None:
    """Items of an errback have a page only if Scrapy's HttpErrorMiddleware rejected the response, and those of
    ``start`` have none. All are passed on.
    """
    site.status["/gone"] = 404

    class Failing(scrapy.Spider):
        name = "failing"

        async def start(self) -> Any:
            if path is None:
                yield {"error": None}
            else:
                yield scrapy.Request(site.url(path) if filled else "http://127.0.0.1:1/", errback=self.failed)

        def failed(self, failure: Any) -> Any:
            yield {"error": failure.type.__name__}

    result = crawl(Failing)

    assert [("error" in item, "markdown" in item) for item in result.items] == [(True, filled)]
    assert bool(engine.batches) == filled


@dataclass
class Article:
    url: str
    main_html: str | None = None
    markdown: str | None = None


def test_the_fallback_none_leaves_the_item_as_it_is(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Its fields keep their values. Only the meta field is filled."""
    engine.act = no_engine
    result = crawl(spider(site.pages(1), parse_with(Article("x"))), {"DRIPPER_FALLBACK": "none"})

    assert result.items == [Article("x")]
    assert result.stat("fallback/engine_error") == 1


def test_fields_that_requests_name_fill_neither_log_nor_stats(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture
) -> None:
    class Page(scrapy.Item):
        url = scrapy.Field()
        main_html = scrapy.Field()

    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield Page(url=response.url)

    metas = ({"dripper": {"markdown_field": f"field{number}"}} for number in range(60))
    requests = [scrapy.Request(url, meta=meta) for url, meta in zip(site.pages(60), metas, strict=True)]
    result = crawl(spider(requests, parse))

    assert len(result.items) == 60
    assert len(warnings(caplog)) == 1
    assert result.stat("field_errors/other") == 20
    assert sum(name.startswith("dripper/field_errors/") for name in result.stats) == 41


def test_a_stats_collector_that_fails_costs_nothing(
    crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one warning for any number of failing stats."""
    inc_value = MemoryStatsCollector.inc_value

    def broken(self: Any, key: str, *args: Any, **kwargs: Any) -> None:
        if key.startswith("dripper/"):
            raise ConnectionError("the stats server is away")
        inc_value(self, key, *args, **kwargs)

    monkeypatch.setattr(MemoryStatsCollector, "inc_value", broken)

    result = crawl(spider(site.pages(9)))

    assert all("MAIN" in item["markdown"] for item in result.items)
    assert len(result.items) == 9
    (warning,) = warnings(caplog)
    assert "cannot be counted: ConnectionError: the stats server is away" in warning


def test_pages_that_are_not_done_when_the_crawl_ends_are_counted(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """No item needs them, so the crawl does not wait for them."""
    engine.act = lambda engine, pages: engine.log.hang()

    def parse(self: scrapy.Spider, response: Any) -> Any:
        Dripper.from_crawler(self.crawler).start(response)
        return ()

    result = crawl(spider(site.pages(5), parse), {"DRIPPER_TIMEOUT": 3600})

    assert result.stat("cancelled") == 5
    assert result.stat("pages") == 0


RULES = {"127.0.0.1": {"drop": [".ad", "//aside"], "keep": "footer"}}
EXTRA = "<div class=ad><p>MAIN offer</p></div><aside><p>MAIN aside</p></aside>"


@pytest.fixture
def pages(site: Site) -> list[str]:
    """Two pages. The rules match one of them."""
    site.routes["/page/1"] = ("text/html", page(1, EXTRA).encode())
    site.routes["/page/2"] = ("text/html", b"<html><body><p>MAIN only.</p></body></html>")
    return [site.url("/page/1"), site.url("/page/2")]


@pytest.mark.parametrize("processes", [0, 1])
def test_rules_of_a_crawl(crawl: Crawls, pages: list[str], processes: int) -> None:
    """Workers get the rules with each page."""
    result = crawl(spider(pages), workers(processes, rules=RULES, text_field="text"))

    first, second = sorted(result.items, key=lambda item: str(item["url"]))
    assert "MAIN text of page 1" in first["text"]
    assert "Contact" in first["text"]
    assert "offer" not in first["text"]
    assert "aside" not in first["text"]
    assert first["by"]["rules"] == {"drop": 2, "keep": 1}
    assert (second["text"], second["by"]["rules"]) == ("MAIN only.", {})
    assert [result.stat(f"rules/{name}") for name in ("pages", "missed", "drop", "keep")] == [1, 1, 2, 1]
