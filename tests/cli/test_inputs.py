"""Which files `extract` reads, and what it says about those that are no page."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest

from scrapy_dripper.cli.inputs import file_name, page_id
from scrapy_dripper.data import Document
from scrapy_dripper.inspection.look import named
from tests.cli.conftest import Run, Serve
from tests.cli.test_extract import page
from tests.corpus.zoo import PLAIN

HTML = page()
URL = "https://example.org/tides?a=1&b=2"


def mhtml(page: bytes, part: str, top: str = "") -> bytes:
    """Return a page with an image and a frame, as Chromium saves it."""
    head = f"From: <Saved by Blink>\r\n{top}Subject: Tides\r\nMIME-Version: 1.0\r\n"
    head += 'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="----MultipartBoundary--x----"\r\n'
    mark = b"\r\n\r\n------MultipartBoundary--x----\r\n"
    image = b"Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo="
    frame = b"Content-Type: text/html\r\nContent-Location: https://ads.example/\r\n\r\n<p>An advertisement"
    return head.encode() + mark.join([b"", part.encode() + b"\r\n\r\n" + page, image, frame]) + mark[:-2] + b"--\r\n"


def quoted(text: str) -> bytes:
    """Return a text as quoted-printable, with soft line breaks."""
    data = "".join(f"={byte:02X}" if byte > 126 or byte == 61 else chr(byte) for byte in text.encode())
    cut = data.index("harbour")
    return f"{data[:cut]}=\r\n{data[cut:]}".encode()


@pytest.mark.parametrize("name", ["tides.mhtml", "tides.mht", "tides", "tides.mhtml.gz", "-"])
@pytest.mark.parametrize(
    "data",
    [
        mhtml(
            quoted(HTML),
            "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n"
            f"Content-Location: {URL}",
        ),
        mhtml(
            HTML.encode("latin-1"),
            "Content-Type: text/html;\r\n charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n"
            "Content-Location: cid:frame-1@mhtml.blink",
            f"Snapshot-Content-Location: {URL}\r\n",
        ),
    ],
    ids=["quoted-printable", "8bit"],
)
def test_a_page_as_browsers_save_it(
    name: str, data: bytes, here: Path, extract: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    if name != "-":
        Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    (record,) = extract(name, "-f", "jsonl").records

    assert record["url"] == URL
    assert record["title"] == "Tides"
    assert "the café by the harbour" in record["markdown"]
    assert "advertisement" not in record["markdown"]
    assert record["id"] in ("tides", "stdin")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("crawl.warc", PLAIN, "`scrapy-dripper corpus extract` reads"),
        ("crawl.html", gzip.compress(PLAIN, mtime=0), "`scrapy-dripper corpus extract` reads"),
        ("crawl.warc.zst", b"\x28\xb5\x2f\xfd", "`scrapy-dripper corpus extract` reads"),
        ("page.json", b'{"html": "<html><p>text</p>"}', "not HTML but JSON"),
        ("page", b' [{"html": "<p>text</p>"}]', "not HTML but JSON"),
        ("notes.txt", b"A tag: <p>", "not HTML but text/plain"),
        ("notes", b"No tag: 1 < 2 > 1", "not HTML but text"),
        ("table.csv.gz", gzip.compress(b"a,b\n<p>,1\n", mtime=0), "not HTML but text/csv"),
        ("paper.pdf", b"%PDF-1.7 \0 <p>", "the document is a PDF"),
        ("picture.html", b"\x89PNG\r\n\x1a\n\0\0", "the document is a PNG image"),
        ("empty.mhtml", b"MIME-Version: 1.0\r\nContent-Type: multipart/related\r\n\r\n", "an MHTML file without HTML"),
        ("example.com/x", None, "not found (did you mean https://example.com/x?)"),
        ("ftp://example.com/x", None, "not found: URLs begin with http:// or https://"),
        ("none.html", None, "not found\n"),
        ("*.nothing", None, "not found"),
        ("folder", None, "no page there"),
        ("broken.html.gz", gzip.compress(HTML.encode(), mtime=0)[:100], ""),
        ("MISSING", None, "HTTP 404 Not Found"),
        ("http://127.0.0.1:1/", None, "refused"),
        ("http://[half/", None, ""),
        ("loop.html", None, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_page_is_named(
    name: str, data: bytes | None, reason: str, here: Path, serve: Serve, extract: Run
) -> None:
    """The other inputs are read, and the exit code is 1; standard error names the input and the reason."""
    Path("good.html").write_text(HTML, encoding="utf-8")
    Path("folder").mkdir()
    Path("loop.html").symlink_to("loop.html")
    if name == "MISSING":
        name = serve(lambda handler: handler.send_error(404))
    if data is not None:
        Path(name).write_bytes(data)

    done = extract(name, "good.html")

    assert (done.code, "by the harbour" in done.out) == (1, True)
    assert done.err.startswith(f"scrapy-dripper: {name}: ")
    assert reason in done.err
    assert done.err.endswith("1 of 2 inputs gave no result\n")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("url", "stem"),
    [
        ("https://example.org/a/b.html?c=1&d=../../e", "example.org-a-b.html-c-1-d-..-..-e"),
        ("https://aux.example.org/", "_aux.example.org"),
        ("http://CON/", "_CON"),
        ("http://com1/a", "com1-a"),
        ("http://lpt3./", "_lpt3"),
        ("http://nullify.org/a.", "nullify.org-a"),
        ("http://example.org/%20a%20", "example.org-20a-20"),
        pytest.param("https://example.org/" + "\u6f6e" * 300, "example.org-" + "\u6f6e" * 74, id="long"),
        ("https://../", "page"),
    ],
)
def test_names_of_files_for_urls(url: str, stem: str) -> None:
    """All systems allow them, also Windows, where ``aux.example.org.md`` is a device."""
    name, view = file_name(page_id(url), ".md"), named(Document("<p>", url)).name

    assert re.fullmatch(re.escape(stem) + r"(-[0-9a-f]{16})?\.md", name)
    assert len(name.encode()) <= 255
    assert view.startswith("_") == name.startswith("_")
    assert re.fullmatch(r"[A-Za-z0-9._-]+-[0-9a-f]{8}", view)


@pytest.mark.parametrize("name", ["tides.php", "tides", "tides.txt", "tides.xml"])
def test_a_page_may_have_any_name(name: str, here: Path, extract: Run) -> None:
    Path(name).write_text('<?xml version="1.0"?>\n' + HTML, encoding="utf-8")

    assert "by the harbour" in extract(name).out


@pytest.mark.parametrize("depth", [10, 5_000])
def test_an_mhtml_file_with_parts_in_parts(depth: int, here: Path, extract: Run) -> None:
    """However deep it is, the command ends."""
    head = "".join(
        f'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="{n}"\n\n--{n}\n' for n in range(depth)
    )
    Path("deep.mhtml").write_text(f"{head}Content-Type: text/html\n\n{HTML}", encoding="utf-8")

    done = extract("deep.mhtml")

    assert done.code in (0, 1)
    assert "Traceback" not in done.err
