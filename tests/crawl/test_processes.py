"""Processes of their own: how crawls start in them, that they reject settings, and that each loads little."""

from __future__ import annotations

import json
from typing import Any

import pytest
import scrapy

from tests.crawl.conftest import KINDS, Start
from tests.crawl.crawling import Site
from tests.programs import python


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_process_works(start: Start, site: Site, kind: str) -> None:
    """There is a Twisted reactor, started in either way, or none. Each process also runs two crawls at once."""
    process = start(kind, urls=site.pages(5), crawls=2, check=True)

    assert process.end() == 0
    assert process.said[-2:] == ["left", "finished"]
    assert sorted(item["url"] for item in process.items) == sorted(site.pages(5) * 2)
    assert all("MAIN text of page " + item["url"][-1] in item["markdown"] for item in process.items)
    ours = [line for line in process.logged if "AiohttpDownloadHandler is experimental" not in line]
    assert not [line for line in ours if "WARNING" in line or "ERROR" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("settings", "engine", "sentence"),
    [
        ({"DRIPPER_BACH_SIZE": 5}, "good", "ConfigError: DRIPPER_BACH_SIZE is not a setting of scrapy-dripper"),
        ({"DRIPPER_MODEL": "/no/such/folder"}, "real", "ModelError: "),
        ({"DRIPPER_MODEL": "/no/such/folder", "DRIPPER_PROCESSES": 1}, "real", "ModelError: "),
        (
            {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
            "good",
            "ConfigError: TWISTED_REACTOR must be 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'",
        ),
    ],
    ids="name model worker's-model reactor".split(),
)
def test_a_crawl_that_cannot_work_stops_at_its_start(
    start: Start, site: Site, settings: dict[str, Any], engine: str, sentence: str
) -> None:
    """No page is downloaded, the exit status shows the failure, and the last line says what to do."""
    process = start("CrawlerProcess", settings, urls=site.pages(1), engine=engine)

    process.end()

    assert site.seen == []
    # Before 2.16, Scrapy's CrawlerProcess does not tell such an end from another.
    assert process.said == ["failed" if scrapy.version_info >= (2, 16) else "finished"]
    assert any(sentence in line for line in process.logged), "\n".join(process.logged)


COUNT = """
import json, sys
from pathlib import Path

def loaded():
    own = [module for name, module in sys.modules.items() if name.partition(".")[0] == "scrapy_dripper"]
    return sum(len(Path(one.__file__).read_text(encoding="utf-8").splitlines()) for one in own if one.__file__)

html = "<title>Tides</title><article><h1>Tides</h1>" + 30 * "<p>The sea rises and falls twice a day.</p>"
"""
CRAWL = """
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

class Pages(scrapy.Spider):
    name = "pages"
    start_urls = json.loads(sys.argv[1])
    items = []

    def parse(self, response):
        item = {"url": response.url}
        self.items.append(item)
        yield item

process = AsyncCrawlerProcess({"ADDONS": {"scrapy_dripper.Addon": 500}, "LOG_LEVEL": "ERROR"})
process.crawl(Pages)
process.start()
print(json.dumps({"filled": sum("markdown" in item for item in Pages.items), "lines": loaded(),
    "parser": "scrapy_dripper.page" in sys.modules}))
"""
EXTRACT = """
import scrapy_dripper
text = scrapy_dripper.extract(html).text
print(json.dumps({"lines": loaded(), "text": text}))
"""
WORKER = """
import io
from scrapy_dripper.child import serve
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.workers.wire import Task, pack_config, pack_tasks, send
header, bodies = pack_tasks([Task(Document(html, "https://example.org/"), Config())])
requests, answers = io.BytesIO(), io.BytesIO()
send(requests, {"do": "extract", **header}, bodies)
requests.seek(0)
startup = {"config": pack_config(Config()), "role": "pages", "again": False, "logging": 30}
serve(requests, answers, startup, ready=lambda: None)
print(json.dumps({"lines": loaded(), "text": answers.getvalue().decode("latin-1")}))
"""


def test_a_crawl_loads_little(site: Site) -> None:
    """Nothing of the parser, the model or the writers is loaded, neither before the first page nor after twenty."""
    said = run(CRAWL, json.dumps(site.pages(20)))

    assert said["filled"] == 20
    assert said["lines"] < 5_000
    assert not said["parser"]


@pytest.mark.parametrize(("script", "most"), [(EXTRACT, 20_000), (WORKER, 19_000)], ids=["extract", "worker"])
def test_a_page_loads_what_it_needs(script: str, most: int) -> None:
    """What few pages need, such as fallbacks and the reader of threads, is loaded for them."""
    said = run(script)

    assert "rises and falls" in said["text"]
    assert said["lines"] < most


def run(script: str, *arguments: str) -> dict[str, Any]:
    done = python("-c", COUNT + script, *arguments)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
