"""WARC files made of the structured test pages and of records that a test gives."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastwarc.warc import WarcRecord, WarcRecordType

STRUCTURED = Path(__file__).parents[1] / "structured"
HTML = b"Content-Type: text/html; charset=utf-8\r\n"


def record(
    url: str,
    body: bytes,
    head: bytes = HTML,
    *,
    status: str = "200 OK",
    kind: WarcRecordType = WarcRecordType.response,
    fields: dict[str, str] | None = None,
) -> bytes:
    """Return an uncompressed WARC record that holds an HTTP message."""
    warc = WarcRecord()
    warc.init_headers(record_type=kind)
    warc.headers["WARC-Target-URI"] = url
    for name, value in (fields or {}).items():
        warc.headers[name] = value
    warc.is_http = True
    warc.set_bytes_content(f"HTTP/1.1 {status}\r\n".encode() + head + b"\r\n" + body)
    stream = io.BytesIO()
    warc.write(stream, checksum_data=True)
    return stream.getvalue()


def document(name: str, content: str) -> bytes:
    """Return a page with a menu and a footer around some content."""
    return (
        f"<!doctype html><html><head><title>{name}</title></head><body><nav><a href='/'>Home</a> "
        f"<a href='/about'>About</a></nav><main><article><h1>{name}</h1><p>This page is about {name}, and it has "
        f"enough words to be taken for the main content of a page of some kind.</p>{content}</article></main>"
        "<footer><p>All rights reserved</p></footer></body></html>"
    ).encode()


def structured(most: int) -> list[tuple[str, bytes]]:
    """Return URLs and HTML of a number of the structured pages."""
    files = sorted(STRUCTURED.rglob("*.html"))[:most]
    return [
        (f"https://example.org/{file.stem}.html", document(file.stem, file.read_text(encoding="utf-8")))
        for file in files
    ]


def write(path: Path, records: Iterable[bytes]) -> Path:
    """Write records into a file, each as its own gzip member if the name ends in ``.gz``."""
    pack = gzip.compress if path.suffix == ".gz" else bytes
    path.write_bytes(b"".join(pack(one) for one in records))
    return path


def table(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all finished files of Parquet."""
    from pyarrow.parquet import read_table  # of the extra [corpus]

    return [row for path in sorted(folder.glob("*.parquet")) for row in read_table(path).to_pylist()]


def shards(folder: Path, pages: list[tuple[str, bytes]], count: int) -> list[Path]:
    """Write pages into a number of WARC files, in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        write(folder / f"{number}.warc.gz", [record(url, body) for url, body in pages[number::count]])
        for number in range(count)
    ]
