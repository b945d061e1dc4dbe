"""Errors of endpoints, options and pages, each reported in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.workshop import endpoint as endpoint_module
from scrapy_dripper.workshop.annotation.export import LabelsError, write_page
from scrapy_dripper.workshop.annotation.pages import Sheet
from scrapy_dripper.workshop.annotation.store import record_of, task_of
from scrapy_dripper.workshop.endpoint import Endpoint
from tests.fake_endpoint import FakeEndpoint, Reply, good
from tests.workshop.annotation.conftest import MAIN, Annotate, html, records, sheet_of


@pytest.mark.parametrize("key", ["", "ключ", "a\nb"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    with pytest.raises(ValueError, match="a key of printable ASCII characters"):
        Endpoint("http://localhost/v1", "reader", key)


def test_an_endless_answer_is_cut_off(
    annotate: Annotate, fake: FakeEndpoint, pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Memory is bounded whatever the server sends; the page fails, the others do not."""
    monkeypatch.setattr(endpoint_module, "MAX_BYTES", 100_000)
    fake.script = [Reply(body=b" " * 1_000_000), good]

    assert annotate(pages, ask=True) == 1

    assert "sent more than 100,000 bytes" in capsys.readouterr().err


def test_an_answer_that_never_ends_in_time(annotate: Annotate, fake: FakeEndpoint, pages: Path, capsys: Any) -> None:
    """A server that sends a byte now and then is not waited for; nor is one that says no in that way."""
    fake.script = [Reply(body=b" " * 100, drip=0.05)]
    assert annotate(pages / "Tides.html", "--timeout", "0.2", ask=True) == 1
    assert "did not answer within 0.2 seconds" in capsys.readouterr().err

    fake.script = [Reply(503, b"busy " * 20, drip=0.5)]
    assert annotate(pages / "Tides.html", "--timeout", "0.2", ask=True) == 1
    assert "answered HTTP 503, 5 times" in capsys.readouterr().err


@pytest.mark.parametrize("wait", ["Wed, 21 Oct 2026 07:28:00 GMT", "-5"])
def test_a_wait_that_is_no_number_of_seconds(
    wait: str, annotate: Annotate, fake: FakeEndpoint, pages: Path, tmp_path: Path
) -> None:
    """The request is made again all the same."""
    fake.script = [Reply(503, b"busy", {"Retry-After": wait}), good]

    assert annotate(pages / "Tides.html", ask=True) == 0

    assert len(fake.requests) == 2
    assert len(records(tmp_path)) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--concurrency", "0"], "a whole number of at least 1 (got '0')"),
        (["--timeout", "soon"], "a number of seconds above 0, a day at most (got 'soon')"),
        (["--timeout", "0"], "a number of seconds above 0, a day at most (got '0')"),
        (["--sure", "2"], "a number from 0 to 1 (got '2')"),
        (["--sure", "very"], "a number from 0 to 1 (got 'very')"),
    ],
)
def test_numbers_that_make_no_sense(arguments: list[str], says: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["annotate", "page.html", "-o", "labels.jsonl", *arguments])
    assert f"expected {says}" in capsys.readouterr().err


def test_pages_that_cannot_be_meant(pages: Path, annotate: Annotate, capsys: Any) -> None:
    """No page at all, and one address for several."""
    assert annotate(ask=True) == 2
    assert "name the pages: files or folders" in capsys.readouterr().err
    assert annotate(pages, "--url", "https://example.com/", ask=True) == 2
    assert "--url is for a single file or standard input" in capsys.readouterr().err


def test_labels_of_another_page_are_refused(tmp_path: Path) -> None:
    """Labels belong to the bytes that were read."""
    before, after = sheet_of(html()), sheet_of(html(extra="<p>Added</p>"))

    with pytest.raises(LabelsError, match="the page has changed since it was labelled"):
        write_page(tmp_path, record_of(task_of(before, "prompt"), MAIN, "reader"), after)


def test_a_page_that_is_another_one_in_utf8_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exported has the blocks that were labelled, or is not exported."""
    page = sheet_of(html())
    monkeypatch.setattr(Sheet, "utf8", lambda _: b"")

    with pytest.raises(LabelsError, match="its blocks are not the same when it is written as UTF-8"):
        write_page(tmp_path, record_of(task_of(page, "prompt"), MAIN, "reader"), page)
    assert not list(tmp_path.iterdir())
