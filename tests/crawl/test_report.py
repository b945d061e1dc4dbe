"""A crawl ends with a summary in the log and the file of DRIPPER_REPORT."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import scrapy

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import report as report_module
from scrapy_dripper.crawl.report import Report
from scrapy_dripper.data import Extraction
from scrapy_dripper.engines.base import EngineError
from tests.crawl.crawling import Crawls, EngineLog, Site, spider


def data_of(path: Path) -> dict[str, Any]:
    (text,) = re.findall(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def one_fails(engine: Any, pages: Any) -> Any:
    from tests.crawl.crawling import truth

    return [EngineError("no") if page.url.endswith("/0") else truth(page) for page in pages]


def test_a_crawl_ends_with_a_summary_and_a_report(
    crawl: Crawls, site: Site, engine: EngineLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The report is complete, its folder is created, and no temporary file is left."""
    engine.act = one_fails
    path = tmp_path / "reports" / "crawl.html"

    with caplog.at_level(logging.INFO, logger=report_module.__name__):
        crawl(spider(site.pages(3)), {"DRIPPER_REPORT": path, "DRIPPER_FALLBACK": "empty"})

    said = [record.getMessage() for record in caplog.records if record.name == report_module.__name__]
    assert said[0].startswith("Main content of 3 pages\n")
    assert "fake 2 (66.7%), fallback:empty 1 (33.3%)" in said[0]
    assert "engine_error 1 (33.3%)" in said[0]
    assert re.search(r"batches +\d, on average \d\.\d of 8 pages", said[0])
    assert said[1] == f"Report of the crawl: {path}"
    assert list(path.parent.iterdir()) == [path]
    data = data_of(path)
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
    assert {row["url"] for row in rows} == set(site.pages(3))
    assert sorted((row["source"], row["strip"]) for row in rows) == [
        ("fake", "090"),
        ("fake", "090"),
        ("fallback:empty", ""),
    ]
    assert data["name"] == "test"


def test_a_crawl_without_pages_tells_nothing(crawl: Crawls, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=report_module.__name__):
        crawl(spider([]))

    assert [record for record in caplog.records if record.name == report_module.__name__] == []


def test_a_report_that_cannot_be_written_is_one_line_in_the_log(
    crawl: Crawls, site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "file"

    def parse(self: scrapy.Spider, response: Any) -> Any:
        folder.rmdir()
        folder.touch()
        yield {"url": response.url}

    result = crawl(spider(site.pages(1), parse), {"DRIPPER_REPORT": folder / "report.html"})

    assert len(result.items) == 1
    assert result.stats["finish_reason"] == "finished"
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    (error,) = errors
    assert error.getMessage().startswith(f"DRIPPER_REPORT: cannot write {tmp_path / 'file' / 'report.html'}: ")
    assert error.exc_info is None


def test_a_report_that_could_not_be_written_stops_the_crawl_at_its_start(crawl: Crawls, tmp_path: Path) -> None:
    """Its end may be days later."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"DRIPPER_REPORT: .*file cannot be written to: File exists"):
        crawl(spider([]), {"DRIPPER_REPORT": tmp_path / "file" / "report.html"})


def test_an_older_report_stays_if_the_new_one_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("older", encoding="utf-8")
    report = Report(Config(report=str(path)))
    report.page(Extraction("https://e.org/", None, "", "", "", "tagger"))
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))

    report.tell("spider")

    assert path.read_text(encoding="utf-8") == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_cannot_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"DRIPPER_REPORT must be the path of a file \(got the folder"):
        Report(Config(report=str(tmp_path)))


def test_without_a_report_no_rows_are_kept() -> None:
    report = Report(Config())
    report.page(Extraction("https://e.org/", None, "", "", "", "tagger"))

    assert (report.summary.pages, report._sample.rows) == (1, [])
