"""A crawl is written as WARC and replayed from it."""

from __future__ import annotations

import gzip
import io
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from scrapy import FormRequest, Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from scrapy_dripper.config import Config, ConfigError
from tests.corpus.zoo import CHUNKED, GZIP, HONEST, HOSTILE, URL, chunked, response
from tests.crawl.crawling import Crawled, Crawls, Reactor, Site, page, spider

pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)

from scrapy_dripper.corpus.archive import ReplaySpider, WarcMiddleware, archives
from scrapy_dripper.corpus.records import UNREADABLE, Recorded, decompressed, response_record, responses

ENGINE = {"DRIPPER_META_FIELD": "about", "DRIPPER_CONTENT_FIELD": "content", "DRIPPER_ENGINE": "tagger"}
PAGES: dict[str, tuple[str, bytes]] = {
    "/plain": ("text/html; charset=utf-8", page("plain").encode()),
    "/sjis": ("text/html; charset=shift_jis", page("満潮と干潮は一日に二度ずつある").encode("shift_jis")),
    "/wrong": ("text/html; charset=latin-1", page("Größe").encode()),
    "/meta": ("text/html", page("Прилив", "<meta charset=windows-1251>").encode("windows-1251")),
    "/broken": ("text/html; charset=utf-8", page("x").encode() + b"\xff\xfe\x00<p>rest"),
}


@pytest.fixture
def crawls(reactor: Reactor) -> Crawls:
    """Run spiders with the bundled engine."""
    return Crawls(reactor)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return the path of the archive."""
    return tmp_path / "new" / "crawl.warc.gz"


def contents(crawled: Crawled) -> dict[str, Any]:
    """Return the contents of a crawl's items by URL, without the elapsed time."""
    found = {}
    for item in crawled.items:
        item["about"] = {name: value for name, value in item["about"].items() if name != "milliseconds"}
        found[item["url"]] = item
    assert len(found) == len(crawled.items)
    return found


def recorded(archive: bytes) -> list[Recorded]:
    """Return the responses in an archive."""
    return list(responses(io.BytesIO(archive), 1 << 30, pytest.fail))


@pytest.mark.parametrize("processes", [0, 1])
def test_a_crawl_is_extracted_again_bit_for_bit(crawls: Crawls, site: Site, archive: Path, processes: int) -> None:
    """The bundled spider replays it without contacting the server, for all encodings."""
    site.routes.update(PAGES)
    urls = [site.url(path) for path in PAGES]
    first = crawls(spider(urls), {**ENGINE, "DRIPPER_WARC": archive})
    seen = list(site.seen)

    again = crawls(ReplaySpider, {**ENGINE, "DRIPPER_REPLAY": archive, "DRIPPER_PROCESSES": processes})

    assert contents(again) == contents(first)
    assert len(first.items) == len(PAGES)
    assert site.seen == seen
    assert first.stat("warc/records") == len(PAGES)


def test_a_spider_of_ones_own_is_replayed_as_it_is(crawls: Crawls, site: Site, archive: Path) -> None:
    """This includes queries, errors and followed links. A page that is not in the archive is an ignored request."""

    class Form(Spider):
        name = "form"
        more = False
        handle_httpstatus_list = (404,)

        async def start(self) -> Any:
            yield Request(site.url("/page/1"))
            yield FormRequest(site.url("/page/1"), formdata={"q": "tides"}, method="GET")
            yield Request(site.url("/missing"))
            if self.more:
                yield Request(site.url("/page/99"))

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url, "status": response.status}
            if response.url.endswith("/page/1"):
                yield response.follow("/page/2")

    site.status["/missing"] = 404
    first = crawls(Form, {**ENGINE, "DRIPPER_WARC": archive})
    seen = list(site.seen)
    again = crawls(type("More", (Form,), {"more": True}), {**ENGINE, "DRIPPER_REPLAY": str(archive)})

    assert contents(again) == contents(first)
    assert {item["status"] for item in again.items} == {200, 404}
    assert len(first.items) == 4
    assert site.seen == seen
    assert again.stats["downloader/exception_type_count/scrapy.exceptions.IgnoreRequest"] == 1


