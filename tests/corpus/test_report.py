"""``scrapy-dripper corpus report``: the page agrees with the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scrapy_dripper.cli import main
from tests.corpus.shards import HTML, document, record, structured, write

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

from scrapy_dripper.corpus import figures  # noqa: E402

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


def shown(page: str) -> list[str]:
    """Return what the texts and tooltips of a page say."""
    root = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    return ["".join(one.itertext()) for one in root.iter() if one.tag in ("p", "text", "title", "td", "h2")]


def test_the_page_says_what_the_tables_say(corpus: Path) -> None:
    """It has the counts, plots and steps; it is well formed, without page text, scripts or outside resources."""
    steps = [
        {"name": "text", "before": 10, "after": 9, "dropped": {"empty": 1}},
        {"name": "quality", "before": 9, "after": 4, "dropped": {"gopher_short_doc": 5}},
    ]
    (corpus / "clean").mkdir()
    (corpus / "clean" / "stats.json").write_text(json.dumps(steps))

    assert main(["corpus", "report", str(corpus), "--trafilatura", "20"]) == 0

    page = (corpus / "report.html").read_text(encoding="utf-8")
    texts = shown(page)
    rows = pq.read_table(corpus / "00000.parquet").to_pylist()
    assert len(rows) == 10
    assert any(f"10 documents in 1 files, {sum(len(row['text']) for row in rows):,} characters" in one for one in texts)
    for name in ("source", "reason", "page_type"):
        for value in {row[name] for row in rows if row[name]}:
            assert f"{value}: {sum(row[name] == value for row in rows)}" in texts
    assert {"status: 1", "records: 11", "pages: 10", "with content: 9", "after quality: 4"} <= set(texts)
    assert "gopher_short_doc 5" in texts
    assert "Length beside Trafilatura" in texts
    assert "<b>" not in page
    assert not re.search(r"<script|src=|href=|url\(|https?://", page)
    assert not any(row["url"] in page or row["title"] in texts for row in rows)


def test_the_ratios_are_those_of_figure_3(corpus: Path) -> None:
    """They are those of all documents or of a fixed sample; a document with too many tags is left out."""
    from trafilatura import extract

    files = [str(corpus / "00000.parquet")]
    found = figures.ratios(files, 20, True, lambda: None)

    ours = {row["url"]: len(row["text"]) for row in pq.read_table(files[0]).to_pylist()}
    theirs = {url: len(extract(body, url=url, output_format="markdown") or "") for url, body in PAGES}
    expected = [(ours[url] - theirs[url]) / max(ours[url], theirs[url]) for url in theirs]
    assert sorted(found.values) == pytest.approx(sorted(expected))
    assert (found.ours, found.theirs) == (sum(ours[url] for url in theirs), sum(theirs.values()))
    assert found.left_out == 1

    some = figures.ratios(files, 3, True, lambda: None)
    assert some == figures.ratios(files, 3, True, lambda: None)
    assert set(some.values) <= set(found.values)


def test_lengths_and_qualities_are_binned(corpus: Path) -> None:
    """Each text is in exactly one bin, and in the right one."""
    found = figures.texts([str(corpus / "00000.parquet")])
    rows = pq.read_table(corpus / "00000.parquet").to_pylist()
    edges = [10 ** (at / figures.PER_DECADE) for at in range(len(found.lengths) + 1)]
    for number, low, high in zip(found.lengths, edges, edges[1:], strict=False):
        assert number == sum(low <= len(row["text"]) < high for row in rows)
    assert sum(found.qualities) == sum(row["quality"] is not None for row in rows)
    assert (found.rows, found.empty) == (10, 1)


def test_archives_that_are_gone_are_named(corpus: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    archive = corpus.parent / "shard.warc.gz"
    archive.rename(tmp_path / "elsewhere")
    try:
        assert main(["corpus", "report", str(corpus), "--trafilatura", "5"]) == 2
    finally:
        (tmp_path / "elsewhere").rename(archive)
    said = capsys.readouterr().err
    assert str(archive) in said
    assert "--trafilatura reads the archives again" in said
