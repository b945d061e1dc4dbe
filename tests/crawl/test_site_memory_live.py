"""The site memory of a crawl: where it is kept, its file in ``JOBDIR``, and its stats."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from scrapy_dripper.crawl.sites import MEMORY_FILE
from tests.crawl.crawling import Crawls, Site, spider

BOX = "<div class=team><p>MAIN team of the site.</p><p>MAIN people who write it.</p></div>"


@pytest.fixture
def pages(site: Site) -> list[str]:
    """Thirty pages with their own text, and a box that all of them share."""
    for number in range(30):
        own = "".join(f"<p>MAIN sentence {i} of page {number}, long enough to be its text.</p>" for i in range(9))
        site.routes[f"/page/{number}"] = ("text/html", f"<body><article>{own}</article>{BOX}</body>".encode())
    return [site.url(f"/page/{number}") for number in range(30)]


def settings(processes: int, job: Path) -> dict[str, object]:
    return {
        "DRIPPER_SITES": "memory",
        "DRIPPER_TEXT_FIELD": "text",
        "DRIPPER_PROCESSES": processes,
        "DRIPPER_ENGINE": "tests.crawl.engines.Truth",
        "DRIPPER_BATCH_SIZE": 2,
        "CONCURRENT_REQUESTS": 2,
        "JOBDIR": str(job),
    }


@pytest.mark.parametrize("processes", [0, 2])
def test_a_crawl_and_the_next_of_its_job(crawl: Crawls, pages: list[str], tmp_path: Path, processes: int) -> None:
    """The memory is empty for the first pages, and is kept for the next run of the job."""
    first = crawl(spider(pages[:20]), settings(processes, tmp_path))
    texts = [item["text"] for item in first.items]

    assert all(text.count("MAIN sentence") == 9 for text in texts)
    left_out = sum("MAIN team" not in text for text in texts)
    assert 0 < left_out < 20
    assert [first.stat(f"site_memory/{name}") for name in ("pages", "changed", "blocks", "hosts")] == [
        *(20, left_out, 2 * left_out, 1),
    ]

    second = crawl(spider(pages[20:]), settings(processes, tmp_path))

    assert len(second.items) == 10
    assert all("MAIN team" not in item["text"] for item in second.items)
    assert all(item["text"].count("MAIN sentence") == 9 for item in second.items)
    assert second.stat("site_memory/changed") == 10


def test_repeated_downloads_of_a_page(crawl: Crawls, site: Site, pages: list[str], tmp_path: Path) -> None:
    """They are not counted again, and lose no text."""
    site.routes |= {f"/page/0?utm_source={i}": site.routes["/page/0"] for i in range(12)}
    urls = [f"{pages[0]}?utm_source={i}" for i in range(12)]
    result = crawl(spider(urls), {**settings(0, tmp_path), "DRIPPER_BATCH_SIZE": 1})

    assert len(result.items) == 12
    assert all("MAIN team" in item["text"] for item in result.items)
    assert [result.stat("site_memory/pages"), result.stat("site_memory/copies")] == [1, 11]


def test_a_broken_file_is_a_warning(
    crawl: Crawls, pages: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / MEMORY_FILE).write_bytes(b"broken")
    with caplog.at_level(logging.WARNING, logger="scrapy_dripper"):
        result = crawl(spider(pages[:2]), settings(0, tmp_path))

    assert len(result.items) == 2
    assert "the crawl begins without it" in caplog.text
    assert (tmp_path / MEMORY_FILE).read_bytes() != b"broken"
