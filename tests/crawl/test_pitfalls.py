"""One test, at least, for each pitfall of batching within a crawl, by its number.

| P  | pitfall                                              | P   | pitfall                                          |
|----|------------------------------------------------------|-----|--------------------------------------------------|
| 1  | without a timer the last batch never leaves          | 11  | a wait too short or too long                     |
| 2  | a batch larger than CONCURRENT_REQUESTS never fills  | 12  | keeping the callback's order blocks the frontier |
| 3  | Ctrl-C with a batch that waits (test_stopping.py)    | 13  | one bad page kills the batch                     |
| 4  | Ctrl-C twice waits for the batch (test_stopping.py)  | 14  | what is not HTML                                 |
| 5  | Ctrl-C once drains the queue (test_stopping.py)      | 15  | encodings                                        |
| 6  | work on the event loop                               | 16  | items without the field, frozen items            |
| 7  | several threads fight for the GIL                    | 17  | an item gets another page's content (all tests)  |
| 8  | the scraper slot is full before the batch is         | 18  | scrapy-poet's untied responses (test_poet.py)    |
| 9  | nobody sees how many pages wait                      | 19  | a stuck engine blocks the crawl (tests/faults)   |
| 10 | CONCURRENT_ITEMS: batches of one (test_items.py)     | 20  | futures completed by the worker thread           |
"""

from __future__ import annotations

import threading
from dataclasses import make_dataclass
from typing import Any

import attrs
import pydantic
import pytest
import scrapy

from scrapy_dripper.config import Config
from tests.crawl.crawling import Crawls, EngineLog, FakeEngine, Site, eventually, page, spider, warnings

BATCHES = {"DRIPPER_BATCH_SIZE": 8}


def text_of(url: str) -> str:
    """Return the main text of one of the site's default pages."""
    return f"MAIN text of page {url.rpartition('/')[2]}, which is about nothing in particular."


def assert_all_right(items: list[Any], urls: list[str]) -> None:
    """Check that every page gave one item with its own main content and no other."""
    assert sorted(item["url"] for item in items) == sorted(urls)
    for item in items:
        assert item["markdown"].strip() == text_of(item["url"])
        assert text_of(item["url"]) in item["main_html"]


@pytest.mark.parametrize(
    ("count", "settings"),
    [(1, BATCHES), (8, BATCHES), (11, BATCHES), (10, {"CONCURRENT_REQUESTS": 4, "DRIPPER_BATCH_SIZE": 128})],
)
def test_p01_p02_the_last_batch_leaves_without_being_full(
    crawl: Crawls, site: Site, count: int, settings: dict[str, int]
) -> None:
    """A crawl ends with every item, for any number of pages. Nothing in the downloader waits for a result, so four
    download slots and a batch of 128 do not deadlock.
    """
    urls = site.pages(count)

    result = crawl(spider(urls), settings)

    assert_all_right(result.items, urls)
    assert result.stat("pages") == result.stat("pages/fake") == count


