"""A property: a crawl that was written with DRIPPER_WARC and is replayed gives the same items."""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from tests.crawl.crawling import Crawls, Reactor, page
from tests.html_strategies import documents

pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)

Answer = tuple[int, list[tuple[str, bytes]], bytes]

PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes, "unheard-of": bytes}
CHARSETS = ("utf-8", "shift_jis", "windows-1251", "utf-16")


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Return a status, headers and a body, as servers send them; some of them lie about the body."""
    charset = draw(st.sampled_from(CHARSETS))
    html = draw(st.one_of(documents(), st.sampled_from([page("one"), page("満潮"), page("Größe"), ""])))
    body = draw(st.one_of(st.just(html.encode(charset, "xmlcharrefreplace")), st.binary(max_size=50)))
    media = st.sampled_from(["text/html", f"text/html; charset={charset}", "image/png", "application/json", "x", ""])
    headers = [("Content-Type", draw(media).encode())]
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(PACK)))
        packed = PACK[name](body)
        body = draw(st.sampled_from([packed, packed[:-3], packed + b"more", body]))
        headers.append(("Content-Encoding", name.encode()))
    value = st.binary(max_size=20).map(lambda data: data.translate(None, b"\r\n").strip())
    headers += draw(st.lists(st.tuples(st.sampled_from(["X-A", "x-b", "Set-Cookie", "ETag"]), value), max_size=4))
    status = draw(st.sampled_from([200, 200, 200, 200, 204, 301, 404, 500, 599, 999]))
    return status, [*headers, ("Location", b"/other")] if status == 301 else headers, body


class FakeServer(BaseDownloadHandler):
    """Answers the requests for a path in order, and then with its last answer again."""

    answers: dict[str, list[Answer]]

    async def download_request(self, request: Request) -> Response:
        found = self.answers.get(request.url.rpartition("/")[2], [(404, [], b"")])
        status, fields, body = found.pop(0) if len(found) > 1 else found[0]
        values = defaultdict(list)
        for name, value in fields:
            values[name.title()].append(value)
        headers = Headers(values)
        return responsetypes.from_args(headers=headers, url=request.url, body=body)(request.url, status, headers, body)


def asking(paths: list[tuple[str, str]]) -> type[Spider]:
    """Return a spider that makes requests, and yields an item for each response and each error."""

    class Asking(Spider):
        name = "asking"
        handle_httpstatus_all = True

        async def start(self) -> Any:
            for number, (path, method) in enumerate(paths):
                body = b"q=tides" if method == "POST" else b""
                options = {"callback": self.parse, "errback": self.failed, "dont_filter": True, "priority": -number}
                yield Request(f"http://site.example/{path}", method=method, body=body, **options)

        def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
            yield {
                "number": -response.request.priority,
                "url": f"{response.request.method} {response.url}",
                "status": response.status,
                "headers": sorted(response.headers.items()),
                "body": response.body,
                "encoding": getattr(response, "encoding", None),
            }

        def failed(self, failure: Any) -> Iterator[Any]:
            yield {"number": -failure.request.priority, "error": repr(failure.type)}

    return Asking


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.lists(answers(), min_size=1, max_size=3), min_size=1),
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "none"]), st.sampled_from(["GET", "POST"])), max_size=9),
    st.sampled_from(["crawl.warc", "crawl.warc.gz"]),
)
@example({"a": [(503, [], b"busy"), (200, [], b"<p>one"), (200, [], b"<p>two")]}, [("a", "GET")] * 4, "crawl.warc.gz")
@example({"a": [(200, [("X-A", b"y")] * 20_000, b"<p>many headers")]}, [("a", "GET")] * 2, "crawl.warc.gz")
@example({"a": [(200, [("Content-Encoding", b"gzip,") for _ in range(99)], b"<p>")]}, [("a", "GET")], "crawl.warc")
def test_a_replayed_crawl_gives_the_same_items(
    reactor: Reactor, served: dict[str, list[Answer]], paths: list[tuple[str, str]], name: str
) -> None:
    """This includes bytes, headers, statuses, errors and the order of repeated responses."""
    common = {
        "DRIPPER_META_FIELD": None,
        "DRIPPER_CONTENT_FIELD": "content",
        "DRIPPER_ENGINE": "tagger",
        "CONCURRENT_REQUESTS": 1,
    }
    FakeServer.answers = {path: list(found) for path, found in served.items()}
    handlers = dict.fromkeys(("http", "https"), FakeServer)
    with TemporaryDirectory() as folder:
        path = str(Path(folder, name))
        first = Crawls(reactor)(asking(paths), {**common, "DRIPPER_WARC": path, "DOWNLOAD_HANDLERS": handlers})
        FakeServer.answers = {}
        again = Crawls(reactor)(asking(paths), {**common, "DRIPPER_REPLAY": path})

    in_order = itemgetter("number")  # an item without a page overtakes one whose page is extracted
    assert sorted(again.items, key=in_order) == sorted(first.items, key=in_order)
    assert len(first.items) == len(paths)
    assert first.stat("warc/errors") == 0
    assert not [name for name in again.stats if name.startswith("dripper/replay/skipped/")]
