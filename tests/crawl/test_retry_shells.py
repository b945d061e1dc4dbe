"""Pages that only a script fills are downloaded again in a browser. The callback never gets the shell."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.test import get_crawler

from scrapy_dripper.config import ConfigError
from scrapy_dripper.downloadermiddlewares import DripperShellMiddleware
from tests.crawl import crawling
from tests.crawl.crawling import Crawls, EngineLog, Site

SHELL = "<html><head><title>Ferry</title></head><body><div id=root></div><script src=/app.js></script></body></html>"
RENDERED = "<html><body><div id=root><h1>Ferry</h1><p>MAIN text that the script writes.</p></div></body></html>"


class PlaywrightLike(HTTP11DownloadHandler):
    """Answers like a browser after running the scripts, if the request asks for a browser."""

    async def download_request(self, request: scrapy.Request, *spider: Any) -> Any:  # type: ignore[override]
        response: Any = super().download_request(request, *spider)
        response = await response
        return response.replace(body=RENDERED.encode()) if request.meta.get("playwright") else response


HANDLERS = {"DOWNLOAD_HANDLERS": {"http": PlaywrightLike}}
ON = {**HANDLERS, "DRIPPER_RETRY_SHELLS": True, "DRIPPER_META_FIELD": "about"}


def spider(*urls: str, **meta: Any) -> type[scrapy.Spider]:
    def parse(self: scrapy.Spider, response: Any) -> Any:
        yield {"url": response.url, "rendered": bool(response.meta.get("playwright"))}

    return crawling.spider([scrapy.Request(url, meta=meta) for url in urls], parse)


@pytest.fixture
def shell(site: Site) -> str:
    site.routes["/app"] = ("text/html", SHELL.encode())
    return site.url("/app")


def test_a_shell_is_downloaded_in_a_browser(
    crawl: Crawls, site: Site, engine: EngineLog, shell: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No warning advises what the crawl does already."""
    caplog.set_level("INFO", "scrapy_dripper")
    result = crawl(spider(shell), ON)

    assert "browser" not in "".join(record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    (item,) = result.items
    assert (item["rendered"], item["markdown"]) == (True, "# Ferry\n\nMAIN text that the script writes.")
    assert item["about"]["source"] == "fake"
    assert site.seen == ["/app", "/app"]
    assert (result.stat("retried_shells"), result.stat("pages"), result.stat("fallback/js_shell")) == (1, 1, 0)
    assert "Main content of 1 page\n" in caplog.text


def test_other_pages_are_downloaded_once(crawl: Crawls, site: Site, engine: EngineLog) -> None:
    """The item gets the extraction that the response has waited for."""
    result = crawl(spider(site.url("/page/1")), ON)

    assert [(item["rendered"], item["markdown"][:9]) for item in result.items] == [(False, "MAIN text")]
    assert (len(site.seen), result.stat("pages"), result.stat("retried_shells")) == (1, 1, 0)


def test_a_crawl_that_retries_none_is_told_once(
    crawl: Crawls, site: Site, shell: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.routes["/other"] = site.routes["/app"]
    result = crawl(spider(shell, site.url("/other")), HANDLERS)

    assert caplog.text.count("is empty until a script fills it: let a browser download such pages") == 1
    assert result.stat("fallback/js_shell") == 2


def test_a_page_that_stays_a_shell_is_sent_back_once(
    crawl: Crawls, site: Site, shell: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning says what to do, instead of advising a browser. Neither its first download is a page, nor that of
    another that the browser fills."""
    monkeypatch.setattr(f"{__name__}.RENDERED", SHELL)
    caplog.set_level("INFO", "scrapy_dripper")
    site.routes["/other"] = site.routes["/app"]
    result = crawl(spider(shell, site.url("/other")), ON)

    assert [(item["rendered"], item["about"]["fallback_reason"]) for item in result.items] == [(True, "js_shell")] * 2
    assert len(site.seen) == 4
    names = ("retried_shells", "retried_shells/empty", "pages", "fallback/js_shell")
    assert [result.stat(name) for name in names] == [2, 2, 2, 2]
    assert "Main content of 2 pages\n" in caplog.text
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert any(
        f"{url} is still empty after the browser: wait for an element" in warning for url in (shell, site.url("/other"))
    )
    assert "playwright_page_methods" in warning


def test_the_browser_is_not_advised_to_those_who_use_it(
    crawl: Crawls, shell: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A request for a browser needs no setting."""
    monkeypatch.setattr(f"{__name__}.RENDERED", SHELL)
    result = crawl(spider(shell, playwright=True), HANDLERS)

    assert (result.stat("pages"), result.stat("retried_shells"), result.stat("retried_shells/empty")) == (1, 0, 1)
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert "is still empty after the browser" in warning


@pytest.mark.parametrize(
    ("settings", "meta", "status", "rendered"),
    [
        (HANDLERS, {}, 200, False),
        ({**ON, "DRIPPER_RETRY_SHELLS": False}, {}, 200, False),
        (ON, {"dripper": {"retry_shells": False}}, 200, False),
        (ON, {"dripper": False}, 200, False),
        (HANDLERS, {"dripper": {"retry_shells": True}}, 200, True),
        (ON, {"handle_httpstatus_all": True}, 404, False),
    ],
    ids=["default", "off", "off for a request", "not extracted", "on for a request", "error page"],
)
def test_shells_are_only_retried_on_request(
    crawl: Crawls, site: Site, shell: str, settings: dict[str, Any], meta: dict[str, Any], status: int, rendered: bool
) -> None:
    site.status["/app"] = status
    result = crawl(spider(shell, **meta), settings)

    assert [item["rendered"] for item in result.items] == [rendered]
    assert len(site.seen) == 1 + rendered


def test_a_cached_shell_is_downloaded_again(
    crawl: Crawls, site: Site, engine: EngineLog, shell: str, tmp_path: Any
) -> None:
    """Scrapy's cache has the same key for both requests."""
    cached = {**ON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    first, second = crawl(spider(shell), cached), crawl(spider(shell), cached)

    assert [item["rendered"] for result in (first, second) for item in result.items] == [True, True]
    assert len(site.seen) == 3


def test_a_crawl_without_a_browser_stops_at_its_start() -> None:
    crawler = get_crawler(settings_dict={"DRIPPER_RETRY_SHELLS": True})
    with pytest.raises(ConfigError, match=r"DRIPPER_RETRY_SHELLS needs the download handler of scrapy-playwright"):
        DripperShellMiddleware.from_crawler(crawler)