def test_p06_p12_the_event_loop_is_free_while_the_engine_works(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """A chain of pages that yield their item before their link is downloaded while the first page is labelled."""
    engine.act = lambda *_: eventually("the whole chain downloaded", lambda: len(site.seen) == 6)

    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield {"url": response.url}
        number = int(response.url.rpartition("/")[2])
        if number < 5:
            yield response.follow(f"/page/{number + 1}")

    result = crawl(spider([site.url("/page/0")], parse), {"DRIPPER_BATCH_SIZE": 3})

    assert_all_right(result.items, site.pages(6))


def test_p07_one_thread_at_a_time_does_all_the_work(
    crawl: Crawls, site: Site, engine: EngineLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading, labelling and writing run in one thread, which is neither the reactor's nor the main one."""
    import scrapy_dripper.extractor as module

    threads, running = set(), []
    for name in ("read", "write"):
        original = getattr(module, name)

        def noted(*args: Any, original: Any = original) -> Any:
            threads.add(threading.current_thread())
            running.append(threading.current_thread())
            try:
                assert len(running) == 1
                return original(*args)
            finally:
                running.pop()

        monkeypatch.setattr(module, name, noted)

    result = crawl(spider(site.pages(20)), BATCHES)

    assert_all_right(result.items, site.pages(20))
    assert threads == engine.threads
    assert all(thread.daemon for thread in threads)
    assert not threads & {crawl.reactor.thread, threading.main_thread()}


def test_p08_large_pages_fill_a_batch(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Twenty pages of 400 kB wait together, which is more than Scrapy's default limit allows."""
    urls = site.pages(20)
    for url in urls:
        path = url.partition("/page/")[2]
        site.routes[f"/page/{path}"] = ("text/html", page(path, f"<!-- {'x' * 400_000} -->").encode())

    engine.act = lambda *_: eventually("all pages downloaded", lambda: len(site.seen) == 20)

    result = crawl(spider(urls), {"DRIPPER_BATCH_SIZE": 20})

    assert_all_right(result.items, urls)


def test_p09_p11_pages_that_come_soon_after_each_other_share_a_batch(
    crawl: Crawls, site: Site, engine: EngineLog
) -> None:
    """The wait is long enough to collect them. Its default is the measured value. Stats say how many waited (pitfall 9)
    and how large the batches were.
    """
    result = crawl(spider(site.pages(8)), {**BATCHES, "DRIPPER_BATCH_WAIT": 20})

    assert [len(batch) for batch in engine.batches] == [8]
    assert [result.stat(name) for name in ("queue/max", "batches", "batch_size/mean")] == [8, 1, 8]
    assert Config().batch_wait == 0.2


RAISED = [RuntimeError, MemoryError, SystemExit]  # the last of which kills the thread


def test_p13_a_bad_page_falls_back_alone(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """For any error of the engine on one page, all other pages of the batch are labelled (test_extractor.py has
    answers that are none)."""
    bad = {site.url(f"/page/{3 + 4 * n}"): error for n, error in enumerate(RAISED)}
    urls = site.pages(16)

    def act(_: FakeEngine, pages: Any) -> None:
        for one in pages:
            if one.url in bad:
                raise bad[one.url]("poison")

    engine.act = act

    result = crawl(spider(urls), {**BATCHES, "DRIPPER_FALLBACK": "empty"})

    fallen = [item for item in result.items if item["url"] in bad]
    assert_all_right([item for item in result.items if item not in fallen], [url for url in urls if url not in bad])
    assert [item["markdown"] for item in fallen] == [""] * 3
    assert result.stat("fallback/engine_error") == 3
    assert result.stat("pages/fake") == 13


NOT_HTML = [
    ("application/pdf", b"%PDF-1.4 plain"),
    ("text/html", b"%PDF-1.4 under the name of HTML"),
    ("application/json", b'{"a": "<p>MAIN</p>"}'),
    ("text/plain", b"MAIN text"),
    ("application/xml", b"<?xml version='1.0'?><rss><item>MAIN</item></rss>"),
]
NOTHING = [("text/html", b""), ("text/html", b" \r\n\t ")]


def test_p14_other_files_are_left_alone(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The fields of their items are empty, and a stat has the reason. ``tests/page/test_parse.py`` has more formats."""
    site.routes.update({f"/file/{number}": route for number, route in enumerate(NOT_HTML + NOTHING)})
    urls = [site.url(path) for path in site.routes]

    result = crawl(spider(urls))

    empty = [{"url": url, "main_html": None, "markdown": None} for url in urls]
    assert sorted(result.items, key=lambda item: urls.index(item["url"])) == empty
    assert (result.stat("skipped/not_html"), result.stat("skipped/empty_body")) == (len(NOT_HTML), len(NOTHING))
    assert engine.batches == []


PAGE = page(7)
TIDE = "<article><p>MAIN Прилив приходит дважды в день, и замок из песка об этом знает.</p></article>"
SHOWN = {
    "a NUL": ("text/html", PAGE.encode().replace(b"Menu", b"Me\x00nu"), "MAIN text of page 7"),
    "no type": (None, PAGE.encode(), "MAIN text of page 7"),
    "XHTML": ("application/xhtml+xml", PAGE.encode(), "MAIN text of page 7"),
    "XML": ("application/xhtml+xml", b'<?xml version="1.0"?>' + PAGE.encode(), "MAIN text of page 7"),
    "a phone's": ("application/vnd.wap.xhtml+xml", PAGE.encode(), "MAIN text of page 7"),
    "a mark": ("text/html", b"\xef\xbb\xbf" + PAGE.encode(), "MAIN text of page 7"),
    "koi8-r": ("text/html; charset=koi8-r", TIDE.encode("koi8-r"), "Прилив приходит дважды"),
    "cp1251 by its meta": ("text/html", b"<meta charset=cp1251>" + TIDE.encode("cp1251"), "Прилив приходит дважды"),
    "a name that is none": ("text/html; charset=no-such-thing", TIDE.encode(), "Прилив приходит дважды"),
    "any bytes": ("text/html; charset=utf-8", bytes(range(256)) * 20, ""),
    "a codec that is no charset": ("text/html; charset=idna", b"<p>" + b"\x80" * 99, ""),
    "a name without end": (f"text/html; charset={'x' * 5_000}", b"<p>x", ""),
    "a name of bytes": ("text/html; charset=\x00\xff", b"<p>x", ""),
}


def test_p15_pages_are_decoded(crawl: Crawls, site: Site) -> None:
    """XHTML, pages without a Content-Type and pages with a NUL are HTML (pitfall 14). The charset comes from the
    header, the page or its bytes, whichever is right (``tests/page/test_charset.py`` has more of them). No body and no
    declared type is an error.
    """
    site.routes.update({f"/file/{n}": (type_, body) for n, (type_, body, _) in enumerate(SHOWN.values())})

    urls = [site.url(path) for path in site.routes]
    result = crawl(spider(urls), {"METAREFRESH_ENABLED": False})  # which knows fewer encodings

    texts = {int(item["url"].rpartition("/")[2]): item["markdown"] or "" for item in result.items}
    assert result.stat("bugs") == result.stat("fallback/parse_error") == result.stats.get("log_count/ERROR", 0) == 0
    assert [name for n, (name, (_, _, text)) in enumerate(SHOWN.items()) if text not in texts[n]] == []


FIELDS: Any = [("url", str), ("main_html", Any, None), ("markdown", Any, None)]
ATTRS: Any = {"url": attrs.field(), "main_html": attrs.field(default=None), "markdown": attrs.field(default=None)}
MODEL: Any = {"url": (str, ...), "main_html": (str | None, None), "markdown": (str | None, None)}


class BareItem(scrapy.Item):
    url = scrapy.Field()


RIGID: list[Any] = [
    make_dataclass("Frozen", FIELDS, frozen=True),
    attrs.make_class("FrozenAttrs", ATTRS, frozen=True),
    pydantic.create_model("FrozenModel", __config__=pydantic.ConfigDict(frozen=True), **MODEL),
    pydantic.create_model(
        "StrictModel",
        __config__=pydantic.ConfigDict(validate_assignment=True),
        **{**MODEL, "main_html": (int | None, None), "markdown": (int | None, None)},
    ),
]
BARE: list[Any] = [
    make_dataclass("Bare", FIELDS[:1]),
    BareItem,
    attrs.make_class("BareAttrs", {"url": attrs.field()}),
    pydantic.create_model("BareModel", url=(str, ...)),
]


@pytest.mark.parametrize("classes", [RIGID, *([cls] for cls in BARE)], ids=lambda classes: classes[0].__name__)
def test_p16_items_that_cannot_be_filled_survive(
    crawl: Crawls, site: Site, engine: EngineLog, caplog: pytest.LogCaptureFixture, classes: list[Any]
) -> None:
    """There is one warning for each class, and a stat with the number of items. A page whose items have no field is
    not extracted."""

    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield classes[int(response.url.rpartition("/")[2]) % len(classes)](url=response.url)

    result = crawl(spider(site.pages(2 * len(classes)), parse))

    assert len(result.items) == 2 * len(classes)
    assert bool(engine.batches) is (classes is RIGID)
    said = warnings(caplog)
    assert len(said) == len(classes)
    for name in (cls.__name__ for cls in classes):
        (warning,) = [one for one in said if f"{name}.main_html" in one or len(classes) == 1]
        assert name in warning
        assert "main_html" in warning
        assert "DRIPPER_ITEMS" in warning
        assert result.stat(f"field_errors/{name}.main_html") == result.stat(f"field_errors/{name}.markdown") == 2


def test_p20_everything_that_scrapy_sees_happens_on_the_event_loop(
    crawl: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Futures and stats are only set in the reactor's thread, never in the worker."""
    from scrapy.statscollectors import MemoryStatsCollector

    from scrapy_dripper.crawl.batcher import Batcher

    threads = []
    for owner, name in ((Batcher, "_settle"), (MemoryStatsCollector, "inc_value")):
        original = getattr(owner, name)

        def noted(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            threads.append(threading.current_thread())
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    crawl(spider(site.pages(5)))

    assert set(threads) == {crawl.reactor.thread}
