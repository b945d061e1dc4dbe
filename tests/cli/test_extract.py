"""The command line: inputs, outputs and exit codes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import fields
from http.server import BaseHTTPRequestHandler
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unicodedata import normalize
from unittest.mock import Mock

import pytest

from scrapy_dripper import Document, Extraction
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.cli.corpus import _files
from scrapy_dripper.cli.options import OPTIONS
from scrapy_dripper.config import PREFIXES, Config
from scrapy_dripper.corpus.processes import answers, in_order
from scrapy_dripper.data import FallbackReason, nothing
from scrapy_dripper.egress import SECONDS
from scrapy_dripper.sites import Hosts
from scrapy_dripper.workers.process import WorkerError
from scrapy_dripper.workers.wire import Task
from tests.cli.conftest import Run, Serve, redirect, send

KEYS = (
    "id input url title text markdown main_html source fallback_reason error limit confidence blocks main_blocks "
    "truncated page_type page_type_probability quality content_hash simhash failed"
).split()
posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes, signals and names as on Unix")


def page(title: str = "Tides") -> str:
    """Return a page with obvious main content, which names its title, and boilerplate around it."""
    return f"""<!doctype html><html><head><title>{title}</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li><li><a href="/shop">Shop</a></li></ul></nav>
<main><article><h1>{title}</h1>
<p>The article about {title} begins with a paragraph that is long enough to be the beginning of an article, and it says
that the caf\u00e9 by the harbour opens when the water is high.</p>
<p>A second paragraph goes on about the subject, <a href="more.html">with a link to more of it</a>, because an article
of a single paragraph would hardly be worth the reading, whatever it may be about.</p>
<p>The third one ends it with the observation that the Moon, and to a lesser degree the Sun, are to blame.</p>
</article></main>
<footer><p><a href="/privacy">Privacy</a> <a href="/terms">Terms</a></p>
<p>Copyright 2026, all rights reserved</p></footer>
</body></html>"""


@pytest.fixture
def tides(here: Path) -> Path:
    """A page in the current folder, in the file tides.html."""
    path = here / "tides.html"
    path.write_text(page(), encoding="utf-8")
    return path


@pytest.fixture
def site(here: Path) -> Path:
    """A folder of pages with several names and depths, and a file that is not a page."""
    folder = here / "site"
    for name in ("b.html", "a.HTM", "deep/c.xhtml", "deep/er/a.html"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(path.stem), encoding="utf-8")
    (folder / "deep" / "d.html.gz").write_bytes(gzip.compress(page("d").encode()))
    (folder / "notes.txt").write_text("no page", encoding="utf-8")
    return folder


def stuck(serve: Serve) -> tuple[str, threading.Event]:
    """Return the URL of a server that never answers, and what is set as soon as it is asked."""
    waiting = threading.Event()

    def answer(_: BaseHTTPRequestHandler) -> None:
        waiting.set()
        threading.Event().wait(60)

    return serve(answer), waiting


def pages(folder: Path, *names: str) -> Path:
    """Write a page for each name, which is its title, and return the folder."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")
    return folder


def values(records: list[dict[str, Any]], key: str) -> list[Any]:
    """Return the values of a key."""
    return [record[key] for record in records]


# Formats


@pytest.mark.parametrize(
    ("form", "there", "not_there"),
    [
        ((), ["the Moon", "[with a link to more of it](more.html)"], ["Privacy", "About us", "<p>"]),
        (("-f", "html"), ["<p>The third", '<a href="more.html">'], ["Privacy", "About us", "<nav"]),
        (("--format", "text"), ["the Moon", "a link to more of it"], ["Privacy", "About us", "<p>", "more.html"]),
    ],
)
def test_a_format_holds_the_main_content_only(
    form: tuple[str, ...], there: list[str], not_there: list[str], tides: Path, extract: Run
) -> None:
    """One page goes to standard output without a heading; standard error stays empty. Markdown is the default."""
    done = extract(tides, *form)

    assert [text for text in there if text not in done.out] == []
    assert [text for text in [*not_there, "tides.html"] if text in done.out] == []
    assert (done.code, done.err, done.out[-1]) == (0, "", "\n")


