"""A field of the output is one declaration: items, JSON, commands, workers and the reference follow from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = """    words_field: str | None = _field(
        None, "the number of words", make="words_of:count", in_page_item=None, flag="--words"
    )
"""
MAKER = """
def count(source):
    return {"words": len(source.extraction.text.split())}
"""
PAGE = (
    "<h1>Tides</h1>" + "<p>Tides are the rise and fall of sea levels, caused by the Moon and the Sun together.</p>" * 5
)
SCRIPT = """
import json, sys
from urllib.parse import quote
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy_dripper import Config, Document, Extractor

class Pages(Spider):
    name = "pages"
    items = []

    def parse(self, response):
        self.items.append({"url": response.url})
        yield self.items[0]

if __name__ == "__main__":
    page = sys.stdin.read()
    config = Config(words_field="w", processes=int(sys.argv[1]))
    [made] = Extractor(config).extract([Document(page)])
    Pages.start_urls = ["data:text/html;charset=utf-8," + quote(page)]
    settings = {"ADDONS": {"scrapy_dripper.Addon": 500}, "DRIPPER_WORDS_FIELD": "w", "DRIPPER_PROCESSES": 1}
    process = AsyncCrawlerProcess(settings, install_root_handler=False)
    process.crawl(Pages)
    process.start()
    [other] = Extractor(Config()).extract([Document(page)])
    print(json.dumps([made.words, Pages.items[0]["w"], hasattr(other, "words")]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package to which one field of the output was added."""
    folder = tmp_path_factory.mktemp("fields")
    shutil.copytree(ROOT / "scrapy_dripper", folder / "scrapy_dripper", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "models", folder / "scrapy_dripper" / "models")
    shutil.copytree(ROOT / "docs", folder / "docs")
    config = folder / "scrapy_dripper" / "config.py"
    before, after = config.read_text(encoding="utf-8").split("    meta_field: str")
    config.write_text(f"{before}{ROW}    meta_field: str{after}", encoding="utf-8")
    (folder / "words_of.py").write_text(MAKER, encoding="utf-8")
    (folder / "pages.py").write_text(SCRIPT, encoding="utf-8")
    return folder


def run(package: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=package, env=environment, input=PAGE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_field_is_in_extractions_and_items(package: Path) -> None:
    made, in_item, unasked = json.loads(run(package, "pages.py", "0"))
    assert made == in_item
    assert made["words"] > 50
    assert not unasked


def test_a_new_field_is_in_json_and_in_the_help(package: Path) -> None:
    page = json.loads(run(package, "-m", "scrapy_dripper", "extract", "-", "-f", "jsonl", "--words", "--jobs", "1"))
    assert page["words"]["words"] > 50
    assert "the number of words" in run(package, "-m", "scrapy_dripper", "extract", "--help")


def test_a_new_field_is_in_the_reference(package: Path) -> None:
    run(package, "docs/generate.py")
    settings = (package / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert "| `DRIPPER_WORDS_FIELD` | `None` | the number of words |" in settings
