"""The code of docs/guides/pipelines.md does what the guide says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.shards import shards, structured

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

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
