"""All ways in which a program can run crawls, on asyncio's event loop and on uvloop's, with two crawls at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import scrapy

from tests.crawl.crawling import PATIENCE, Site

KINDS: dict[str, dict[str, Any]] = {
    "CrawlerProcess": {},
    "AsyncCrawlerProcess": {},
    "CrawlerRunner": {},
    "AsyncCrawlerRunner": {},
}
if scrapy.version_info >= (2, 19):  # From then on with a download handler that every installation has.
    KINDS["asyncio.run"] = {"TWISTED_REACTOR_ENABLED": False}

UVLOOP = "uvloop.Loop" if find_spec("uvloop") else None

PARAGRAPH = (
    "The tide of harbour {n} is measured every ten minutes by a gauge on the old pier, and the keeper writes down how "
    "high the water stands, which way the wind blows, and whether any ship has asked for the lock to be opened. "
)


def article(n: object) -> bytes:
    """Return a page whose main content the bundled tagger recognises."""
    body = f"<h1>Harbour {n}</h1>" + "".join(f"<p>{PARAGRAPH.format(n=n)}Entry {i} of {n}.</p>" for i in range(5))
    links = "".join(f"<li><a href='/{word.lower()}'>{word}</a></li>" for word in ("Home", "Products", "Contact"))
    return (
        f"<!DOCTYPE html><html><head><title>Harbour {n}</title></head><body><nav><ul>{links}</ul></nav>"
        f"<article>{body}</article><footer><p><a href='/privacy'>Privacy policy</a></p></footer></body></html>"
    ).encode()


def run(kind: str, crawls: list[list[str]], **settings: Any) -> dict[str, Any]:
    """Run crawls at the same time and return the output of the process."""
    job = {"kind": kind, "crawls": crawls, "settings": {**KINDS[kind], **settings}}
    done = subprocess.run(
        [sys.executable, "-m", "tests.crawl.runners", json.dumps(job)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "log": done.stderr}


@pytest.mark.parametrize("kind", KINDS)
def test_two_crawls_at_once_share_the_model(site: Site, kind: str) -> None:
    """It is loaded once, no page gets into the other crawl, and the last to end gives it back."""
    paths = [[f"/page/{crawl}-{n}" for n in range(11)] for crawl in "ab"]
    for path in chain(*paths):
        site.routes[path] = ("text/html", article(path[6:]))

    said = run(kind, [[*map(site.url, some)] for some in paths])

    assert said["errors"] == []
    assert ["uvloop" in used for used in said["loops"]] == [False] * 2
    for items, some in zip(said["items"], paths, strict=True):
        assert sorted(item["url"] for item in items) == sorted(map(site.url, some))
        for item in items:
            assert f"Entry 4 of {item['url'].rpartition('/')[2]}." in item["markdown"]
            assert "Privacy" not in item["markdown"]
    assert said["sessions"] == 4  # the tagger's graphs
    assert said["open"] == 0
    assert said["workers"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_crawls_at_once_share_a_worker(site: Site, kind: str) -> None:
    """One process for both, none of the model in the crawl's own, and nothing is left of it. On uvloop, if there is."""
    paths = [[f"/page/{crawl}-{n}" for n in range(6)] for crawl in "ab"]
    for path in chain(*paths):
        site.routes[path] = ("text/html", article(path[6:]))

    loop = {"ASYNCIO_EVENT_LOOP": UVLOOP} if UVLOOP else {}

    said = run(kind, [[*map(site.url, some)] for some in paths], DRIPPER_PROCESSES=1, **loop)

    assert said["errors"] == []
    assert ["uvloop" in used for used in said["loops"]] == [bool(loop)] * 2
    for items, some in zip(said["items"], paths, strict=True):
        assert sorted(item["url"] for item in items) == sorted(map(site.url, some))
        for item in items:
            assert f"Entry 4 of {item['url'].rpartition('/')[2]}." in item["markdown"]
    assert said["sessions"] == 0
    (worker,) = said["workers"]
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_runner_on_another_reactor_says_what_to_set(site: Site) -> None:
    """The program chooses the reactor, so it gets the error. Nothing is downloaded."""
    said = run("CrawlerRunner", [[site.url("/page/1")]], TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor")

    (error,) = said["errors"]
    assert error.startswith("ConfigError(\"TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.")
    assert site.seen == []
