"""Compressed bodies in a live crawl: Scrapy's settings limit the unpacking, and the plugin limits the page."""

from __future__ import annotations

import zlib
from importlib.util import find_spec
from typing import Any

import scrapy

from tests.crawl.crawling import Crawls, Site, answer

SMALL, LARGE = 12, 24  # MB: over DRIPPER_LIMITS["bytes"], and over DOWNLOAD_MAXSIZE as well
MOST = 15_000_000
LINE = b"<p>MAIN words of the article: rivers, harbours, bridges and gardens, one and all.</p>\n"


def packed(encoding: str, megabytes: int) -> bytes:
    """Return a number of megabytes of paragraphs, compressed."""
    data = LINE * (megabytes * 1_000_000 // len(LINE) or 5)
    if encoding == "br":
        import brotli

        return bytes(brotli.compress(data, quality=3))
    packer = zlib.compressobj(6, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw": -15}[encoding])
    return packer.compress(data) + packer.flush()


class Pages(scrapy.Spider):
    """Yields an item for each page, or for its failure."""

    name = "pages"
    urls: list[str]

    async def start(self) -> Any:
        for url in self.urls:
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url, "bytes": len(response.body)}

    def failed(self, failure: Any) -> Any:
        return {"url": failure.request.url, "failed": failure.type.__name__}


def test_packed_bodies_cost_no_more_than_the_settings_allow(crawl: Crawls, site: Site) -> None:
    """Above ``DOWNLOAD_MAXSIZE``, there is no response. Above ``DRIPPER_LIMITS["bytes"]``, the page falls back."""
    for encoding in ["gzip", "deflate", "raw", *(["br"] if find_spec("brotli") else [])]:
        for size in (LARGE, 0, SMALL):
            body = packed(encoding, size)
            assert len(body) < MOST / 10
            header = f"Content-Encoding: {'deflate' if encoding == 'raw' else encoding}"
            site.raw[f"/{encoding}/{size}"] = [(answer(body, header), "keep")]
    urls = [site.url(path) for path in site.raw]
    settings = {"DOWNLOAD_MAXSIZE": MOST, "DRIPPER_FALLBACK": "empty", "DRIPPER_META_FIELD": "by"}

    items = crawl(type("Pages", (Pages,), {"urls": urls}), settings).items

    assert sorted(item["url"] for item in items) == sorted(urls)
    for item in items:
        size = int(item["url"].rpartition("/")[2])
        if size == LARGE:
            assert item["failed"] in ("IgnoreRequest", "ResponseFailed", "DownloadCancelledError")
        elif size == SMALL:
            assert item["bytes"] > 10_000_000
            assert item["by"]["fallback_reason"] == "oversize"
        else:
            assert item["by"]["fallback_reason"] is None