def test_a_record_says_what_was_extracted_and_by_whom(tides: Path, extract: Run) -> None:
    """JSON lines hold one object per page, with the documented keys."""
    (record,) = extract(tides, "-f", "jsonl").records

    assert list(record) == KEYS
    assert (record["id"], record["title"], record["url"]) == ("tides", "Tides", "")
    assert (record["source"], record["fallback_reason"]) == ("tagger", None)
    assert 0 < record["main_blocks"] < record["blocks"]
    assert "caf\u00e9" in record["text"]
    assert "caf\u00e9" in record["markdown"]
    assert '<a href="more.html">' in record["main_html"]


@pytest.mark.parametrize("names", ["a", "abc"])
def test_json_is_an_array_whatever_the_number_of_pages(names: str, tmp_path: Path, extract: Run) -> None:
    """A script need not know how many pages a glob matches."""
    assert values(json.loads(extract(pages(tmp_path, *names), "-f", "json").out), "title") == [*names]


def test_texts_of_several_pages_are_told_apart(tmp_path: Path, extract: Run) -> None:
    """Markdown and HTML are headed by a comment with the input's name, text by a line."""
    pages(tmp_path, "one", "two--three")

    for form in ("markdown", "html"):
        out = extract(tmp_path, "-f", form).out
        assert out.startswith(f"<!-- {tmp_path / 'one.html'} -->\n")
        comments = re.findall(r"<!--(.*?)-->", out, re.S)
        assert len(comments) == 2
        assert "--" not in comments[1]
    out = extract(tmp_path, "-f", "text").out
    assert re.findall(r"^==> .*[/\\](.*) <==$", out, re.M) == ["one.html", "two--three.html"]


def test_the_output_is_utf_8_in_any_locale(tides: Path) -> None:
    """An ASCII locale does not stop a page."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    done = subprocess.run(command("extract", tides), capture_output=True, env=environment, check=True)

    assert "caf\u00e9".encode() in done.stdout


# Inputs


@pytest.mark.parametrize(
    ("inputs", "ids"),
    [
        (["b.html"], ["b"]),
        (["deep/d.html.gz"], ["d"]),
        (["."], ["a", "b", "c", "d", "a-2"]),
        (["deep/er", "deep"], ["a", "c", "d", "a-2"]),
        (["*.html"], ["b"]),
        (["**/*.html"], ["b", "a"]),
        (["d*"], ["c", "d", "a"]),
        (["b.html", "b.html"], ["b", "b-2"]),
        (["b.html", "."], ["b", "a", "b-2", "c", "d", "a-2"]),
    ],
)
def test_inputs_are_unfolded_in_order(
    inputs: list[str], ids: list[str], site: Path, extract: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, gzipped files, folders with their subfolders, and globs become pages, each with its own id."""
    monkeypatch.chdir(site)

    assert values(extract(*inputs, "-f", "jsonl").records, "id") == ids


NAMES = [
    *(" a", "a ", "a\tb", "a\nb", "a\r", "A", "a", "\u00e9", "e\u0301", "[a]", "*", "?", "%20", "~", "-", "a::b"),
    *("\udcff", "\udcfe"),  # bytes that are not UTF-8
]


