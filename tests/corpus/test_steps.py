"""The reader and the step in pipelines of datatrove, and the code of docs/guides/pipelines.md."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from tests.corpus.shards import HTML, record, shards, structured, write

datatrove = pytest.importorskip("datatrove", reason="needs the extra [corpus]")

import pyarrow.parquet as pq  # noqa: E402
from datatrove.data import Document as Row  # noqa: E402

from scrapy_dripper.corpus.steps import DripperExtractor, FastWarcReader  # noqa: E402

PAGES = structured(30)
QWEN3 = str(Path(__file__).parents[1] / "engines" / "qwen3" / "prepared")


def run(steps: Sequence[Any], rank: int = 0, world_size: int = 1) -> list[Row]:
    """Return the output of the last step of a pipeline."""
    data: Any = None
    for step in steps:
        data = step(data, rank, world_size)
    return list(data)


def counts(step: Any) -> dict[str, float]:
    """Return the counters of a step."""
    return {name: stat.total for name, stat in step.stats.stats.items() if name not in ("doc_len", "documents")}


def rows(*bodies: str) -> list[Row]:
    """Return documents with HTML, as a reader would make them."""
    return [
        Row(body, f"id-{number}", metadata={"url": f"https://e.org/{number}"}) for number, body in enumerate(bodies)
    ]


def page(text: str) -> str:
    """Return a page with a paragraph."""
    return f"<!doctype html><title>Page</title><p>{text}</p><p>And some more of it, so that it is a page.</p>"


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("options", [{}, {"engine": "qwen3", "model": QWEN3, "batch_size": 4}], ids=["tagger", "qwen3"])
def test_the_documents_are_those_of_the_extractor(tmp_path: Path, options: dict[str, Any], processes: int) -> None:
    """With any engine, processes, shards and ranks, each page comes out once, in the order of its shard."""
    config, pages = Config(fallback="none", **options), PAGES[:8] if options else PAGES
    shards(tmp_path, pages, 3)
    found = [
        row
        for rank in range(2)
        for row in run([FastWarcReader(str(tmp_path)), DripperExtractor(config, processes=processes)], rank, 2)
    ]

    with Extractor(config) as extractor:
        extracted = extractor.extract([Document(body, url) for url, body in pages])
    expected = {url: one for (url, _), one in zip(pages, extracted, strict=True)}
    assert {one.source for one in extracted} & {config.engine}
    assert sorted(row.metadata["url"] for row in found) == sorted(expected)
    for row in found:
        one, about = expected[row.metadata["url"]], row.metadata
        assert (row.text, about["main_html"], about["title"]) == (one.markdown or "", one.main_html, one.title)
        assert (about["page_type"], about["source"]) == (one.page_type, one.source)
        assert about["reason"] == (one.fallback_reason and one.fallback_reason.value)
        assert about["quality"] == (None if one.quality is None else pytest.approx(one.quality))
        assert row.id.startswith("<urn:uuid:")
        assert about["file_path"].endswith(".warc.gz")


def test_what_becomes_of_each_record_is_counted(tmp_path: Path) -> None:
    """The counts of reader and step add up to the records of the archive."""
    url, body = PAGES[0]
    write(
        tmp_path / "a.warc",
        [
            *[record(url, body) for _ in range(3)],
            record(url, body, fields={"WARC-Truncated": "length"}),
            record(url, body, fields={"WARC-Segment-Number": "1"}),
            record(url, body, status="404 Not Found"),
            record(url, b"GIF89a", b"Content-Type: image/gif\r\n"),
            record(url, b"%PDF-1.4 \x00\x01"),
            record(url, b"<meta charset=shift_jis>" + "満潮".encode("shift_jis"), HTML.replace(b"utf-8", b"sjis")),
            record(url, body)[:-40],
        ],
    )
    reader, step = FastWarcReader(str(tmp_path)), DripperExtractor()
    found = run([reader, step])

    assert counts(reader) == {
        "input_files": 1,
        "pages": 7,
        "truncated": 2,
        "skipped/status": 1,
        "skipped/not_html": 1,
        "skipped/cut_off": 1,
    }
    counted = counts(step)
    assert counted["pages"] == len(found) == 7
    assert counted["extracted"] + counted["empty"] == 7
    assert sum(count for name, count in counted.items() if name.startswith("source/")) == 7
    assert counted["reason/not_html"] == 1
    assert [row.metadata["truncated"] for row in found] == [None] * 3 + ["length", "segment"] + [None] * 2


def test_pages_without_content_are_kept() -> None:
    """They are counted and state the reason."""
    pages = ("%PDF-1.4 \x00\x01\x02", PAGES[0][1].decode(), "")
    config = Config(fallback="empty")
    step = DripperExtractor(config)

    assert [(row.id, bool(row.text), row.metadata["reason"]) for row in step(iter(rows(*pages)))] == [
        ("id-0", False, "not_html"),
        ("id-1", True, None),
        ("id-2", False, "empty_body"),
    ]
    assert (counts(step)["empty"], counts(step)["pages"]) == (2, 3)


@pytest.mark.parametrize(("output", "begins"), [("markdown", "# "), ("text", "callouts"), ("main_html", "<")])
def test_the_text_is_what_was_asked_for(output: str, begins: str) -> None:
    """Markdown, plain text or Main-HTML; the content list is JSON beside it."""
    (body,) = [body.decode() for url, body in structured(400) if url.endswith("/callouts.html")]
    config = Config(metadata_field="metadata")
    (row,) = DripperExtractor(config, output=output, content=True)(iter(rows(body)))

    assert row.text.startswith(begins)
    assert json.loads(row.metadata["content"])[0]["type"] == "title"
    assert json.loads(row.metadata["page"])["title"] == "callouts"
    assert row.metadata["url"] == "https://e.org/0"


def test_a_poison_page_loses_only_itself() -> None:
    """With worker processes, a page may crash its process, hang in it or take all memory."""
    config = Config(engine="tests.workers.engines.AllMain", fallback="none", timeout=3, batch_size=4)
    poison = {3: "SEGFAULT", 9: "HANG", 14: "MEMORY"}
    step = DripperExtractor(config, processes=2)
    found = list(step(iter(rows(*(page(poison.get(number, "Nothing")) for number in range(20))))))

    assert [row.id for row in found] == [f"id-{number}" for number in range(20)]
    lost = {number: row.metadata["reason"] for number, row in enumerate(found) if not row.text}
    assert lost == {3: "worker_error", 9: "timeout", 14: "engine_error"}
    assert counts(step)["extracted"] == 17


@pytest.mark.parametrize("wrong", [{"output": "pdf"}, {"processes": -1}, {"processes": True}])
def test_wrong_options_say_what_is_allowed(wrong: dict[str, Any]) -> None:
    """The error comes before anything runs."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        DripperExtractor(**wrong)


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "pipelines.md"


