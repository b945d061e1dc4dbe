"""A crawl ends with a summary in the log and the file of DRIPPER_REPORT."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import fromstring

from scrapy_dripper.cli.console import Outcomes
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl import report as report_module
from scrapy_dripper.crawl.report import MOST_ROWS, InspectCommand, Report, Row
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.engines.base import EngineError
from scrapy_dripper.learning.command import _of_answers
from scrapy_dripper.page.charset import decode_html
from tests.crawl.crawling import Crawls, EngineLog, Site, page, spider
from tests.inspection.conftest import data_of


def one_fails(engine: Any, pages: Any) -> Any:
    return [EngineError("no") if page.url.endswith("/0") else engine.answer(page) for page in pages]


def test_a_crawl_ends_with_a_summary_and_a_report(
    crawl: Crawls, site: Site, engine: EngineLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The report is complete and leads to a view of each page, its folder is created, and no temporary file is left."""
    engine.act = one_fails
    path = tmp_path / "reports" / "crawl.html"

    with caplog.at_level(logging.INFO, logger=report_module.__name__):
        crawl(spider(site.pages(3)), {"DRIPPER_REPORT": path, "DRIPPER_FALLBACK": "empty"})

    said = [record.getMessage() for record in caplog.records if record.name == report_module.__name__]
    assert said[0].startswith("Main content of 3 pages\n")
    assert "fake 2 (66.7%), fallback:empty 1 (33.3%)" in said[0]
    assert "engine_error 1 (33.3%)" in said[0]
    assert said[1] == f"Report of the crawl: {path}"
    assert {one.name for one in path.parent.iterdir()} == {"crawl.html", "crawl.pages"}
    root = fromstring(path.read_text(encoding="utf-8"))
    rows = [row for row in root.iter("tr") if row.get("data-host") == "127.0.0.1"]
    assert {row.find("td/a").get("href") for row in rows} == set(site.pages(3))
    assert Counter(row[3].text for row in rows) == {"fake": 2, "fallback:empty": 1}
    assert Counter(row.get("data-reason") for row in rows) == {"": 2, "engine_error": 1}
    assert sum("MAIN text of page 2, which is" in row.text_content() for row in rows) == 1
    assert root.findtext(".//h1") == "test"
    assert said[0] in root.findtext(".//pre")
    for row in rows:
        view = path.parent / row.findall(".//a")[-1].get("href")
        assert f"MAIN text of page {row.find('td/a').get('href')[-1]}" in view.read_text(encoding="utf-8")


def test_what_is_corrected_in_a_view_stays_and_is_learnt_from(
    crawl: Crawls, site: Site, engine: EngineLog, tmp_path: Path
) -> None:
    """The next crawl replaces the other pages of the report."""
    site.routes["/umlaut"] = ("text/html; charset=latin-1", page(1, "<p>Öl</p>").encode("latin-1"))
    folder, report = tmp_path / "crawl.pages", {"DRIPPER_REPORT": tmp_path / "crawl.html"}
    crawl(spider([site.url("/umlaut"), site.url("/page/2")]), report)
    (view,) = folder.glob("*umlaut*.inspect.html")
    (folder / "notes.html").touch()
    answer = {"task": data_of(view)["task"], "labels": {"1": "other", "2": "main", "3": "main", "4": "other"}}
    exported = folder / f"{answer['task']['id'].rpartition('-')[0]}.answer.json"
    exported.write_text(json.dumps(answer), encoding="utf-8")

    crawl(spider([site.url("/page/3")]), report)

    there = Counter(re.sub(r"^.*?-(page|umlaut).*?\.", r"\1.", path.name) for path in folder.iterdir())
    assert there == {f"{name}.{end}": 1 for name in ("umlaut", "page") for end in ("html", "inspect.html")} | {
        "umlaut.answer.json": 1,
        "notes.html": 1,
    }
    (corrected,) = _of_answers(folder, Outcomes())
    assert corrected.main.tolist() == [False, True, True, False]


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

    report.tell("spider", InspectCommand())

    assert path.read_text(encoding="utf-8") == "older"
    assert list(tmp_path.iterdir()) == [path]


PAGE = Extraction(
    "https://e.org/",
    "Tides",
    *("<p>text</p>", "text", "text"),
    "tagger",
    labels=(False, True, True, False),
    page_type="article",
    quality=0.95,
    details={"blocks": 4, "milliseconds": 10.0},
)