@posix
def test_names_of_files_come_back_as_they_went_in(here: Path, extract: Run) -> None:
    """Each file is read once, and gets a file of its own, also if the file system ignores case and accents."""
    Path("in").mkdir()
    for number, name in enumerate(NAMES):
        Path("in", f"{name}.html").write_text(page(f"Page {number}"), encoding="utf-8")
    titles = {f"Page {number}" for number in range(len(NAMES))}

    done = extract("in", "-f", "jsonl")
    assert (done.code, len(done.records), {*values(done.records, "title")}) == (0, len(NAMES), titles)
    assert len({normalize("NFC", one.casefold()) for one in values(done.records, "id")}) == len(NAMES)
    assert {"\udcff", " a", "[a]", "%20", "a "} <= {*values(done.records, "id")}
    assert extract(*sorted(Path("in").iterdir()), "-f", "jsonl").out == done.out

    assert extract("in", "-o", "out/").code == 0
    texts = [path.read_text(encoding="utf-8") for path in Path("out").iterdir()]
    assert {text.splitlines()[0].lstrip("# ") for text in texts} == titles
    assert Path("out/\udcff.md").exists()


@posix
def test_what_is_not_read_in_a_folder_is_told(here: Path, extract: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be listed, and a link to a folder. The other pages are extracted."""
    pages(Path("in"), "one")
    pages(Path("in/closed"), "two")
    Path("in/circle").symlink_to(".")
    listed = os.scandir

    def closed(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", closed)  # whatever the rights of the user

    done = extract("in", "-f", "jsonl")

    assert (done.code, values(done.records, "id")) == (1, ["one"])
    assert "in/closed: Permission denied" in done.err
    assert "in/circle: a link to a folder is not followed" in done.err
    with pytest.raises(UsageError, match="in/closed: Permission denied"):
        _files(["in"])


def test_a_file_with_the_name_of_standard_input(here: Path, extract: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(page("stdin").encode())))
    Path("-").write_text(page("file"), encoding="utf-8")

    assert values(extract("*", "-f", "jsonl").records, "title") == ["file"]
    assert values(extract("-", "-f", "jsonl").records, "title") == ["stdin"]


def test_standard_input_with_the_url_it_came_from(extract: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links in Markdown are absolute if the page's URL is given. The page may be gzipped."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(page().encode()))))

    (record,) = extract("-", "--url", "https://example.com/sea/tides.html", "-f", "jsonl").records

    assert (record["id"], record["url"]) == ("stdin", "https://example.com/sea/tides.html")
    assert "(https://example.com/sea/more.html)" in record["markdown"]


def test_a_url_is_fetched_with_its_charset_and_its_final_address(serve: Serve, extract: Run) -> None:
    """The Content-Type header gives the charset, a gzipped body is unpacked, and links resolve against the URL after
    redirects."""
    agents = set()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        agents.add(handler.headers["User-Agent"])
        packed = gzip.compress(page("Przyp\u0142ywy").encode("iso-8859-2"))
        polish = send(packed, "text/html; charset=iso-8859-2")
        (redirect("/folder/page.html") if handler.path == "/moved" else polish)(handler)

    address = serve(answer)
    (record,) = extract(f"{address}/moved", "-f", "jsonl").records

    assert record["title"] == "Przyp\u0142ywy"
    assert record["url"] == f"{address}/folder/page.html"
    assert f"({address}/folder/more.html)" in record["markdown"]
    assert re.fullmatch(r"[\w.-]+", record["id"])
    assert agents == {f"scrapy-dripper/{version('scrapy-dripper')}"}


# Exit codes


@pytest.mark.parametrize(
    ("content", "arguments", "reason"),
    [
        (b"", [], "empty_body"),
        (b"%PDF-1.7 \x00\x01\x02 not a page", [], "not_html"),
        (b"<html><body><script>1</script></body></html>", [], "no_blocks"),
        (page().encode(), ["--max-blocks", "1", "--fallback", "empty"], "oversize"),
        (page().encode(), ["--max-bytes", "10"], "over 100 bytes"),
        (gzip.compress(b" " * 100_000), ["--max-bytes", "100"], "over 1,000 bytes"),
    ],
)
def test_a_page_that_gives_nothing_counts_as_failed(
    content: bytes, arguments: list[str], reason: str, tmp_path: Path, extract: Run
) -> None:
    """The model and the fallback found nothing, or the page is far too large to read. A folder gets no empty file."""
    path = tmp_path / "page.html"
    path.write_bytes(content)

    done = extract(path, *arguments)
    assert (done.code, done.out) == (1, "")
    assert f"{path}: " in done.err
    assert reason in done.err

    assert extract(path, *arguments, "-o", f"{tmp_path / 'out'}/").code == 1
    assert list((tmp_path / "out").iterdir()) == []


def test_the_record_of_a_page_that_gave_nothing_is_still_written(tides: Path, extract: Run) -> None:
    """JSON has a record for every page that could be read, with the reason."""
    Path("empty.html").write_bytes(b"")

    done = extract(".", "-f", "jsonl")

    found = zip(values(done.records, "id"), values(done.records, "fallback_reason"), strict=True)
    assert (done.code, [*found]) == (1, [("empty", "empty_body"), ("tides", None)])
    assert done.err.splitlines()[-1] == "scrapy-dripper: 1 of 2 inputs gave no result"


def test_a_long_run_says_how_far_it_is_without_a_terminal(
    here: Path, extract: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line a minute. A record says which file it is of, also if several have one name."""
    monkeypatch.setattr("scrapy_dripper.corpus.processes.LINE_SECONDS", 0)
    pages(here / "a", "index")
    pages(here / "b", "index")

    done = extract(".", "-f", "jsonl", "--batch-size", "1")

    assert (values(done.records, "id"), values(done.records, "input")) == (
        ["index", "index-2"],
        ["./a/index.html", "./b/index.html"],
    )
    assert done.err.splitlines() == [f"scrapy-dripper: {number} of 2 inputs" for number in (1, 2)]


def test_what_the_fallback_extracts_is_a_result(tides: Path, extract: Run) -> None:
    """The exit code is 0; the record names the source and the reason."""
    done = extract(tides, "-f", "jsonl", "--max-blocks", "1", "--fallback", "trafilatura")

    (record,) = done.records
    assert (done.code, record["source"], record["fallback_reason"]) == (0, "fallback:trafilatura", "oversize")
    assert "the Moon" in record["markdown"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["extract", "tides.html", "other.html", "--url", "https://example.com"], "--url is for a single file"),
        (["extract", "https://example.com/", "--url", "https://example.com"], "--url is for a single file"),
        (["extract", "tides.html", "--model", "no/such/folder"], "no/such/folder"),
        (["extract", "tides.html", "--jobs", "2", "--model", "no/such"], "manifest.json is missing"),
        (["extract", "tides.html", "--fallback", "no.such.callable"], "no.such.callable"),
        (["extract", "tides.html", "-o", "tides.html"], "would be overwritten"),
        (["extract", "tides.html", "-f", "html", "-o", "."], "would be overwritten"),
        (["extract", "tides.html", "-o", "no/such/file.md"], "cannot write no/such/file.md"),
        (["inspect", "tides.html", "other.html", "-o", "out"], "2 pages need a folder, as in -o out/"),
        (["inspect", "tides.html", "-o", "tides.html"], "would be overwritten"),
        (["inspect", "tides.html", "other.html", "--url", "https://example.com"], "--url is for a single file"),
    ],
)
def test_what_cannot_start_is_one_sentence(arguments: list[str], message: str, tides: Path, run: Run) -> None:
    """The exit code is 2, there is no traceback, and the inputs are unharmed."""
    Path("other.html").write_text(page("Other"), encoding="utf-8")

    done = run(*arguments)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert done.err.startswith("scrapy-dripper: ")
    assert tides.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("link", [os.link, os.symlink])