def test_the_pipeline_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps articles and drops the rest; a task without an archive succeeds."""
    pages = structured(12)
    shards(tmp_path / "shards", pages, 1)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(from datatrove.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    exec(code.replace("tasks=8", "tasks=2").replace("workers=4", "workers=1").replace("processes=2", "processes=1"), {})

    rows = pq.read_table("articles/00000.parquet").to_pylist()
    assert 0 < len(rows) < len(pages)
    assert {row["page_type"] for row in rows} == {"article"}
    assert pq.read_table("articles/00001.parquet").num_rows == 0
    assert sorted(path.name for path in Path("articles/logs/completions").iterdir()) == ["00000", "00001"]


def test_the_function_of_the_guide_extracts_batches() -> None:
    """A page that is null is an empty one."""
    import pyarrow as pa

    from scrapy_dripper import extract

    pages = structured(3)
    (code,) = re.findall(r"```python\n(from functools.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    table = pa.table({"url": [url for url, _ in pages] + [None], "html": [html for _, html in pages] + [None]})

    for batch in (table, *table.to_batches()):
        found = names["with_markdown"](batch).to_pylist()
        assert [row["markdown"] for row in found] == [extract(html, url).markdown for url, html in pages] + [""]
        assert [row["reason"] for row in found] == [None, None, None, "empty_body"]
