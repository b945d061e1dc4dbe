"""Each process loads only those parts of the package that ordinary pages need."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.crawl.crawling import Site

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


@pytest.mark.parametrize(("script", "most"), [(EXTRACT, 20_000), (WORKER, 18_900)], ids=["extract", "worker"])
def test_a_page_loads_what_it_needs(script: str, most: int) -> None:
    """What few pages need, such as fallbacks and the reader of threads, is loaded for them."""
    said = run(script)

    assert "rises and falls" in said["text"]
    assert said["lines"] < most


def run(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", COUNT + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