@pytest.mark.parametrize("output", ["tides.md", "out/tides.md", "out/"])
def test_no_input_is_emptied_through_a_link(
    link: Callable[[Path, str], None], output: str, tides: Path, extract: Run
) -> None:
    """This holds for an output file and for a file in an output folder; other files of the folder stay."""
    Path("out").mkdir()
    link(tides, "tides.md" if output == "tides.md" else "out/tides.md")

    done = extract(tides, "-o", output)

    assert (done.code, "would be overwritten" in done.err) == (2, True)
    assert tides.read_text(encoding="utf-8") == page()


def test_what_standard_input_comes_from_is_not_emptied(tides: Path) -> None:
    with tides.open("rb") as stdin:
        done = subprocess.run(command("extract", "-", "-o", tides), stdin=stdin, stderr=subprocess.PIPE)

    assert done.returncode == 2
    assert b"would be overwritten" in done.stderr
    assert tides.read_text(encoding="utf-8") == page()


def test_an_output_may_be_no_file(tides: Path) -> None:
    """A device has an inode too; a terminal or a pipe may be input and output at the same time."""
    done = subprocess.run(
        command("extract", tides, "-", "-o", "/dev/stdout"), stdin=subprocess.DEVNULL, capture_output=True
    )

    assert b"the Moon" in done.stdout


