"""Which files `extract` reads, and what it says about those that are no page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from scrapy_dripper.cli import main
from tests.corpus.zoo import HONEST, HOSTILE, PLAIN

HTML = (
    "<!doctype html><html><head><title>Tides</title></head><body><article><h1>Tides</h1>"
    "<p>The café by the harbour opens when the water is high, and this paragraph is long enough to be its article.</p>"
    "</article></body></html>"
)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("crawl.warc", PLAIN, "`scrapy-dripper corpus extract` reads"),
        ("crawl.warc.gz", gzip.compress(PLAIN, mtime=0), "`scrapy-dripper corpus extract` reads"),
        ("crawl.html", gzip.compress(PLAIN, mtime=0), "`scrapy-dripper corpus extract` reads"),
        ("crawl.warc.zst", b"\x28\xb5\x2f\xfd", "`scrapy-dripper corpus extract` reads"),
        ("page.json", b'{"html": "<html><p>text</p>"}', "not HTML but JSON"),
        ("page", b' [{"html": "<p>text</p>"}]', "not HTML but JSON"),
        ("notes.txt", b"A tag: <p>", "not HTML but text/plain"),
        ("notes", b"No tag: 1 < 2 > 1", "not HTML but text"),
        ("style.css", b"p { color: red } /* <p> */", "not HTML but text/css"),
        ("table.csv.gz", gzip.compress(b"a,b\n<p>,1\n", mtime=0), "not HTML but text/csv"),
        ("paper.pdf", b"%PDF-1.7 \0 <p>", "the document is a PDF"),
        ("picture.html", b"\x89PNG\r\n\x1a\n\0\0", "the document is a PNG image"),
        (
            "saved.mhtml",
            b"MIME-Version: 1.0\r\nContent-Type: multipart/related\r\n\r\n<p>",
            "not HTML but message/rfc822",
        ),
        ("example.com/x", None, "not a file: `scrapy dripper URL` extracts it"),
        ("www.example.com", None, "not a file: `scrapy dripper URL` extracts it"),
        ("none.html", None, "not found\n"),
        ("folder/none", None, "not found\n"),
    ],
)
def test_what_is_no_page_is_named(
    name: str,
    data: bytes | None,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other inputs are read, and the exit code is 1."""
    monkeypatch.chdir(tmp_path)
    Path("good.html").write_text(HTML, encoding="utf-8")
    if data is not None:
        Path(name).write_bytes(data)

    assert main(["extract", name, "good.html"]) == 1

    out, err = capsys.readouterr()
    assert "by the harbour" in out
    assert err.startswith(f"scrapy-dripper: {name}: ")
    assert reason in err
    assert err.endswith("1 input gave no result\n")


@pytest.mark.parametrize("name", ["tides.php", "tides", "tides.aspx", "tides.txt", "tides.xml"])
def test_a_page_may_have_any_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text('<?xml version="1.0"?>\n' + HTML, encoding="utf-8")

    assert main(["extract", str(tmp_path / name)]) == 0
    assert "by the harbour" in capsys.readouterr().out


def test_no_archive_is_read_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for animal in [*HONEST, *HOSTILE]:
        if b"WARC/" in animal.data[:7]:
            (tmp_path / f"{animal.name[:20].replace('/', '-')}.html").write_bytes(animal.data)

    assert main(["extract", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("corpus extract") == len(list(tmp_path.iterdir()))
