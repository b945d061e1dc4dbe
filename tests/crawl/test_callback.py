"""``await Dripper.from_crawler(crawler).extract(response)``, and sharing of results."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import scrapy
from scrapy.http import HtmlResponse, Response

from scrapy_dripper.crawl import Dripper
from scrapy_dripper.data import Document, Extraction
from tests.crawl.crawling import Crawls, EngineLog, Reactor, Site, eventually, page, spider

Ask = Callable[..., list[Any]]
MAIN = "MAIN text of page 1, which is about nothing in particular."


@pytest.fixture
def ask(crawl: Crawls, site: Site) -> Ask:
    """Return a function that crawls a page, and returns what its callback gets from the Dripper."""

    def run(
        question: Callable[[Dripper, Any], Any] = Dripper.extract,
        settings: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> list[Any]:
        got = []

        async def parse(self: scrapy.Spider, response: Any) -> Any:
            got.append(await question(Dripper.from_crawler(self.crawler), response))
            return
            yield

        crawl(spider([site.url("/page/1")], parse, meta), settings)
        return got

    return run


@pytest.mark.parametrize("settings", [{}, {"ADDONS": {}}], ids=["addon", "no addon"])
def test_a_callback_can_wait_for_the_main_content(ask: Ask, site: Site, engine: EngineLog, settings: Any) -> None:
    """It gets an Extraction, and decides what to do with it. Nothing needs to be installed."""
    (extraction,) = ask(settings=settings)

    assert type(extraction) is Extraction
    assert extraction.markdown.strip() == MAIN
    assert (extraction.source, extraction.url, extraction.title) == ("fake", site.url("/page/1"), "Page 1")
    assert len(engine.engines) == 1


def test_metadata_that_is_not_asked_for_says_how_to_ask(ask: Ask) -> None:
    """It is false, so nothing else needs to know. It stays so where it is sent or changed."""
    (bare,) = ask()
    (with_metadata,) = ask(lambda dripper, response: dripper.extract(response, metadata=True))

    assert not bare.metadata
    for one in (bare, replace(bare, title="x"), pickle.loads(pickle.dumps(bare))):
        with pytest.raises(AttributeError, match=r"extract\(response, metadata=True\)"):
            one.metadata.title  # noqa: B018
    assert with_metadata.metadata.title == "Page 1"


@pytest.mark.parametrize(
    ("make", "settings", "meta"),
    [
        (lambda response: Response(response.url, body=response.body), {}, {}),
        (lambda response: response.replace(body=b""), {}, {}),
        (lambda response: response.replace(body=b"%PDF-1.7"), {}, {}),
        (lambda response: response, {"DRIPPER_ENABLED": False}, {}),
        (lambda response: response, {}, {"dripper": False}),
    ],
    ids=["no html", "empty", "pdf", "off", "meta"],
)
def test_responses_that_are_not_extracted_give_none(
    ask: Ask, engine: EngineLog, make: Any, settings: dict[str, Any], meta: dict[str, Any]
) -> None:
    """It is not an error, because a spider can meet a PDF."""
    assert ask(lambda dripper, response: dripper.extract(make(response)), settings, meta) == [None]
    assert engine.batches == []


def test_all_callers_share_the_result_of_a_response(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """Several tasks of a callback and the spider middleware share one extraction."""
    got = []

    async def parse(self: scrapy.Spider, response: Any) -> Any:
        dripper = Dripper.from_crawler(self.crawler)
        got.extend(await asyncio.gather(*(dripper.extract(response) for _ in range(5))))
        yield {"url": response.url}

    result = crawl(spider([site.url("/page/1")], parse))

    assert len({id(extraction) for extraction in got}) == 1
    assert result.items[0]["markdown"].strip() == MAIN
    assert engine.batches == [[site.url("/page/1")]]
    assert result.stat("pages") == 1


def test_a_response_of_the_users_own_is_extracted(ask: Ask) -> None:
    """It need not come from a download or have a request. One that was replaced has another body, and main content."""
    own = HtmlResponse("https://example.com/", body=page(3), encoding="utf-8")
    ((*found,),) = ask(
        lambda dripper, response: asyncio.gather(
            *(dripper.extract(response.replace(body=page(number).encode())) for number in (1, 2)), dripper.extract(own)
        )
    )

    assert [one.markdown.strip() for one in found] == [MAIN.replace("page 1", f"page {number}") for number in (1, 2, 3)]


def test_a_cancelled_task_does_not_affect_others(ask: Ask) -> None:
    """Other tasks that wait for the same response still get the result."""

    async def two(dripper: Dripper, response: Any) -> Any:
        tasks = [asyncio.create_task(dripper.extract(response)) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await tasks[1], tasks[0].cancelled()

    ((extraction, cancelled),) = ask(two)

    assert (extraction.markdown.strip(), cancelled) == (MAIN, True)


def test_nothing_of_a_crawl_is_kept(crawl: Crawls, site: Site) -> None:
    """A process that runs many crawls does not keep their shared state or engines."""
    result = crawl(spider(site.pages(2)))
    dripper = weakref.ref(Dripper.from_crawler(result.crawler))
    assert dripper() is not None

    del result

    def gone() -> bool:
        gc.collect()
        return dripper() is None

    eventually("the crawl's Dripper collected", gone)


def test_after_the_crawl_there_is_nothing_to_wait_for(crawl: Crawls, reactor: Reactor, site: Site) -> None:
    """A call then returns None at once, and does not wait for a thread that has ended."""
    crawler = crawl(spider(site.pages(1))).crawler
    response = HtmlResponse("https://example.com/", body=page(1), encoding="utf-8")

    late = asyncio.run_coroutine_threadsafe(Dripper.from_crawler(crawler).extract(response), reactor.loop)

    assert late.result(30) is None


def test_a_document_can_be_extracted_too(ask: Ask) -> None:
    """It needs no response."""
    (found,) = ask(lambda dripper, _: dripper.extract_document(Document(page(1))))

    assert found.markdown.strip() == MAIN