# Output


@pytest.mark.parametrize(
    ("form", "extension"), [("markdown", "md"), ("html", "html"), ("text", "txt"), ("json", "json"), ("jsonl", "jsonl")]
)
def test_a_folder_receives_one_file_per_page(form: str, extension: str, site: Path, extract: Run) -> None:
    """The folder is made; files are named by id, so pages of the same name do not overwrite each other. The inspector's
    views are no pages."""
    (site / "a.inspect.html").write_text("<p>A view of a page</p>", encoding="utf-8")
    out = Path("new") / "out"

    assert extract(site, "-f", form, "-o", f"{out}/")[:2] == (0, "")

    assert sorted(path.name for path in out.iterdir()) == [f"{id_}.{extension}" for id_ in ("a-2", "a", "b", "c", "d")]
    assert "article about b begins" in (out / f"b.{extension}").read_text(encoding="utf-8")
    if form.startswith("json"):
        assert json.loads((out / f"a-2.{extension}").read_text(encoding="utf-8"))["id"] == "a-2"


def test_names_that_are_too_long_are_shortened(here: Path, extract: Run) -> None:
    """An output's extension is longer than its input's; two pages with long names still get two files."""
    stems = ["a" * 249 + "b", "a" * 249 + "c", "\u0448" * 125, "z"]
    Path("in").mkdir()
    for stem in stems:
        Path(f"in/{stem}.htm").write_text(page(stem[-1]), encoding="utf-8")

    assert extract("in", "-f", "jsonl", "-o", "out/") == (0, "", "")
    found = sorted(file.name for file in Path("out").iterdir())
    assert len(found) == 4
    assert found[-2:] == ["z.jsonl", found[-1]]
    assert all(len(os.fsencode(name)) <= 255 for name in found)
    assert {json.loads(Path("out", name).read_text(encoding="utf-8"))["id"] for name in found} == set(stems)


def test_a_file_that_cannot_be_written_is_named_and_the_others_are_there(here: Path, extract: Run) -> None:
    """One output's name is taken by a folder. An existing folder needs no slash."""
    pages(here / "in", *"abc")
    Path("out/b.md").mkdir(parents=True)

    done = extract("in", "-o", "out")

    assert done.code == 1
    assert sorted(file.name for file in Path("out").iterdir() if file.is_file()) == ["a.md", "c.md"]
    assert "in/b.html: cannot write out/b.md: Is a directory" in done.err
    assert "1 of 3 inputs gave no result" in done.err


@posix
@pytest.mark.parametrize("pattern", ["", "*", "**/*.html"])
def test_a_named_pipe_in_a_folder_is_passed_over(pattern: str, tmp_path: Path, extract: Run) -> None:
    """Reading it could wait for ever. It is named, and the other pages are extracted."""
    pages(tmp_path, "a", "c")
    os.mkfifo(tmp_path / "b.html")
    (tmp_path / "d.html").symlink_to("d.html")

    done = extract(tmp_path / pattern, "-f", "jsonl")

    assert (done.code, values(done.records, "id")) == (1, ["a", "c"])
    assert f"{tmp_path / 'b.html'}: not a regular file" in done.err
    assert f"{tmp_path / 'd.html'}: Too many levels of symbolic links" in done.err