def test_the_summary_of_a_crawl() -> None:
    report = Report(Config())
    for number in range(100):
        details = {"blocks": 4, "milliseconds": 10.0 if number < 90 else 300.0}
        report.page(replace(PAGE, quality=0.95 if number else 0.4, details=details))
    stopped = replace(PAGE, source="fallback:trafilatura", page_type=None, quality=None, details={})
    report.page(replace(stopped, fallback_reason=FallbackReason.TIMEOUT))

    assert report.summary().splitlines() == [
        "Main content of 101 pages",
        "  by source     tagger 100 (99.0%), fallback:trafilatura 1 (1.0%)",
        "  by reason     timeout 1 (1.0%)",
        "  by page type  article 100 (99.0%)",
        "  time a page   p50 10 ms, p95 300 ms",
        "  quality       mean 0.94, p10 0.95",
    ]


def test_names_without_end_are_counted_together() -> None:
    """A user's function could give each page a source name of its own."""
    report = Report(Config())
    for number in range(1_000):
        report.page(replace(PAGE, source=f"mine {number}"))

    assert "(others) 960 " in report.summary()
    assert "of other names" in report.summary()


def test_the_start_of_what_is_long_is_in_the_table() -> None:
    row = Row.of(replace(PAGE, url="https://e.org/" + "u" * 999, title="t" * 999, source="s" * 999, text="x" * 999))

    assert [len(value) for value in (row.url, row.title, row.source, row.start)] == [500, 120, 60, 300]
    assert row.length == 999


def test_a_long_crawl_is_shown_by_a_random_sample() -> None:
    report = Report(Config())
    for number in range(2 * MOST_ROWS):
        report.page(replace(PAGE, quality=number / (2 * MOST_ROWS)))

    assert len(report.rows) == MOST_ROWS
    assert 0.45 < sum(row.quality or 0 for row in report.rows) / MOST_ROWS < 0.55
    assert "The table has a random sample of 5,000 pages" in report.html("long", InspectCommand(), {})


def test_the_pages_to_look_at_get_a_view(tmp_path: Path) -> None:
    """They are some of each reason, and those of the lowest quality, also if they are not in the sample."""
    report = Report(Config(report=str(tmp_path / "report.html")))
    for number in range(100):
        report.page(replace(PAGE, quality=1 - number / 100), Document(f"<p>{number}</p>"))
        failed = replace(PAGE, quality=None, fallback_reason=FallbackReason.NO_MAIN)
        report.page(failed, Document(b"<p>\xe4</p>", charset="latin-1"))
        report.page(replace(failed, fallback_reason=FallbackReason.TIMEOUT), Document("<p>Stops this process</p>"))
    report.page(replace(PAGE, quality=0.0), Document("<p>" + "x" * 1_000_000))

    kept = report._kept.documents()

    assert sorted(row.quality for row in kept if not row.reason) == [pytest.approx(n / 100) for n in range(1, 17)]
    assert [row.reason for row in kept if row.reason] == ["no_main"] * 4
    assert {"<p>99</p>", "<p>ä</p>"} <= {decode_html(one.html, one.charset) for one in kept.values()}


def test_pages_that_a_user_should_look_at_come_first() -> None:
    """They are those that the model did not decide, together by reason, and those of low quality."""
    report = Report(Config())
    for title, reason, quality in (
        ("good", None, 0.9),
        ("unknown", None, None),  # as with an engine that does not predict it
        ("stopped", FallbackReason.TIMEOUT, None),
        ("empty", FallbackReason.NO_MAIN, None),
        ("bad", None, 0.2),
        ("lost", FallbackReason.JS_SHELL, 0.95),
        ("empty, too", FallbackReason.NO_MAIN, None),
    ):
        report.page(replace(PAGE, title=title, fallback_reason=reason, quality=quality))

    root = fromstring(report.html("crawl", InspectCommand(), {}))
    titles = [link.text for link in root.iterfind(".//td/a")]
    assert titles == ["lost", "empty", "empty, too", "stopped", "bad", "good", "unknown"]


@given(st.text(max_size=300), st.text(max_size=50))
def test_what_pages_say_is_text(title: str, source: str) -> None:
    hostile = "</pre></table><script>ran(1)</script><!--"
    report = Report(Config())
    words = {"title": hostile + title, "source": hostile + source, "text": hostile, "url": "javascript:ran(2)"}
    report.page(replace(PAGE, **words))

    page = report.html(hostile, InspectCommand(), {})
    assert page.count("<table") == page.count("</table>") == page.count("<script") == 1
    assert "<!--" not in page
    assert "href" not in page[page.index("<tbody>") : page.index("</tbody>")]
