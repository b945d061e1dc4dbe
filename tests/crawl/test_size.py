"""The process of a crawl loads little of the package, because workers extract the pages."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.crawl.crawling import Site

MOST_LINES = 5_200
SCRIPT = """
import json, sys
from pathlib import Path
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
own = [module for name, module in sys.modules.items() if name.partition(".")[0] == "scrapy_dripper"]
lines = sum(len(Path(module.__file__).read_text(encoding="utf-8").splitlines()) for module in own if module.__file__)
print(json.dumps({"filled": sum("markdown" in item for item in Pages.items), "lines": lines,
    "parser": "scrapy_dripper.page" in sys.modules}))
"""


def test_a_crawl_loads_little(site: Site) -> None:
    """Nothing of the parser, the model or the writers is loaded, neither before the first page nor after twenty."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(site.pages(20))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])

    assert said["filled"] == 20, done.stderr
    assert said["lines"] < MOST_LINES
    assert not said["parser"]