def test_a_file_receives_what_standard_output_would(site: Path, extract: Run) -> None:
    """All pages go into one file, in the same form."""
    expected = extract(site, "-f", "json").out

    assert extract(site, "-f", "json", "-o", "all.json")[:2] == (0, "")
    assert Path("all.json").read_bytes() == expected.encode()


@posix
@pytest.mark.parametrize("kind", ["link", "dangling link", "link to a folder", "hard link", "pipe"])
def test_what_others_put_into_the_output_folder(kind: str, tides: Path, tmp_path: Path, extract: Run) -> None:
    """A page replaces a link or a pipe of its name, and is not written through it. The folder itself may be a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    (tmp_path / "precious").write_text("keep me")
    place = tmp_path / "real" / "tides.md"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "hard link":
        os.link(tmp_path / "precious", place)
    else:
        place.symlink_to(tmp_path / {"link": "precious", "dangling link": "new", "link to a folder": "real"}[kind])

    assert extract(tides, "-o", "out/").code == 0

    assert "Tides" in place.read_text()
    assert not place.is_symlink()
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "new").exists()
    assert os.listdir(tmp_path / "real") == ["tides.md"]


@posix
def test_an_inspector_is_not_written_through_a_link(tides: Path, run: Run) -> None:
    """The name of the file comes from the page, so a link of that name is replaced. A named file may be a link."""
    Path("precious").write_text("keep me")
    Path("tides.inspect.html").symlink_to("precious")
    Path("mine.html").symlink_to("linked.html")

    assert run("inspect", tides).code == run("inspect", tides, "-o", "mine.html").code == 0
    assert Path("precious").read_text() == "keep me"
    for name in ("tides.inspect.html", "linked.html"):
        assert "Tides" in Path(name).read_text()


# In a shell


def command(*arguments: object) -> list[str]:
    """Return the command as a separate process."""
    return [sys.executable, "-m", "scrapy_dripper", *map(str, arguments)]


def interruptible(*arguments: object) -> subprocess.Popen[str]:
    """Start the command with Ctrl-C, which the children of a background job ignore."""
    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@posix
def test_the_progress_bar_is_for_a_terminal_and_leaves_the_output_alone(site: Path, tmp_path: Path) -> None:
    """Several inputs show a bar on standard error if it is a terminal, and never on standard output."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with open(tmp_path / "out.jsonl", "wb") as out:
        subprocess.run(command("extract", site, "-f", "jsonl"), stdout=out, stderr=theirs, check=True)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while chunk := os.read(ours, 4096):
            seen += chunk
    os.close(ours)
    quiet = subprocess.run(command("extract", site, "-f", "jsonl"), capture_output=True, check=True)

    assert b"5/5" in seen
    assert quiet.stdout.count(b"\n") == 5
    assert quiet.stdout == (tmp_path / "out.jsonl").read_bytes()
    assert quiet.stderr == b""


@posix
def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    """``| head -1`` gives no error message."""
    pages(tmp_path, *(f"{number:02}" for number in range(20)))
    process = interruptible("extract", tmp_path, "-f", "jsonl", "--batch-size", 1)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.stdout.close()
    process.stdout = None

    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 141
    assert json.loads(first)["id"] == "00"


@posix
@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]], ids=["here", "2"])
def test_ctrl_c_among_many_pages_says_how_many_are_done(serve: Serve, tides: Path, jobs: list[str]) -> None:
    """Pages that are done are written, and the JSON is complete. The exit code is 130, as in shells."""
    address, waiting = stuck(serve)
    process = interruptible("extract", tides, address, "-f", "json", "-o", "out.json", "--batch-size", "1", *jobs)
    assert waiting.wait(60)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    done = len(json.loads(Path("out.json").read_text(encoding="utf-8")))
    assert f"stopped: of 2 inputs, {done} gave a result and 0 gave none" in err
    assert "Traceback" not in err
    assert process.returncode == 130
    assert done == 1 or jobs  # a worker process may not have answered yet


