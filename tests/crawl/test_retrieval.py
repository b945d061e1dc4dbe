"""Chunks, links and fingerprints on the items of live crawls."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_dripper.config import ConfigError
from scrapy_dripper.fingerprint import content_hash
from tests.crawl.crawling import Crawls, Site, spider, workers

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


def test_a_request_can_have_its_own(crawl: Crawls, site: Site) -> None:
    """It can change the size and switch off front matter."""
    site.routes["/tides"] = ("text/html", PAGE)
    own = {"chunks": {"size": 500}, "markdown": {"front_matter": False}, "links_field": None}
    result = crawl(spider([site.url("/tides")], meta={"dripper": own}), workers(1, **FIELDS))
    (item,) = result.items

    assert len(item["chunks"]) == 1
    assert item["markdown"].startswith("# MAIN heading")
    assert "links" not in item


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
