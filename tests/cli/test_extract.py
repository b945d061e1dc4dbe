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

import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.cli.options import OPTIONS, PREFIXES
from scrapy_dripper.config import Config
from scrapy_dripper.corpus.processes import in_order
from scrapy_dripper.sites import Hosts
from scrapy_dripper.workshop.cli.corpus import _files
from scrapy_dripper.workshop.cli.corpus_pages import PageInputs
from tests.cli.conftest import Serve, redirect, send
from tests.corpus.zoo import AFTER, PLAIN

KEYS = (
    "id url title text markdown main_html source fallback_reason error limit confidence blocks main_blocks truncated "
    "page_type page_type_probability quality content_hash simhash"
).split()


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
def tides(tmp_path: Path) -> Path:
    """A folder with a single page, in the file tides.html."""
    path = tmp_path / "tides.html"
    path.write_text(page(), encoding="utf-8")
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of pages with several names and depths, and a file that is not a page."""
    folder = tmp_path / "site"
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
    for name in names:
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")
    return folder


def extract(*arguments: object) -> int:
    """Run ``scrapy-dripper extract`` in this process."""
    return main(["extract", *map(str, arguments)])


def records(text: str) -> list[dict[str, object]]:
    """Return the objects of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


# Formats


@pytest.mark.parametrize(
    ("form", "there", "not_there"),
    [
        ("markdown", ["the Moon", "[with a link to more of it](more.html)"], ["Privacy", "About us", "<p>"]),
        ("html", ["<p>The third", '<a href="more.html">'], ["Privacy", "About us", "<nav"]),
        ("text", ["the Moon", "with a link to more of it"], ["Privacy", "About us", "<p>", "more.html"]),
    ],
)
def test_a_format_holds_the_main_content_only(
    form: str, there: list[str], not_there: list[str], tides: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One page goes to standard output without a heading; standard error stays empty."""
    assert extract(tides, "--format", form) == 0

    out, err = capsys.readouterr()
    assert [text for text in there if text not in out] == []
    assert [text for text in [*not_there, "tides.html"] if text in out] == []
    assert out.endswith("\n")
    assert err == ""


def test_markdown_is_the_default_format(tides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the input has to be named."""
    assert extract(tides) == 0
    default = capsys.readouterr().out

    assert extract(tides, "-f", "markdown") == 0
    assert capsys.readouterr().out == default


def test_a_record_says_what_was_extracted_and_by_whom(tides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON lines hold one object per page, with the documented keys."""
    assert extract(tides, "-f", "jsonl") == 0

    (record,) = records(capsys.readouterr().out)
    assert list(record) == KEYS
    assert (record["id"], record["title"], record["url"]) == ("tides", "Tides", "")
    assert (record["source"], record["fallback_reason"]) == ("tagger", None)
    assert 0 < int(str(record["main_blocks"])) < int(str(record["blocks"]))
    assert "caf\u00e9" in str(record["text"])
    assert "caf\u00e9" in str(record["markdown"])
    assert '<a href="more.html">' in str(record["main_html"])


@pytest.mark.parametrize("count", [1, 3])
def test_json_is_an_array_whatever_the_number_of_pages(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script need not know how many pages a glob matches."""
    assert extract(pages(tmp_path, *"abc"[:count]), "-f", "json") == 0

    assert [record["title"] for record in json.loads(capsys.readouterr().out)] == [*"abc"[:count]]


def test_texts_of_several_pages_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown and HTML are headed by a comment with the input's name, text by a line."""
    pages(tmp_path, "one", "two--three")
    outs = {}
    for form in ("markdown", "html", "text"):
        assert extract(tmp_path, "-f", form) == 0
        outs[form] = capsys.readouterr().out

    for form in ("markdown", "html"):
        assert outs[form].startswith(f"<!-- {tmp_path / 'one.html'} -->\n")
        comments = re.findall(r"<!--(.*?)-->", outs[form], re.S)
        assert len(comments) == 2
        assert "--" not in comments[1]
    assert re.findall(r"^==> .*[/\\](.*) <==$", outs["text"], re.M) == ["one.html", "two--three.html"]


def test_the_output_is_utf_8_in_any_locale(tides: Path) -> None:
    """An ASCII locale does not stop a page."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    done = subprocess.run(
        [sys.executable, "-m", "scrapy_dripper", "extract", str(tides)],
        capture_output=True,
        env=environment,
        check=True,
    )

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
    inputs: list[str], ids: list[str], site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, gzipped files, folders with their subfolders, and globs become pages, each with its own id."""
    monkeypatch.chdir(site)

    extract(*inputs, "-f", "jsonl")

    assert [record["id"] for record in records(capsys.readouterr().out)] == ids


def test_a_glob_character_in_an_existing_name_is_no_glob(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that exists is found by its name, whatever characters it has."""
    (tmp_path / "a[1].html").write_text(page("Bracket"), encoding="utf-8")
    (tmp_path / "a1.html").write_text(page("Glob"), encoding="utf-8")

    assert extract(tmp_path / "a[1].html", "-f", "jsonl") == 0

    assert [record["title"] for record in records(capsys.readouterr().out)] == ["Bracket"]


def test_standard_input_with_the_url_it_came_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Links in Markdown are absolute if the page's URL is given."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(page().encode())))

    assert extract("-", "--url", "https://example.com/sea/tides.html", "-f", "jsonl") == 0

    (record,) = records(capsys.readouterr().out)
    assert (record["id"], record["url"]) == ("stdin", "https://example.com/sea/tides.html")
    assert "(https://example.com/sea/more.html)" in str(record["markdown"])


def test_a_url_is_fetched_with_its_charset_and_its_final_address(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Content-Type header gives the charset; links resolve against the URL after redirects."""
    agents = set()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        agents.add(handler.headers["User-Agent"])
        polish = send(page("Przyp\u0142ywy").encode("iso-8859-2"), "text/html; charset=iso-8859-2")
        (redirect("/folder/page.html") if handler.path == "/moved" else polish)(handler)

    address = serve(answer)
    assert extract(f"{address}/moved", "-f", "jsonl") == 0

    (record,) = records(capsys.readouterr().out)
    assert record["title"] == "Przyp\u0142ywy"
    assert record["url"] == f"{address}/folder/page.html"
    assert f"({address}/folder/more.html)" in str(record["markdown"])
    assert re.fullmatch(r"[\w.-]+", str(record["id"]))
    assert agents == {f"scrapy-dripper/{version('scrapy-dripper')}"}


def test_a_gzipped_page_from_the_web(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """A gzipped body is unpacked, whatever its name."""
    assert extract(serve(send(gzip.compress(page("Zip").encode()))), "-f", "jsonl") == 0

    assert records(capsys.readouterr().out)[0]["title"] == "Zip"


@pytest.mark.parametrize("size", [1, 2, 5])
def test_batches_keep_the_order(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each page gets its own result, whatever the batch size, also after one that cannot be read."""
    pages(tmp_path, *"abcde")
    inputs = [tmp_path / f"{name}.html" for name in ("a", "none", *"bcde")]

    assert extract(*inputs, "-f", "jsonl", "--batch-size", size) == 1

    assert [record["title"] for record in records(capsys.readouterr().out)] == [*"abcde"]


# Exit codes


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.html", "not found"),
        ("*.nothing", "not found"),
        ("folder", "no page there"),
        ("broken.html.gz", ""),
        ("MISSING", "HTTP 404 Not Found"),
        ("http://127.0.0.1:1/", "refused"),
        ("http://[half/", ""),
    ],
)
def test_an_input_that_cannot_be_read_is_named_and_the_others_go_on(
    name: str,
    reason: str,
    tides: Path,
    serve: Serve,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exit code is 1; standard error names the input and the reason."""
    monkeypatch.chdir(tides.parent)
    Path("folder").mkdir()
    Path("broken.html.gz").write_bytes(gzip.compress(page().encode())[:100])
    if name == "MISSING":
        name = serve(lambda handler: handler.send_error(404))

    assert extract(name, "tides.html", "-f", "jsonl") == 1

    out, err = capsys.readouterr()
    assert [record["id"] for record in records(out)] == ["tides"]
    assert err.startswith(f"scrapy-dripper: {name}: ")
    assert reason in err
    assert "Traceback" not in err


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
    content: bytes, arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model and the fallback found nothing, or the page is far too large to read."""
    path = tmp_path / "page.html"
    path.write_bytes(content)

    assert extract(path, *arguments) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert f"{path}: " in err
    assert reason in err


def test_the_record_of_a_page_that_gave_nothing_is_still_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has a record for every page that could be read, with the reason."""
    (tmp_path / "empty.html").write_bytes(b"")
    (tmp_path / "tides.html").write_text(page(), encoding="utf-8")

    assert extract(tmp_path, "-f", "jsonl") == 1

    out, err = capsys.readouterr()
    assert [(record["id"], record["fallback_reason"]) for record in records(out)] == [
        ("empty", "empty_body"),
        ("tides", None),
    ]
    assert err.splitlines()[-1] == "scrapy-dripper: 1 input gave no result"


def test_what_the_fallback_extracts_is_a_result(tides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0; the record names the source and the reason."""
    assert extract(tides, "-f", "jsonl", "--max-blocks", "1", "--fallback", "trafilatura") == 0

    (record,) = records(capsys.readouterr().out)
    assert (record["source"], record["fallback_reason"]) == ("fallback:trafilatura", "oversize")
    assert "the Moon" in str(record["markdown"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tides.html", "other.html", "--url", "https://example.com"], "--url is for a single file"),
        (["https://example.com/", "--url", "https://example.com"], "--url is for a single file"),
        (["tides.html", "--model", "no/such/folder"], "no/such/folder"),
        (["tides.html", "--fallback", "no.such.callable"], "no.such.callable"),
        (["tides.html", "-o", "tides.html"], "would be overwritten"),
        (["tides.html", "-f", "html", "-o", "."], "would be overwritten"),
        (["tides.html", "-o", "no/such/file.md"], "cannot write no/such/file.md"),
    ],
)
def test_what_cannot_start_is_one_sentence(
    arguments: list[str],
    message: str,
    tides: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exit code is 2, there is no traceback, and the inputs are unharmed."""
    monkeypatch.chdir(tides.parent)
    Path("other.html").write_text(page("Other"), encoding="utf-8")

    assert extract(*arguments) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("scrapy-dripper: ")
    assert len(err.splitlines()) == 1
    assert tides.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("link", [os.link, os.symlink])
@pytest.mark.parametrize("output", ["tides.md", "out/tides.md", "out/"])
def test_no_input_is_emptied_through_a_link(
    link: Callable[[Path, Path], None], output: str, tides: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This holds for an output file and for a file in an output folder; other files of the folder stay."""
    (tides.parent / "out").mkdir()
    link(tides, tides.parent / ("tides.md" if output == "tides.md" else "out/tides.md"))

    assert extract(tides, "-o", f"{tides.parent}/{output}") == 2

    assert "would be overwritten" in capsys.readouterr().err
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
def test_a_folder_receives_one_file_per_page(
    form: str, extension: str, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is made; files are named by id, so pages of the same name do not overwrite each other."""
    out = tmp_path / "new" / "out"

    assert extract(site, "-f", form, "-o", f"{out}/") == 0

    assert sorted(path.name for path in out.iterdir()) == [f"{id_}.{extension}" for id_ in ("a-2", "a", "b", "c", "d")]
    assert "article about b begins" in (out / f"b.{extension}").read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""
    if form.startswith("json"):
        assert json.loads((out / f"a-2.{extension}").read_text(encoding="utf-8"))["id"] == "a-2"


def test_names_that_are_too_long_are_shortened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output's extension is longer than its input's; two pages with long names still get two files."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    stems = ["a" * 249 + "b", "a" * 249 + "c", "\u0448" * 125, "z"]
    for stem in stems:
        (folder / f"{stem}.htm").write_text(page(stem[-1]), encoding="utf-8")
    assert extract(folder, "-f", "jsonl", "-o", f"{out}/") == 0
    found = sorted(file.name for file in out.iterdir())
    assert len(found) == 4
    assert found[-2:] == ["z.jsonl", found[-1]]
    assert all(len(os.fsencode(name)) <= 255 for name in found)
    ids = {json.loads((out / name).read_text(encoding="utf-8"))["id"] for name in found}
    assert ids == set(stems)
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_written_is_named_and_the_others_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One output's name is taken by a folder."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    pages(folder, *"abc")
    (out / "b.md").mkdir(parents=True)
    assert extract(folder, "-o", out) == 1
    assert sorted(file.name for file in out.iterdir() if file.is_file()) == ["a.md", "c.md"]
    said = capsys.readouterr().err
    assert f"{folder / 'b.html'}: cannot write {out / 'b.md'}: Is a directory" in said
    assert "1 input gave no result" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("pattern", ["", "*", "**/*.html"])
def test_a_named_pipe_in_a_folder_is_passed_over(
    pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it could wait for ever. It is named, and the other pages are extracted."""
    pages(tmp_path, "a", "c")
    os.mkfifo(tmp_path / "b.html")
    assert extract(tmp_path / pattern, "-f", "jsonl") == 1
    out, said = capsys.readouterr()
    assert [record["id"] for record in records(out)] == ["a", "c"]
    assert f"{tmp_path / 'b.html'}: not a regular file" in said


def test_an_existing_folder_needs_no_slash(tides: Path, tmp_path: Path) -> None:
    """An existing folder is recognised as one."""
    (tmp_path / "out").mkdir()

    assert extract(tides, "-o", tmp_path / "out") == 0

    assert "the Moon" in (tmp_path / "out" / "tides.md").read_text(encoding="utf-8")


def test_a_file_receives_what_standard_output_would(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All pages go into one file, in the same form."""
    assert extract(site, "-f", "json") == 0
    expected = capsys.readouterr().out

    assert extract(site, "-f", "json", "-o", tmp_path / "all.json") == 0

    assert (tmp_path / "all.json").read_bytes() == expected.encode()
    assert capsys.readouterr().out == ""


def test_a_page_without_a_result_leaves_no_file(tmp_path: Path) -> None:
    """A folder of Markdown has no empty files; files of an earlier run stay."""
    (tmp_path / "empty.html").write_bytes(b"")

    assert extract(tmp_path / "empty.html", "-o", f"{tmp_path / 'out'}/") == 1

    assert list((tmp_path / "out").iterdir()) == []


# In a shell


def command(*arguments: object) -> list[str]:
    """Return the command as a separate process."""
    return [sys.executable, "-m", "scrapy_dripper", *map(str, arguments)]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
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
    assert len(records((tmp_path / "out.jsonl").read_text(encoding="utf-8"))) == 5
    assert quiet.stdout == (tmp_path / "out.jsonl").read_bytes()
    assert quiet.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no broken pipes")
def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    """``| head -1`` gives no error message."""
    pages(tmp_path, *(f"{number:02}" for number in range(20)))
    process = subprocess.Popen(
        command("extract", tmp_path, "-f", "jsonl", "--batch-size", 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait(30) == 141
    assert json.loads(first)["id"] == "00"
    assert err == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a single process")
def test_ctrl_c_ends_without_a_traceback(serve: Serve) -> None:
    """The exit code is 130, as in shells."""
    address, waiting = stuck(serve)
    process = subprocess.Popen(
        command("extract", address),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job's children ignore it
    )
    assert waiting.wait(30)

    process.send_signal(signal.SIGINT)

    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 130


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a single process")
@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]], ids=["here", "2"])
def test_ctrl_c_among_many_pages_says_how_many_are_done(serve: Serve, tides: Path, jobs: list[str]) -> None:
    """Pages that are done are written, and the JSON is complete."""
    address, waiting = stuck(serve)
    out = tides.parent / "out.json"
    process = subprocess.Popen(
        command("extract", tides, address, "-f", "json", "-o", out, "--batch-size", "1", *jobs),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert waiting.wait(60)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    done = len(json.loads(out.read_text(encoding="utf-8")))
    assert f"stopped: of 2 inputs, {done} gave a result and 0 gave none" in err
    assert "Traceback" not in err
    assert process.returncode == 130
    assert done == 1 or jobs  # a worker process may not have answered yet


def test_jobs_give_what_one_process_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Order and exit code are the same; unreadable inputs are named."""
    inputs = [str(pages(tmp_path, *"1234567")), str(tmp_path / "missing.html")]

    found = []
    for jobs in ([], ["--jobs", "1"], ["--jobs", "2"]):
        code = main(["extract", *inputs, "-f", "jsonl", "--batch-size", "2", *jobs])
        captured = capsys.readouterr()
        found.append((code, captured.out))
        assert "missing.html: not found" in captured.err

    assert found[0] == found[1] == found[2]
    assert found[0][0] == 1
    assert len(records(found[0][1])) == 7


@pytest.mark.parametrize(
    ("jobs", "count", "expected"),
    [("2", 5, (2, [3, 2])), ("4", 1, (1, [1])), ("1", 3, (1, [3])), ("2", 20, (2, [8, 8, 4]))],
)
def test_each_job_has_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str, count: int, expected: tuple[int, list[int]]
) -> None:
    """If there are few pages, batches are smaller; one job is a process too."""
    made: list[tuple[int, list[int]]] = []

    @contextlib.contextmanager
    def watched(config: Config, processes: int) -> Iterator[Any]:
        made.append((processes, []))
        with Extractor(config) as extractor:
            yield lambda batches: (
                (things, extractor.extract(documents))
                for things, documents in batches
                if not made[-1][1].append(len(documents))
            )

    pages(tmp_path, *map(str, range(count)))
    monkeypatch.setattr("scrapy_dripper.corpus.processes.extracting", watched)

    assert main(["extract", str(tmp_path), "-f", "jsonl", "-o", str(tmp_path / "out"), "--jobs", jobs]) == 0
    assert made == [expected]


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


def test_a_model_that_workers_cannot_load_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(pages(tmp_path, "a", "b"), "--jobs", "2", "--model", tmp_path / "none") == 2
    assert "manifest.json is missing" in capsys.readouterr().err


def test_help_teaches_by_examples_and_documents_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Options have the documentation that they have as settings."""
    with pytest.raises(SystemExit) as caught:
        main(["extract", "--help"])

    out = capsys.readouterr().out
    words = " ".join(out.split()).replace("Main- HTML", "Main-HTML")
    assert caught.value.code == 0
    assert "scrapy-dripper extract page.html" in out
    assert {option.name for option in fields(Config)} >= set(OPTIONS)
    for option in fields(Config):
        if option.name in OPTIONS and option.name not in PREFIXES:
            assert f"--{option.name.replace('_', '-')} " in words
            assert " ".join(option.metadata["doc"].split()) in words
    for name, prefix in PREFIXES.items():
        for key in fields(getattr(Config(), name)):
            assert f"--{prefix}{key.name.replace('_', '-')} " in words


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is that of the installed distribution."""
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"scrapy-dripper {version('scrapy-dripper')}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["extract", "--formt", "text", "a.html"], "unrecognized arguments: --formt; did you mean --format?"),
        (["extract", "-f", "pdf", "a.html"], "invalid choice: 'pdf'"),
        (["extract", "a.html", "--favor", "recal"], "'precision', 'recall' (got 'recal'; did you mean recall?)"),
        (["extract", "a.html", "--batch-size", "0"], "--batch-size: expected a whole number of at least 1 (got '0')"),
        (["extract", "a.html", "--fallback", "magic"], "argument --fallback: expected one of 'trafilatura'"),
        (["extract", "a.html", "--batch", "2"], "unrecognized arguments: --batch"),
        (["extract", "-f", "markdwon", "a.html"], "did you mean markdown?"),
        (["extract", "a.html", "--url", "example.com/a"], "expected a URL, such as https://"),
        (["extrct", "a.html"], "did you mean extract?"),
        (["https://example.com/a"], "did you mean scrapy-dripper extract https://example.com/a?"),
        (["--colour"], "unrecognized arguments: --colour"),
        (["rules", "chek"], "did you mean check?"),
        (["rules", "check", "rules.toml", "a.html", "--ulr=a"], "did you mean --url?"),
        (["extract"], "the following arguments are required: INPUT"),
        (["extract", "a.html", "--links", "dropp"], "did you mean drop?"),
        (["rules", "check", "rules.toml"], "the following arguments are required: PAGE"),
    ],
)
def test_wrong_options_get_one_sentence(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The usage, with dozens of options, would hide it."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_link_that_leads_to_itself_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages(tmp_path, "good")
    (tmp_path / "loop.html").symlink_to(tmp_path / "loop.html")

    assert extract(tmp_path, "-f", "jsonl") == 1
    out, err = capsys.readouterr()
    assert "loop.html" in err
    assert [record["id"] for record in records(out)] == ["good"]


def test_a_closed_standard_output_is_said(
    tides: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    assert extract(tides) == 2
    assert "standard output is closed" in capsys.readouterr().err


@pytest.mark.parametrize("error", [MemoryError(), ImportError("x.so: failed to map segment from shared object")])
def test_too_little_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, wherever it runs out, also if a library of numpy is being loaded."""

    def run_out(*_: object) -> None:
        raise error

    monkeypatch.setattr("scrapy_dripper.cli.extract.find_sources", run_out)

    assert main(["extract", "page.html"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_controls_in_the_name_of_a_file(tmp_path: Path, capsys: Any) -> None:
    """A line feed does not end the heading, and JSON holds no character that controls a terminal."""
    assert extract(pages(tmp_path, "a\nb", "c\x9bd")) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("<!--")]
    assert [heading.endswith(" -->") for heading in headings] == [True, True]

    assert extract(tmp_path, "-f", "jsonl", "--content") == 0
    written = capsys.readouterr().out
    assert not re.search("[\x7f-\x9f]", written)
    assert [json.loads(line)["id"] for line in written.splitlines()] == ["a b", "c\ufffdd"]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as on Unix")
@pytest.mark.parametrize("kind", ["link", "dangling link", "link to a folder", "hard link", "pipe"])
def test_what_others_put_into_the_output_folder(kind: str, tides: Path, tmp_path: Path) -> None:
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

    assert main(["extract", str(tides), "-o", f"{tmp_path / 'out'}/"]) == 0

    assert "Tides" in place.read_text()
    assert not place.is_symlink()
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "new").exists()
    assert os.listdir(tmp_path / "real") == ["tides.md"]


@pytest.mark.skipif(os.name != "posix", reason="links as on Unix")
def test_an_inspector_is_not_written_through_a_link(
    tides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the file comes from the page, so a link of that name is replaced. A named file may be a link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "tides.inspect.html").symlink_to("precious")
    (tmp_path / "mine.html").symlink_to("linked.html")

    assert main(["inspect", str(tides)]) == main(["inspect", str(tides), "-o", "mine.html"]) == 0
    assert (tmp_path / "precious").read_text() == "keep me"
    for name in ("tides.inspect.html", "linked.html"):
        assert "Tides" in (tmp_path / name).read_text()


@pytest.mark.skipif(os.name != "posix", reason="names as on Unix")
@pytest.mark.parametrize("name", [b"a\nb.warc", b"\xff.warc"])
def test_archives_that_a_list_of_names_cannot_hold(name: bytes, tmp_path: Path) -> None:
    """Other archives would be read in their place, or none. A pipe in a folder is left out."""
    os.mkfifo(tmp_path / "pipe.warc")
    with pytest.raises(UsageError, match="no WARC file there"):
        _files([str(tmp_path)])

    Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(b"")
    with pytest.raises(UsageError, match="a name with a line break or not in UTF-8"):
        _files([str(tmp_path)])


@pytest.mark.parametrize("damage", ["cut", "mixed"])
def test_damaged_gzip_among_the_inputs_of_a_corpus(damage: str, tides: Path, tmp_path: Path, capsys: Any) -> None:
    """As in `extract`, the file is named, and the others are read."""
    packed = gzip.compress(tides.read_bytes())
    (tmp_path / "bad.html.gz").write_bytes(packed[:-9] if damage == "cut" else packed[:20] + b"\xff" * 40)

    pages = list(PageInputs([str(tmp_path)], 1_000_000))
    assert [name for name, _ in pages] == [str(tides)]
    assert f"{tmp_path / 'bad.html.gz'}: " in capsys.readouterr().err


def test_a_damaged_archive_among_the_inputs_of_a_corpus(tides: Path, tmp_path: Path, capsys: Any) -> None:
    """It is read as far as possible, and named once with what is lost, and the exit code of the commands is 1."""
    (tmp_path / "cut.warc").write_bytes(AFTER + PLAIN[:-40])
    (tmp_path / "none.warc").write_bytes(b"no archive")

    inputs = PageInputs([str(tmp_path / "cut.warc"), str(tmp_path / "none.warc"), str(tides)], 1_000_000)
    assert [[Path(name).name for name, _ in inputs] for _ in range(2)] == [[tides.name, "cut.warc"]] * 2
    assert inputs.failed
    said = capsys.readouterr().err
    assert said.count("cut.warc: records that cannot be read: cut_off 1") == 1
    assert said.count("none.warc: records that cannot be read: broken_archive 1") == 1
    assert main(["corpus", "tokens", str(tmp_path / "cut.warc")]) == 1
    assert main(["corpus", "tokens", str(tides)]) == 0