def test_jobs_and_batches_of_any_size_give_the_same(tmp_path: Path, extract: Run) -> None:
    """Order and exit code are the same, also after a page that cannot be read, which is named."""
    pages(tmp_path, *"1234567")
    inputs = [tmp_path / f"{name}.html" for name in ("1", "missing", *"234567")]

    found = [
        extract(*inputs, "-f", "jsonl", *options)
        for options in ((), ("--batch-size", 1), ("--jobs", 1), ("--jobs", 2, "--batch-size", 2))
    ]

    assert found[0].code == 1
    assert values(found[0].records, "title") == [*"1234567"]
    assert all(done[:2] == found[0][:2] for done in found)
    assert all("missing.html: not found" in done.err for done in found)


@pytest.mark.parametrize(
    ("jobs", "count", "expected"), [(2, 5, (2, [3, 2])), (4, 1, (1, [1])), (1, 3, (1, [3])), (2, 20, (2, [8, 8, 4]))]
)
def test_each_job_has_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extract: Run, jobs: int, count: int, expected: Any
) -> None:
    """If there are few pages, batches are smaller; one job is a process too."""
    processes, sizes = Mock(), list[int]()

    def answers(batches: Any) -> Iterator[Any]:
        for things, documents in batches:
            sizes.append(len(documents))
            yield things, [nothing("", None, None)] * len(documents)

    processes.return_value = contextlib.nullcontext(answers)
    monkeypatch.setattr("scrapy_dripper.corpus.processes.extracting", processes)
    extract(pages(tmp_path, *map(str, range(count))), "--jobs", jobs)

    assert (processes.call_args.args[1], sizes) == expected


def batches(seen: list[str], stop: Callable[[], None] = lambda: None) -> Iterator[tuple[list[int], list[Document]]]:
    """Yield three batches, and be interrupted by Ctrl-C."""
    for number in range(3):
        seen.append(f"read {number}")
        yield [number], [Document("")]
    stop()
    raise KeyboardInterrupt


def test_what_is_done_is_written_before_more_is_read() -> None:
    """Pages from the web take long to read; Ctrl-C loses none that is done."""
    seen: list[str] = []

    def at_once(documents: list[Document]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result([None] * len(documents))
        return future

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (what is seen on the way is the point)
        for (number,), _ in in_order(batches(seen), at_once, 8, Hosts()):
            seen.append(f"done {number}")
    assert seen == ["read 0", "done 0", "read 1", "done 1", "read 2", "done 2"]


def test_after_ctrl_c_what_is_done_is_yielded() -> None:
    futures: list[Future[Any]] = [Future() for _ in range(3)]
    waiting = iter(futures)

    def stop() -> None:
        futures[0].set_result(["zero"])
        futures[2].set_result(["two"])

    seen: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(in_order(batches([], stop), lambda _: next(waiting), 8, Hosts()))
    assert seen == [([0], ["zero"])]


class StoppedPool:
    """Some pages stop the worker. Whether it is known which page did is up to ``known``."""

    def __init__(self, bad: set[str], known: bool) -> None:
        self.bad, self.known = bad, known

    def extract(self, tasks: list[Task]) -> list[Extraction]:
        at = next((i for i, task in enumerate(tasks) if task.document.url in self.bad), None)
        if at is not None:
            raise WorkerError(FallbackReason.WORKER_ERROR, "it died", at if self.known else None)
        return [nothing(task.document.url, None, None) for task in tasks]

    def extract_alone(self, task: Task, error: WorkerError) -> Extraction:
        return nothing(task.document.url, error.reason, str(error))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("n", "each"), [(0, 1), (1, 1), (20, 7), (3_000, 1)])
