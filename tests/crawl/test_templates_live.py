"""The templates of a crawl: what the model is not asked about, what a job keeps, and that no item is lost."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from scrapy_dripper.crawl.sites import TEMPLATES_FILE
from tests.crawl.crawling import Crawls, Site, spider
from tests.sites.site import article

COUNT = 60


@pytest.fixture
def pages(site: Site) -> list[str]:
    """Articles of one template, with text of their own."""
    for number in range(COUNT):
        site.routes[f"/articles/{number}"] = ("text/html; charset=utf-8", article(number).encode())
    return [site.url(f"/articles/{number}") for number in range(COUNT)]


def settings(processes: int, job: Path) -> dict[str, object]:
    return {
        "DRIPPER_SITES": "templates",
        "DRIPPER_TEXT_FIELD": "text",
        "DRIPPER_META_FIELD": "meta",
        "DRIPPER_PROCESSES": processes,
        "DRIPPER_ENGINE": "tests.crawl.engines.Truth",
        "DRIPPER_BATCH_SIZE": 2,
        "CONCURRENT_REQUESTS": 2,
        "JOBDIR": str(job),
    }


@pytest.mark.parametrize("processes", [0, 2])
def test_a_crawl_and_the_next_of_its_job(crawl: Crawls, pages: list[str], tmp_path: Path, processes: int) -> None:
    """Most pages need no model; all have their text, and only that. The next crawl of the job goes on at once."""
    half = COUNT // 2
    first = crawl(spider(pages[:half]), settings(processes, tmp_path))
    second = crawl(spider(pages[half:]), settings(processes, tmp_path))

    assert len(first.items) == len(second.items) == half
    for item in (*first.items, *second.items):
        number = item["url"].rpartition("/")[2]
        assert item["text"].startswith(f"MAIN title {number}\n")
        assert item["text"].count(f"MAIN sentence of article {number},") == 4
        assert "newsletter" not in item["text"]
        assert (item["meta"]["source"] == "template") == (item["meta"]["template"] == "answered")
    answered = [result.stat("templates/answered") for result in (first, second)]
    audits = [result.stat("templates/audit") or 0 for result in (first, second)]  # the port decides which pages
    assert answered[0] > 5  # pages in flight are decided without the latest lessons
    assert answered[1] + audits[1] == half
    assert [result.stat("pages/template") for result in (first, second)] == answered
    assert second.stat("templates/hosts") == 1


def test_a_broken_file_is_a_warning(
    crawl: Crawls, pages: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / TEMPLATES_FILE).write_bytes(b"broken")
    with caplog.at_level(logging.WARNING, logger="scrapy_dripper"):
        result = crawl(spider(pages[:2]), settings(0, tmp_path))

    assert len(result.items) == 2
    assert "the crawl begins without it" in caplog.text
    assert (tmp_path / TEMPLATES_FILE).read_bytes() != b"broken"


def test_both_memories_at_once(crawl: Crawls, pages: list[str], tmp_path: Path) -> None:
    """What is furniture of the site is left out of pages that a template answers, too."""
    box = "<div class='team'><p>MAIN team of the site.</p><p>MAIN people who write it.</p></div></body>"
    options = {**settings(2, tmp_path), "DRIPPER_SITES": "all"}
    result = crawl(spider(pages), options)

    assert len(result.items) == COUNT
    assert result.stat("templates/answered") > 10
    assert all("MAIN sentence" in item["text"] for item in result.items)
    assert box not in result.items[0]["text"]
    assert {path.name for path in tmp_path.iterdir()} >= {"dripper-sites", "dripper-templates"}