def test_a_request_that_was_repeated_gets_its_responses_in_order(crawls: Crawls, site: Site, archive: Path) -> None:
    """A page that first answered 503 does so again, and is retried."""
    bodies = iter([page("busy").encode(), page("ready").encode()])

    class Twice(Spider):
        name = "twice"

        async def start(self) -> Any:
            yield Request(site.url("/x"), dont_filter=True)

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": f"{response.url}#{response.meta.get('again', 0)}", "body": response.body}
            if not response.meta.get("again"):
                site.routes["/x"] = ("text/html", next(bodies))
                yield response.request.replace(meta={"again": 1}, dont_filter=True)

    site.routes["/x"] = ("text/html", next(bodies))
    first = crawls(Twice, {**ENGINE, "DRIPPER_WARC": archive})
    bodies = iter([b"never asked for"])
    again = crawls(Twice, {**ENGINE, "DRIPPER_REPLAY": archive})

    assert [item["body"] for item in again.items] == [item["body"] for item in first.items]
    assert first.items[0]["body"] != first.items[1]["body"]


def test_the_archive_is_one_that_others_can_read(crawls: Crawls, site: Site, archive: Path) -> None:
    """Each record is a gzip member with correct digests and the bytes as sent."""
    site.routes["/plain"] = PAGES["/plain"]
    site.routes["/picture"] = ("image/png", b"\x89PNG")
    crawls(spider([site.url("/plain"), site.url("/picture")]), {**ENGINE, "DRIPPER_WARC": archive})

    with open(archive, "rb") as stream:
        kinds = [record.record_type for record in ArchiveIterator(stream, verify_digests=True)]
    assert kinds == [WarcRecordType.response] * 2
    found = {found.url: found.body for _, found in recorded(archive.read_bytes())}
    assert found == {site.url("/picture"): b"\x89PNG", site.url("/plain"): PAGES["/plain"][1]}
    assert archive.read_bytes().count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") == len(kinds)  # gzip members


def test_a_response_is_written_as_it_was_sent() -> None:
    """Its body stays compressed, and an encoding that a browser named takes precedence over the header."""
    sent = HtmlResponse(
        "https://example.org/",
        headers={"Content-Type": "text/html; charset=shift_jis", "Content-Encoding": "gzip"},
        body=gzip.compress("<p>Größe</p>".encode("latin-1")),
        encoding="latin-1",
    )
    ((record, found),) = recorded(response_record(sent, {}))

    assert (found.url, found.headers, found.body) == (sent.url, sent.headers, sent.body)
    assert decompressed(record, found, 1_000).text == "<p>Größe</p>"


def test_no_archive_is_ever_overwritten(crawls: Crawls, site: Site, archive: Path) -> None:
    """A second crawl writes a file beside it, and a glob replays both."""
    for number in (1, 2):
        crawls(spider([site.url(f"/page/{number}")]), {**ENGINE, "DRIPPER_WARC": archive})

    assert sorted(path.name for path in archive.parent.iterdir()) == ["crawl-2.warc.gz", "crawl.warc.gz"]
    again = crawls(ReplaySpider, {**ENGINE, "DRIPPER_REPLAY": str(archive.parent / "*.gz")})
    assert {item["url"] for item in again.items} == {site.url("/page/1"), site.url("/page/2")}


def test_an_archive_needs_no_extraction(crawls: Crawls, site: Site, archive: Path) -> None:
    """Pages can be extracted after the crawl."""
    crawled = crawls(spider(site.pages(3)), {"DRIPPER_ENABLED": False, "DRIPPER_WARC": archive.with_suffix("")})

    assert len(recorded(archive.with_suffix("").read_bytes())) == 3
    assert archive.with_suffix("").read_bytes().startswith(b"WARC/1.")
    assert "main_html" not in crawled.items[0]