def test_each_page_of_a_batch_has_an_answer(n: int, each: int, known: bool) -> None:
    """They are in order, even if thousands of pages stop workers."""
    urls = [f"https://example.org/{i}" for i in range(n)]
    bad = set(urls[::each])
    tasks: Any = [Task(Document("", url), None) for url in urls]  # type: ignore[arg-type]

    found = answers(StoppedPool(bad, known), tasks)  # type: ignore[arg-type]

    assert [one.url for one in found] == urls
    assert {one.url for one in found if one.fallback_reason} == bad


# Options


def test_every_option_has_its_documentation_in_the_help(run: Run) -> None:
    """It is that of the setting."""
    words = " ".join(run("extract", "--help").out.split()).replace("Main- HTML", "Main-HTML")

    assert f"with its redirects (default: {SECONDS:g})" in words
    for option in fields(Config):
        if option.name in OPTIONS and option.name not in PREFIXES:
            assert f"--{option.name.replace('_', '-')} " in words
            assert " ".join(option.metadata["doc"].split()) in words
    for name, prefix in PREFIXES.items():
        for key in fields(getattr(Config(), name)):
            assert f"--{(prefix + key.name).replace('_', '-')} " in words


def test_version(run: Run) -> None:
    """The version is that of the installed distribution."""
    assert run("--version") == (0, f"scrapy-dripper {version('scrapy-dripper')}\n", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["extract", "--formt", "text", "a.html"], "unrecognized arguments: --formt; did you mean --format?"),
        (["extract", "-f", "pdf", "a.html"], "invalid choice: 'pdf'"),
        (["extract", "a.html", "--favor", "recal"], "'precision', 'recall' (got 'recal'; did you mean recall?)"),
        (["extract", "a.html", "--batch-size", "0"], "--batch-size: expected a whole number of at least 1 (got '0')"),
        (["extract", "a.html", "--fallback", "magic"], "argument --fallback: expected one of 'trafilatura'"),
        (["extract", "a.html", "--batch", "2"], "unrecognized arguments: --batch"),
        (["extract", "a.html", "--url", "example.com/a"], "expected a URL, such as https://"),
        (["extrct", "a.html"], "did you mean extract?"),
        (["https://example.com/a"], "did you mean scrapy-dripper extract https://example.com/a?"),
        (["rules", "check", "rules.toml", "a.html", "--ulr=a"], "did you mean --url?"),
        (["extract"], "the following arguments are required: INPUT"),
        (["rules", "check", "rules.toml"], "the following arguments are required: PAGE"),
    ],
)
def test_wrong_options_get_one_sentence(arguments: list[str], says: str, run: Run) -> None:
    """The usage, with dozens of options, would hide it."""
    done = run(*arguments)

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err


def test_a_closed_standard_output_is_said(tides: Path, monkeypatch: pytest.MonkeyPatch, extract: Run) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    done = extract(tides)

    assert (done.code, "standard output is closed" in done.err) == (2, True)


@pytest.mark.parametrize("error", [MemoryError(), ImportError("x.so: failed to map segment from shared object")])
def test_too_little_memory_is_said(error: Exception, monkeypatch: pytest.MonkeyPatch, extract: Run) -> None:
    """In one sentence, wherever it runs out, also if a library of numpy is being loaded."""

    def run_out(*_: object) -> None:
        raise error

    monkeypatch.setattr("scrapy_dripper.cli.extract.find_sources", run_out)

    done = extract("page.html")
    assert (done.code, done.err.count("\n")) == (2, 1)


# The inputs of a corpus


@posix
def test_an_archive_whose_name_a_table_cannot_hold(tmp_path: Path) -> None:
    """A pipe in a folder is no archive either."""
    pipe = tmp_path / "pipe.warc"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe\.warc: not a regular file"):
        _files([str(tmp_path)])

    pipe.unlink()
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.warc")).write_bytes(b"")
    with pytest.raises(UsageError, match="a name that is not in UTF-8"):
        _files([str(tmp_path)])
