"""``scrapy-dripper corpus report``: its tables agree with the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_dripper.cli import main
from tests.corpus.shards import HTML, document, record, structured, write

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

PAGES = structured(8)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An extraction of a few pages, one of them without content, and of a record that is not a page."""
    root = tmp_path_factory.mktemp("report <b>")
    records = [record(url, body) for url, body in PAGES]
    records += [
        record("https://example.org/none", b"<title>Nothing</title>", HTML),
        record("https://example.org/gone", b"<p>Gone", HTML, status="404 Not Found"),
        record("https://example.org/heavy", document("heavy", "<i>x</i>" * 3_000)),
    ]
    write(root / "shard.warc.gz", records)
    assert main(["corpus", "extract", str(root / "shard.warc.gz"), "-o", str(root / "pages")]) == 0
    return root / "pages"


def test_the_tables_say_what_the_files_hold(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have the steps, the records that are not pages, and the values of the columns."""
    capsys.readouterr()

    assert main(["corpus", "report", str(corpus)]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = pq.read_table(corpus / "00000.parquet").to_pylist()
    assert len(rows) == 10
    for line in (["records", "11", "10"], ["extraction", "10", "9"], ["status", "1", "100.0%"]):
        assert line in lines
    for name in ("source", "reason", "page_type"):
        found = [row[name] for row in rows if row[name]]
        for value in set(found):
            assert [value, str(found.count(value)), f"{found.count(value) / len(found):.1%}"] in lines
    lengths = sorted(len(row["text"]) for row in rows)
    assert ["characters", *(f"{lengths[at]:,}" for at in (0, 2, 4, 6, 8))] in lines


def test_a_folder_that_is_not_an_extraction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "report", str(tmp_path)]) == 2
    assert "it has no run.json" in capsys.readouterr().err