def test_a_full_disk_ends_the_archive_and_not_the_crawl(
    crawls: Crawls, site: Site, archive: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Missing records are counted, with one message."""
    write = WarcMiddleware._write

    def full(self: WarcMiddleware, record: bytes) -> None:
        if b"WARC-Type: response" in record:
            raise OSError(28, "No space left on device")
        write(self, record)

    monkeypatch.setattr(WarcMiddleware, "_write", full)
    with caplog.at_level(logging.ERROR):
        crawled = crawls(spider(site.pages(3)), {**ENGINE, "DRIPPER_WARC": archive})

    assert len(crawled.items) == 3
    assert crawled.stat("warc/errors") == 3
    assert [record.message.count("No space left on device") for record in caplog.records] == [1]


@pytest.mark.parametrize("name", ["DRIPPER_WARC", "DRIPPER_REPLAY"])
def test_a_wrong_path_stops_the_crawl_at_its_start(name: str, tmp_path: Path, crawls: Crawls, site: Site) -> None:
    """The error is one sentence that names the setting."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=name):
        crawls(spider(site.pages(1)), {**ENGINE, name: tmp_path / "file" / "crawl.warc.gz"})
    with pytest.raises(ConfigError, match=name):
        crawls(spider(site.pages(1)), {**ENGINE, name: tmp_path})
    with pytest.raises(ConfigError, match=name):
        Config(**{name.removeprefix("DRIPPER_").lower(): 7})


@pytest.mark.parametrize("name", ["[a].warc.gz", "*.warc", " a.warc "])
def test_an_archive_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    """Whatever characters it has. Otherwise, other archives would be replayed, or none."""
    for one in (name, "b.warc", "a.warc.gz"):
        (tmp_path / one).touch()

    assert archives(Settings({"DRIPPER_REPLAY": str(tmp_path / name)})) == [str(tmp_path / name)]


@pytest.mark.parametrize("whole", [False, True], ids=["by record", "as a whole"])
def test_an_archive_of_another_tool(crawls: Crawls, tmp_path: Path, caplog: Any, whole: bool) -> None:
    """Records that cannot be read end neither spider. Chunks and headers that are left over are no part of a page."""
    body = page("left over").encode()
    urls = [f"http://a.example/{i}" for i in range(7)]
    bodies = (
        response(body),
        response(chunked(body), CHUNKED),
        response(body, GZIP),
        response(gzip.compress(body), GZIP),
    )
    records = [
        *(one.replace(URL.encode(), url.encode()) for one, url in zip(bodies, urls, strict=False)),
        response(body, url="http://a.example:99999999/"),
        response(body, url="http://["),
        response(b"1.2.3.4", url="dns:a.example"),
        response(body, url=urls[4]),
        response(b"no end", b"Content-Encoding: " + b"gzip," * 10_000 + b"x", url=urls[5]),
        response(b"\x1f\x8b no end", GZIP, url=urls[6]),
    ]
    path = tmp_path / "other.warc.gz"
    path.write_bytes(gzip.compress(b"".join(records)) if whole else b"".join(map(gzip.compress, records)))

    for one in (ReplaySpider, spider(urls)):
        caplog.clear()
        found = crawls(one, {**ENGINE, "DRIPPER_REPLAY": path})
        assert sorted(item["url"] for item in found.items) == urls[:5]
        assert len({item["markdown"] for item in found.items}) == 1
        messages = [record.getMessage() for record in caplog.records]
        assert messages[-1].endswith("cannot be read: encoding 2, invalid 2")
        assert any("fastwarc recompress" in message for message in messages) == (whole and one is not ReplaySpider)


def test_a_replay_ends_and_says_what_it_could_not_read(
    crawls: Crawls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the archives are, the spider gets each page of them, and the last error is a summary."""
    bodies: Counter[bytes] = Counter()
    reasons: Counter[str] = Counter()
    for number, animal in enumerate([*HONEST, *HOSTILE]):
        (tmp_path / f"{number:03}.warc").write_bytes(animal.data)
        bodies.update(animal.bodies)
        reasons.update(animal.skipped)
    (tmp_path / "folder.warc").mkdir()

    class Bodies(ReplaySpider):
        def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
            yield {"body": response.body}

    with caplog.at_level(logging.ERROR, "scrapy_dripper"):
        crawled = crawls(Bodies, {"DRIPPER_ENABLED": False, "DRIPPER_REPLAY": str(tmp_path / "*.warc")})

    assert Counter(item["body"] for item in crawled.items) >= bodies
    for reason in reasons.keys() - {"oversize"}:  # the limit of a replay is higher
        assert crawled.stat(f"replay/skipped/{reason}") == reasons[reason]
    listed = ", ".join(f"{reason} {reasons[reason]:,}" for reason in UNREADABLE)
    assert caplog.records[-1].getMessage() == f"records of the archive that cannot be read: {listed}"
