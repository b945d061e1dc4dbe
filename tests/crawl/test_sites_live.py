"""What a crawl learns of its sites: the memory and the templates, what a job keeps, stats, and that no item is lost."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from scrapy_dripper.crawl.sites import MEMORY_FILE, TEMPLATES_FILE
from tests.crawl.crawling import Crawls, Site, spider, workers
from tests.sites.site import article

BOX = "<div class=team><p>MAIN team of the site.</p><p>MAIN people who write it.</p></div>"
COUNT = 60


@pytest.fixture
def pages(site: Site) -> list[str]:
    """Thirty pages with their own text, and a box that all of them share."""
    for number in range(30):
        own = "".join(f"<p>MAIN sentence {i} of page {number}, long enough to be its text.</p>" for i in range(9))
        site.routes[f"/page/{number}"] = ("text/html", f"<body><article>{own}</article>{BOX}</body>".encode())
    return [site.url(f"/page/{number}") for number in range(30)]


@pytest.fixture
def articles(site: Site) -> list[str]:
    """Articles of one template, with text of their own."""
    for number in range(COUNT):
        site.routes[f"/articles/{number}"] = ("text/html; charset=utf-8", article(number).encode())
    return [site.url(f"/articles/{number}") for number in range(COUNT)]


def settings(sites: str, processes: int, job: Path) -> dict[str, object]:
    own = workers(processes, sites=sites, text_field="text", batch_size=2)
    return own | {"CONCURRENT_REQUESTS": 2, "JOBDIR": str(job)}


@pytest.mark.parametrize("processes", [0, 2])
def test_the_memory_of_a_crawl_and_the_next_of_its_job(
    crawl: Crawls, pages: list[str], tmp_path: Path, processes: int
) -> None:
    """The memory is empty for the first pages, and is kept for the next run of the job."""
    first = crawl(spider(pages[:20]), settings("memory", processes, tmp_path))
    texts = [item["text"] for item in first.items]

    assert all(text.count("MAIN sentence") == 9 for text in texts)
    left_out = sum("MAIN team" not in text for text in texts)
    assert 0 < left_out < 20
    assert [first.stat(f"site_memory/{name}") for name in ("pages", "changed", "blocks", "hosts")] == [
        *(20, left_out, 2 * left_out, 1),
    ]

    second = crawl(spider(pages[20:]), settings("memory", processes, tmp_path))

    assert len(second.items) == 10
    assert all("MAIN team" not in item["text"] for item in second.items)
    assert all(item["text"].count("MAIN sentence") == 9 for item in second.items)
    assert second.stat("site_memory/changed") == 10


def test_repeated_downloads_of_a_page(crawl: Crawls, site: Site, pages: list[str], tmp_path: Path) -> None:
    """They are not counted again, and lose no text."""
    site.routes |= {f"/page/0?utm_source={i}": site.routes["/page/0"] for i in range(12)}
    urls = [f"{pages[0]}?utm_source={i}" for i in range(12)]
    result = crawl(spider(urls), {**settings("memory", 0, tmp_path), "DRIPPER_BATCH_SIZE": 1})

    assert len(result.items) == 12
    assert all("MAIN team" in item["text"] for item in result.items)
    assert [result.stat("site_memory/pages"), result.stat("site_memory/copies")] == [1, 11]


@pytest.mark.parametrize("processes", [0, 2])
def test_the_templates_of_a_crawl_and_the_next_of_its_job(
    crawl: Crawls, articles: list[str], tmp_path: Path, processes: int
) -> None:
    """Most pages need no model; all have their text, and only that. The next crawl of the job goes on at once."""
    half = COUNT // 2
    first = crawl(spider(articles[:half]), settings("templates", processes, tmp_path))
    second = crawl(spider(articles[half:]), settings("templates", processes, tmp_path))

    assert len(first.items) == len(second.items) == half
    for item in (*first.items, *second.items):
        number = item["url"].rpartition("/")[2]
        assert item["text"].startswith(f"MAIN title {number}\n")
        assert item["text"].count(f"MAIN sentence of article {number},") == 4
        assert "newsletter" not in item["text"]
        assert (item["by"]["source"] == "template") == (item["by"]["template"] == "answered")
    answered = [result.stat("templates/answered") for result in (first, second)]
    audits = [result.stat("templates/audit") or 0 for result in (first, second)]  # the port decides which pages
    assert answered[0] > 5  # pages in flight are decided without the latest examples
    assert answered[1] + audits[1] == half
    assert [result.stat("pages/template") for result in (first, second)] == answered
    assert second.stat("templates/hosts") == 1


@pytest.mark.parametrize(("sites", "file"), [("memory", MEMORY_FILE), ("templates", TEMPLATES_FILE)])
def test_a_broken_file_is_a_warning(
    crawl: Crawls, pages: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture, sites: str, file: str
) -> None:
    (tmp_path / file).write_bytes(b"broken")
    with caplog.at_level(logging.WARNING, logger="scrapy_dripper"):
        result = crawl(spider(pages[:2]), settings(sites, 0, tmp_path))

    assert len(result.items) == 2
    assert "the crawl begins without it" in caplog.text
    assert (tmp_path / file).read_bytes() != b"broken"


def test_both_memories_at_once(crawl: Crawls, articles: list[str], tmp_path: Path) -> None:
    """They learn from the same pages, and the job keeps both."""
    result = crawl(spider(articles), settings("all", 2, tmp_path))

    assert len(result.items) == COUNT
    assert result.stat("templates/answered") > 10
    assert all("MAIN sentence" in item["text"] for item in result.items)

    assert {path.name for path in tmp_path.iterdir()} >= {"dripper-sites", "dripper-templates"}
