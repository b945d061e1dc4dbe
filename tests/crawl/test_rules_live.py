"""Rules in a crawl with workers or a thread, set for the crawl, a spider or a request, with their stats and log."""

from __future__ import annotations

import pytest

from tests.crawl.crawling import Crawls, Site, page, spider, workers

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
