"""Sites, callbacks and components that fail in live crawls: every request ends once, and no item is lost."""

from __future__ import annotations

import gzip
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.crawling import TIMES, Crawls, Site, answer, page
from tests.faults.ledger import SETTINGS, fault_spider

PAGE = page("n").encode()
HALF = PAGE[: len(PAGE) * 2 // 3]
BROKEN: dict[str, list[tuple[bytes, str]]] = {
    "reset": [(b"", "reset")],
    "reset in the body": [(answer(HALF, length=len(PAGE)), "reset")],
    "half": [(answer(HALF, length=len(PAGE)), "close")],
    "half a chunk": [(answer(b"5\r\n<html\r\n200\r\n" + HALF, "Transfer-Encoding: chunked"), "close")],
    "no chunks": [(answer(b"zzz\r\n" + PAGE, "Transfer-Encoding: chunked"), "close")],
    "half a gzip": [(answer(gzip.compress(PAGE * 3)[:200], "Content-Encoding: gzip"), "keep")],
    "no gzip": [(answer(PAGE, "Content-Encoding: gzip"), "keep")],
    "a huge header": [(answer(PAGE, f"X-Long: {'x' * 100_000}"), "keep")],
    "a long header": [(answer(PAGE, type_=f"text/html; charset={'x' * 10_000}"), "keep")],
    "silence": [(b"", "keep")],
    "empty": [(answer(b""), "keep")],
    "pdf": [(answer(b"%PDF-1.7\n" + PAGE), "keep")],
    "too large": [(answer(PAGE + b" " * 300_000), "keep")],
    "not found": [(answer(PAGE, status=404), "keep")],
    "moved": [(answer(b"", "Location: /page/n", status=301), "keep")],
    "a loop": [(answer(b"", "Location: /a-loop/0/n", status=302), "keep")],
    "overload": [(answer(PAGE, status=503), "keep"), (answer(PAGE), "keep")],
}
"""By kind: what the site answers, first and later."""
SPIDER = ["raise before", "raise after", "two", "none", "drop", "fail", "filter", "stop", "stop and fail"]


@pytest.mark.parametrize("keep", [False, True])
def test_everything_at_once(crawl: Crawls, site: Site, keep: bool) -> None:
    """Connections that are reset, truncated bodies, redirects and their loops, retries, callbacks that raise, dropped
    items: none affects another page. Scrapy refuses truncated pages, or they are extracted as far as they go.
    """
    broken, deeds = list(BROKEN) * TIMES, SPIDER * TIMES
    for number, kind in enumerate(broken):
        site.raw[f"/{kind.replace(' ', '-')}/{number // len(BROKEN)}/n"] = list(BROKEN[kind])
    count = 30 * TIMES
    good, later = site.pages(count), site.pages(count + len(deeds))[count:]
    spider = fault_spider([*good, *map(site.url, site.raw), *later], dict(enumerate(deeds, len(good) + len(broken))))
    result = crawl(
        spider,
        {
            **SETTINGS,
            "DOWNLOAD_MAXSIZE": 200_000,
            "DOWNLOAD_FAIL_ON_DATALOSS": not keep,
            "RETRY_ENABLED": True,
            "RETRY_TIMES": 1,
            "REDIRECT_MAX_TIMES": 3,
            "ITEM_PIPELINES": {"tests.faults.ledger.Mishaps": 900},
            "SPIDER_MIDDLEWARES": {"tests.faults.ledger.Mishaps": 500},
        },
    )

    ledger = spider.ledger
    ledger.balance(result)
    kinds = dict(enumerate(broken + deeds, len(good)))
    came = {kinds[number] for number in ledger.callbacks if number in kinds}
    assert came >= {"moved", "overload", "a long header", "empty", "pdf", *SPIDER} - {"stop and fail"}
    assert not came & {"reset", "silence", "a loop", "not found", "too large", "stop and fail"}
    assert ("half" in came) is ("half a chunk" in came) is keep
    assert set(map(str, range(len(good)))) <= ledger.by.keys()
    assert Counter(spider.faults[int(id_)] for some in ledger.gone.values() for id_ in some) == Counter(
        SPIDER[4:7] * TIMES
    )
    assert result.stats["spider_exceptions/RuntimeError"] == 2 * TIMES
    assert {by for id_, by in ledger.by.items() if id_.isdigit() and int(id_) < len(good)} == {("fake", None)}


def test_pages_from_a_cache_and_one_response_for_two_requests(crawl: Crawls, site: Site, tmp_path: Path) -> None:
    """A cached page is extracted like any other; a response that comes twice is extracted once, for both requests."""
    spider = fault_spider(site.pages(20 * TIMES) * 2)
    seen: dict[str, Any] = {}

    class Twice:
        """Answers some requests with the response object of an earlier one."""

        def process_request(self, request: Any) -> Any:
            response = seen.get(request.url)
            spider.ledger.asked -= response is not None
            return response

        def process_response(self, request: Any, response: Any) -> Any:
            if request.url.endswith("3"):
                seen[request.url] = response
            return response

    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "DOWNLOADER_MIDDLEWARES": {Twice: 890}}
    result = crawl(spider, {**SETTINGS, **cache, "CONCURRENT_REQUESTS": 4})

    spider.ledger.balance(result)
    assert len(spider.ledger.by) == 40 * TIMES
    assert spider.ledger.asked < 40 * TIMES
    assert result.stats["httpcache/hit"] > 0
    assert set(spider.ledger.by.values()) == {("fake", None)}


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let this process write no more than a number of bytes to any file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full(crawl: Crawls, site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One feed has no room and one fills up half-way; a third has every item, and the crawl ends as usual."""
    half, good = tmp_path / "half.jsonl", tmp_path / "good.csv"
    fields = {"fields": ["id", "main_html", "markdown"], "format": "jsonlines"}
    feeds = {str(good): {"format": "csv", "fields": ["id"]}, str(half): fields, "/dev/full": fields}
    for number in range(60 * TIMES):
        site.routes[f"/page/{number}"] = ("text/html", page(number, "<p>MAIN " + "words " * 500).encode())
    spider = fault_spider(site.pages(60 * TIMES))

    with small_files(200_000):
        result = crawl(spider, {**SETTINGS, "FEEDS": feeds})

    spider.ledger.balance(result)
    assert len(spider.ledger.by) == 60 * TIMES
    assert "No space left on device" in caplog.text
    assert "File too large" in caplog.text
    assert 0 < half.stat().st_size <= 200_000
    assert sorted(map(int, good.read_text().split()[1:])) == list(range(60 * TIMES))
