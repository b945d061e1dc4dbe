"""The tests in docs/guides/testing.md pass, and the helper reports what goes wrong in a test's crawl."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider

from scrapy_dripper import ConfigError, EngineError, Extractor, FallbackReason
from scrapy_dripper.testing import FakeEngine, crawl, response

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S))
URL = "https://a.example/"


def test_the_documented_tests_pass(tmp_path: Path) -> None:
    for name, code in FILES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


class OnePage(Spider):
    name = "one"
    start_urls = (URL, URL + "missing")
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}  # noqa: RUF012 (Scrapy's)

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status}


class Stuck(Spider):
    name = "stuck"
    start_urls = (URL,)

    def parse(self, response: Any, **kwargs: Any) -> None:
        time.sleep(600)


def test_other_urls_are_not_found(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes("<meta charset=latin-1><p>Flut für alle.</p>".encode("latin-1"))
    crawled = crawl(OnePage, {URL: file})

    assert {item["status"]: item.get("text") or item.get("markdown") for item in crawled.items} == {
        200: "Flut für alle.",
        404: None,
    }


def test_what_stops_a_crawl_at_its_start_is_raised() -> None:
    with pytest.raises(ConfigError, match="DRIPPER_BATCH_SIZE must be a whole number"):
        crawl(OnePage, {}, {"DRIPPER_BATCH_SIZE": 0})


def test_a_crawl_that_hangs_is_ended() -> None:
    with pytest.raises(TimeoutError, match="the crawl of Stuck takes longer than 15 seconds"):
        crawl(Stuck, {URL: "<p>a</p>"}, timeout=15)


def test_a_response_has_the_encoding_of_its_text() -> None:
    assert response("<p>für</p>").css("p::text").get() == "für"


def test_an_engine_can_refuse_a_page() -> None:
    class Refusing(FakeEngine):
        def answer(self, page: Any) -> Any:
            return EngineError("not this one")

    [page] = Extractor(engine=Refusing()).extract(["<p>Some text.</p>"])

    assert (page.fallback_reason, page.error) == (FallbackReason.ENGINE_ERROR, "not this one")
