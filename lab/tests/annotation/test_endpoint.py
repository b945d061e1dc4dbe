"""Labels from an endpoint: good and bad answers, failures, secrets, and going on after a stop."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from lab.tests.annotation.conftest import MAIN, Desk, html
from lab.tests.export.published import QUESTION, write_package
from lab.tests.fake_endpoint import Reply, Request, chat, good, labels
from scrapy_dripper.cli import main
from scrapy_dripper_lab import endpoint as endpoint_module
from scrapy_dripper_lab.annotation.prompt import prompt_hash
from scrapy_dripper_lab.cli import annotate as command_module
from scrapy_dripper_lab.endpoint import ATTEMPTS, Endpoint
from tests.cli.conftest import Run

KEY = "sk-very/secret-123"
REFUSED = (401, 403, 404)


def changed(change: Callable[[dict[str, str]], Any]) -> Callable[[Request], Reply]:
    """Return an answerer whose labels are right but for what ``change`` does to them."""

    def answer(request: Request) -> Reply:
        right = labels(request)
        found = change(right)
        return chat(found if isinstance(found, str) else json.dumps(found or right))

    return answer


missing = changed(lambda right: right.pop("3") and None)
prose = changed(lambda right: "Here you are: <|im_end|>" + json.dumps(right))


def test_good_answers_become_records(desk: Desk) -> None:
    """A page is one request and one line, with all that its labels depend on."""
    assert desk.annotate(desk.pages, ask=True) == 0
    found = desk.records()
    assert [record["title"] for record in found] == ["Moons", "Tides", "Winds"]
    first = found[0]
    assert first.keys() == set("id url title sha256 profile blocks cut labels who prompt date style".split())
    assert (first["labels"], first["blocks"], first["who"]) == (MAIN, 6, "reader-1")
    assert (first["url"], first["profile"]) == ("https://example.com/Moons", "native")
    assert first["id"] == f"Moons-{first['sha256'][:8]}"
    assert len(desk.requests) == 3
    assert "3 labelled" in desk.said()
    request = desk.requests[0]
    assert request.path == "/v1/chat/completions"
    assert (request.payload["model"], request.payload["temperature"]) == ("reader-1", 0)
    assert "Authorization" not in request.headers
    assert request.head == {"url": "https://example.com/Moons", "title": "Moons", "blocks": 6}


def test_section_4_1_a_prompt_to_the_letter(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a file, or that of the installed package: nothing else is sent, and labels remember which one it was."""
    (desk.folder / "ask.txt").write_text('Classify. {"1": "main"}\n{html}\nAll ids.', encoding="utf-8")
    write_package(desk.folder / "site")
    monkeypatch.setenv("PYTHONPATH", str(desk.folder / "site"))
    desk.fake.script = [chat(json.dumps({str(i): "main" if i in MAIN else "other" for i in range(1, 7)}))]
    hashes = set()
    for prompt, begin in (
        (desk.folder / "ask.txt", 'Classify. {"1": "main"}\n<nav'),
        ("mineru-html", QUESTION.split("{html}")[0]),
    ):
        desk.labels.unlink(missing_ok=True)
        assert desk.annotate(desk.pages / "Tides.html", "--prompt", prompt, ask=True) == 0
        [message] = desk.requests[-1].payload["messages"]
        assert message["content"].startswith(begin)
        [record] = desk.records()
        assert record["labels"] == MAIN
        hashes.add(record["prompt"])
    assert len(hashes | {prompt_hash()}) == 3
    (desk.folder / "ask.txt").write_text("Classify.", encoding="utf-8")
    assert desk.annotate(desk.pages, "--prompt", desk.folder / "ask.txt", ask=True) == 2
    assert "the prompt must hold {html} once (it does 0 times)" in desk.said()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (missing, "missing: 3)"),
        (prose, 'got "Here you are: '),
        (chat(None), "got nothing"),
        (chat('{"1":"main"', finish="length"), "cut off at the token limit"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_bad_answers_get_one_more_chance(answer: Any, says: str, desk: Desk) -> None:
    """The model is told what was wrong; the second answer counts, and a second bad one fails the page alone."""
    desk.fake.script = [answer, good, answer, answer, good]
    assert desk.annotate(desk.pages, ask=True) == 1
    assert desk.titles() == ["Moons", "Winds"]
    plain, again = desk.requests[0].question, desk.requests[1].question
    assert again.startswith(plain)
    assert "could not be used" in again[len(plain) :]
    assert "<" not in again[len(plain) :], "no special tokens"
    error = desk.said()
    assert f"{desk.pages / 'Tides.html'}: " in error
    assert says.replace('"', "'") in error.replace('"', "'")
    assert f"2 labelled, 1 failed ({desk.pages / 'Tides.html'})" in error


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(429, b'{"error": {"message": "slow down"}}', {"Retry-After": "3"}),
        Reply(500),
        Reply(503, b"<html>overloaded</html>", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        Reply(close=True),
    ],
    ids=["429", "500", "503", "broken off"],
)
def test_passing_trouble_is_waited_out(trouble: Reply, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be better later is asked again, each time after a longer wait, or the one that was asked for."""
    waits: list[float] = []
    monkeypatch.setattr("scrapy_dripper_lab.endpoint.time.sleep", waits.append)
    desk.fake.script = [trouble, trouble, good]
    assert desk.annotate(desk.pages / "Tides.html", ask=True) == 0
    assert len(desk.requests) == 3
    first, second = (seconds for seconds in waits if seconds >= 1)  # threads of other tests sleep, too
    seconds = trouble.headers.get("Retry-After") == "3"
    assert first >= (3 if seconds else 1)
    assert second >= (3 if seconds else 2)


def test_lasting_trouble_fails_the_page(desk: Desk) -> None:
    """A page that gets nothing but 500 is named with what the server said; it stays open for the next run."""
    desk.fake.script = [*[Reply(500, b'{"error": {"message": "out of\\nmemory"}}')] * ATTEMPTS, good]
    assert desk.annotate(desk.pages, ask=True) == 1
    error = desk.said()
    assert f"Moons.html: {desk.fake.server.server_address[0]}" in error
    assert f"answered HTTP 500: out of memory, {ATTEMPTS} times" in error
    assert len(desk.records()) == 2
    assert desk.annotate(desk.pages, ask=True) == 0
    assert sorted(record["title"] for record in desk.records()) == ["Moons", "Tides", "Winds"]


def deadline_at(is_late: threading.Event) -> type[Future[Any]]:
    """Return the result of a thread for which the time is over when a test says so, and not by the clock."""

    class Deadline(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            assert is_late.wait(timeout)
            is_late.clear()
            return super().result(0)

    return Deadline


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        *(
            (Reply(body=body), f"expected a chat completion, choices[0].message.content (got '{body[:10].decode()}")
            for body in (b"<html>Welcome</html>", b"[]", b'{"choices": []}', b'{"choices": [{"text": "x"}]}')
        ),
        (Reply(hang=True), f"did not answer within 60 seconds, {ATTEMPTS} times"),
        (Reply(body=b" " * 1_000, drip=0.05), "did not answer within 60 seconds"),
        (Reply(503, b"busy " * 20, drip=0.5), f"answered HTTP 503, {ATTEMPTS} times"),
        (Reply(body=b" " * 1_000_000), "sent more than 100,000 bytes"),
        *((Reply(code, b'{"error": {"message": "no such model"}}'), f"HTTP {code}: no such model") for code in REFUSED),
        *((Reply(code, headers={"Location": "/else"}), "/else: give the URL itself") for code in (301, 302, 307)),
    ],
)
def test_an_endpoint_without_an_answer(reply: Reply, says: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another service, one that hangs or sends a byte now and then, or an endless answer: the page fails, and is asked
    for again only if that may help. A wrong key or model is said once, not once a page, and so is a redirect: the key
    only goes to the host that was named.
    """
    monkeypatch.setattr(endpoint_module, "MAX_BYTES", 100_000)
    monkeypatch.setenv("TEST_KEY", KEY)
    is_late = threading.Event()
    desk.fake.script = [lambda _: (reply.status == 200 and is_late.set()) or reply]
    if reply.hang or reply.drip:
        monkeypatch.setattr("scrapy_dripper.egress.Future", deadline_at(is_late))
        # The status has arrived when the client reads on.
        monkeypatch.setattr(HTTPError, "read", lambda error, n: is_late.set() or error.fp.read(n), raising=False)
    refused = reply.status in (*REFUSED, 301, 302, 307)
    asked = desk.pages if refused else desk.pages / "Tides.html"
    assert desk.annotate(asked, "--timeout", 60, "--api-key-env", "TEST_KEY", ask=True) == (2 if refused else 1)
    assert says in desk.said()
    assert len(desk.requests) == (ATTEMPTS if "times" in says or "within" in says else 1)


def test_dead_endpoint_stops_the_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many pages in a row the rest is not tried."""
    monkeypatch.setattr(command_module, "GIVE_UP", 2)
    for i in range(5):
        (desk.folder / f"{i}.html").write_text(html(str(i)), encoding="utf-8")
    desk.fake.script = [Reply(400)]
    assert desk.annotate(desk.folder, ask=True) == 2
    assert len(desk.requests) == 2


def test_key_comes_from_the_environment_and_stays_secret(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is in the header of the request; not in files, nor in an error of a server that repeats it."""
    monkeypatch.setenv("TEST_KEY", f" {KEY}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-everyone")
    repeat = f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'.encode()
    desk.fake.script = [good, Reply(400, repeat), Reply(body=b"x" * 190 + KEY.encode())]
    assert desk.annotate(desk.pages, "--api-key-env", "TEST_KEY", ask=True) == 1
    assert {request.headers["Authorization"] for request in desk.requests} == {f"Bearer {KEY}"}
    output = "".join(desk.capsys.readouterr())
    assert "Incorrect API key: ***" in output
    assert KEY[:6] not in output
    assert KEY not in desk.labels.read_text(encoding="utf-8")


REPEATED = [
    "".join(f"\\\\u{ord(c):04x}" for c in KEY),
    "".join(f"%{ord(c):02X}" for c in KEY),
    "".join(f"&#x{ord(c):x};" for c in KEY),
    " ".join(KEY),
    f"{KEY[:12]}... and more",
]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (chat(f"You sent {KEY}"), "one JSON object and nothing else (got 'You sent ***')"),
        (Reply(400, f"Wrong: {KEY[:7]}***{KEY[-4:]}".encode()), f"{KEY[:7]}***{KEY[-4:]}"),
        *(
            (Reply(400, f"Wrong key: {form}".encode()), "HTTP 400: (a message that repeats the key)")
            for form in REPEATED
        ),
    ],
)
def test_a_key_that_is_repeated(reply: Reply, says: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message about a bad answer quotes it, but not the key in it. An error that repeats the key escaped or in
    pieces is not shown. A few characters are, as some servers say them.
    """
    monkeypatch.setenv("TEST_KEY", KEY)
    desk.fake.script = [reply]
    assert desk.annotate(desk.pages / "Tides.html", "--api-key-env", "TEST_KEY", ask=True) == 1
    output = "".join(desk.capsys.readouterr())
    assert says in output
    assert not any(form[:12] in output for form in (KEY, *REPEATED))


def test_key_in_place_of_a_name_is_not_repeated(desk: Desk) -> None:
    """Who gives the key itself learns what is expected, and sees no key on the screen."""
    assert desk.annotate(desk.pages, "--api-key-env", KEY, ask=True) == 2
    error = desk.said()
    assert "name of an environment variable" in error
    assert KEY not in error
    assert not desk.requests


WRONG = ["", "localhost:8000", "ftp://h/v1", "file:///etc/passwd", "http://", "http://u:p@h/v1", "http://h/a b"]


@pytest.mark.parametrize(
    ("url", "key", "says"),
    [
        *((url, None, "a URL such as http://") for url in [*WRONG, "http://[", "http://h:x/", "http://h:0/"]),
        *(("http://localhost/v1", key, "a key of printable ASCII characters") for key in ("", "ключ", "a\nb")),
    ],
)
def test_wrong_urls_and_keys_are_refused(url: str, key: str | None, says: str) -> None:
    """Only HTTP, no password in a place that is shown, and a key that a header can hold."""
    with pytest.raises(ValueError, match=says):
        Endpoint(url, "m", key)


@pytest.mark.parametrize("url", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions"])
def test_url_may_be_the_base_or_the_whole(url: str) -> None:
    """As people copy it."""
    assert Endpoint(url, "m").url == "http://h/v1/chat/completions"
    assert Endpoint(url + "?api-version=1", "m").url == "http://h/v1/chat/completions?api-version=1"


def test_labelled_pages_are_not_asked_again(desk: Desk) -> None:
    """A second run asks about new pages only; a page is known by its bytes, wherever it lies and however zipped."""
    assert desk.annotate(desk.pages / "Tides.html", ask=True) == 0
    (desk.pages / "copy.html.gz").write_bytes(gzip.compress(html("Tides").encode()))
    (desk.pages / "Moons-2.html").write_text(html("Moons"), encoding="utf-8")
    assert desk.annotate(desk.pages, ask=True) == 0
    assert [request.head["title"] for request in desk.requests] == ["Tides", "Moons", "Winds"]
    assert len(desk.records()) == 3
    error = desk.said()
    assert "already labelled" in error
    assert "the same page again" in error


def test_killed_run_is_taken_up(desk: Desk) -> None:
    """Half a line at the end of the file is taken away, and its page labelled anew."""
    assert desk.annotate(desk.pages, ask=True) == 0
    path = desk.labels
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert desk.annotate(desk.pages, ask=True) == 0
    assert len(desk.requests) == 4
    assert desk.titles() == ["Moons", "Tides", "Winds"]
    path.write_bytes(whole[:-1])  # the record is whole, only its line is not
    assert desk.annotate(desk.pages, ask=True) == 0
    assert len(desk.requests) == 4
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        *("no labels\n", "no labels", '{"id": 1}\n', '{"id": "x', "[]\n", '{"id": "x", "text": "whole"}'),
        *('{"id": "x", "text": 1}\n{"id": "y', "[" * 100_000),
    ],
)
def test_other_files_are_left_alone(content: str, desk: Desk) -> None:
    """A file that holds something else is neither added to nor cut."""
    path = desk.labels
    path.write_text(content, encoding="utf-8")
    code = desk.annotate(desk.pages, ask=True)
    if content == '{"id": "x':  # what a killed run may have left of its first line
        assert code == 0
        return
    assert code == 2
    assert "labels.jsonl, line 1: expected" in desk.said()
    assert path.read_text(encoding="utf-8") == content
    assert not desk.requests


def test_bad_inputs_do_not_stop_the_others(desk: Desk) -> None:
    """Each input without a page to label is named with its reason."""
    (desk.pages / "empty.html").write_text("", encoding="utf-8")
    (desk.pages / "pdf.html").write_bytes(b"%PDF-1.7 \n")
    (desk.pages / "bad.html.gz").write_bytes(gzip.compress(b"<p>text</p>")[:-9])
    (desk.pages / "long.html").write_text("<p>text</p>" * 1501, encoding="utf-8")
    assert desk.annotate(desk.pages, desk.folder / "none.html", ask=True) == 1
    error = desk.said()
    for name, reason in {
        "empty": "empty_body",
        "pdf": "not_html",
        "bad": "Compressed file ended",
        "long": "1,501 blocks",
        "none": "not found",
    }.items():
        assert any(f"{name}.html" in line and reason in line for line in error.splitlines()), name
    assert "3 labelled, 5 failed" in error
    assert len(desk.records()) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "x.jsonl", "--endpoint", "http://h"], "needs --model"),
        (
            ["page.html", "--url", "http://u/", "-o", "x.jsonl", "--endpoint", "http://h", "--model", "m"],
            "--url is for a single",
        ),
        (["--endpoint", "http://h", "--model", "m"], "name the file of labels"),
        (["-o", "x.jsonl", "--endpoint", "h", "--model", "m"], "a URL such as"),
        (["-o", "page.html", "--endpoint", "http://h", "--model", "m"], "is an input as well"),
        (["-o", "x.jsonl", "--read-answers", "."], "takes no INPUT"),
        (["-o", "x.jsonl", "--export", "new"], "cannot read x.jsonl"),
        (["-o", "x.jsonl", "--endpoint", "h", "--concurrency", "0"], "expected a whole number of at least 1 (got '0')"),
        *(
            (["-o", "x.jsonl", "--endpoint", "h", "--timeout", value], f"above 0, a day at most (got '{value}')")
            for value in ("soon", "0")
        ),
    ],
)
def test_wrong_usage_says_what_to_do(arguments: list[str], says: str, here: Path, run: Run) -> None:
    """The command says what it lacks and leaves nothing behind."""
    Path("page.html").write_text(html(), encoding="utf-8")
    done = run("annotate", "page.html", *arguments)
    assert (done.code, says in done.err) == (2, True)
    assert [path.name for path in here.iterdir()] == ["page.html"]


def test_many_pages_at_a_time(desk: Desk) -> None:
    """With --concurrency N, N requests are under way together and every page gets its own labels."""
    together = threading.Barrier(3)

    def wait(request: Request) -> Reply:
        together.wait(10)  # three requests at a time, or none goes on
        return good(request)

    desk.fake.script = [wait]
    arguments = [str(desk.pages), "-o", str(desk.labels), "--endpoint", desk.fake.url, "--model", "m"]
    assert main(["annotate", *arguments, "--concurrency", "3"]) == 0
    for record in desk.records():
        assert record["url"].endswith(record["title"])
        assert record["labels"] == MAIN
