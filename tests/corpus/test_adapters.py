"""Adapters for other data engines give the same extractions. Each test needs a library that no extra installs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from tests.corpus.shards import structured

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")

from scrapy_dripper.corpus import arrow  # noqa: E402
from scrapy_dripper.corpus.arrow import (  # noqa: E402
    COLUMNS,
    SPARK_COLUMNS,
    RayExtractor,
    spark_extractor,
)

PAGES: list[tuple[str, bytes | None]] = [*structured(9), ("https://example.org/none", b"<p>"), ("", None)]
OPTIONS = Config(favor="precision")


@pytest.fixture(scope="module")
def expected() -> list[tuple[Any, ...]]:
    """The extractions of the pages, in the order of their columns."""
    extractor = Extractor(OPTIONS)
    found = extractor.extract([Document(html or b"", url) for url, html in PAGES])
    extractor.close()
    return [
        (
            url,
            one.markdown or "",
            one.title,
            one.page_type,
            None if one.quality is None else pytest.approx(one.quality, rel=1e-6),
            one.source,
            one.fallback_reason and one.fallback_reason.value,
        )
        for (url, _), one in zip(PAGES, found, strict=True)
    ]


def cells(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the cells of rows in the same form."""
    names = ("url", "markdown", "title", "page_type", "quality", "source", "reason")
    return [tuple(row[name] for name in names) for row in rows]


def table() -> Any:
    return pa.table(
        {"url": [url for url, _ in PAGES], "html": [html for _, html in PAGES], "title": ["old"] * len(PAGES)}
    )


def test_tables(expected: list[tuple[Any, ...]]) -> None:
    """Each row gives one row, even if the page is null. An existing column is replaced."""
    found = RayExtractor(OPTIONS)(table())
    assert cells(found.to_pylist()) == expected
    assert found.column("html").to_pylist() == [html for _, html in PAGES]
    assert {name: found.schema.field(name).type for name in COLUMNS} == COLUMNS
    assert RayExtractor(OPTIONS)(found).equals(found)
    assert RayExtractor(OPTIONS, url=None)(table()).num_rows == len(PAGES)


def test_batches(expected: list[tuple[Any, ...]]) -> None:
    """The function that Spark calls gives the same batches, with the columns of its schema."""
    batches = [batch for part in (table()[:4], table()[4:]) for batch in part.to_batches()]
    found = list(spark_extractor(OPTIONS)(iter(batches)))
    assert [batch.num_rows for batch in found] == [batch.num_rows for batch in batches]
    assert cells([row for batch in found for row in batch.to_pylist()]) == expected
    assert [one.split()[0] for one in SPARK_COLUMNS.split(", ")] == list(COLUMNS)
    without = [batch.drop_columns(["title"]) for batch in batches]
    assert next(spark_extractor(OPTIONS)(iter(without))).schema.names == ["url", "html", *COLUMNS]


def elsewhere(code: str, **environment: str) -> None:
    """Run a program that starts an engine, in a separate process that ends with everything it started."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_ray_data() -> None:
    """Actors extract read-only batches, and every document is returned once."""
    pytest.importorskip("ray.data", reason="needs ray[data]")
    elsewhere(
        """
import ray
from scrapy_dripper.corpus.arrow import RayExtractor
from tests.corpus.test_adapters import OPTIONS, cells, table
ray.init(num_cpus=4, include_dashboard=False)
found = ray.data.from_arrow(table()).map_batches(
    RayExtractor, batch_size=4, batch_format="pyarrow", zero_copy_batch=True,
    compute=ray.data.ActorPoolStrategy(size=2), fn_constructor_kwargs={"config": OPTIONS},
)
rows = sorted(cells(found.take_all()))
ray.shutdown()
assert rows == sorted(cells(RayExtractor(OPTIONS)(table()).to_pylist())), rows
"""
    )


def test_spark_finds_the_extractor_of_a_worker() -> None:
    """Spark sends a function by the names of the functions that it calls."""
    assert pickle.loads(pickle.dumps(arrow._shared)) is arrow._shared


def test_spark(tmp_path: Path) -> None:
    """Spark's Python workers extract pages, and nulls stay null."""
    pytest.importorskip("pyspark", reason="needs pyspark, and Java")
    elsewhere(
        """
from pyspark.sql import SparkSession
from scrapy_dripper.corpus.arrow import SPARK_COLUMNS, RayExtractor, spark_extractor
from tests.corpus.test_adapters import OPTIONS, PAGES, cells, table
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "4").getOrCreate()
)
frame = spark.createDataFrame([(url, html) for url, html in PAGES], "url string, html binary").repartition(2)
found = frame.mapInArrow(spark_extractor(OPTIONS), f"url string, html binary, {SPARK_COLUMNS}")
rows = cells([row.asDict() for row in found.collect()])
spark.stop()
key = lambda row: row[0]
expected = sorted(cells(RayExtractor(OPTIONS)(table()).to_pylist()), key=key)
assert sorted(rows, key=key) == expected, rows
""",
        SPARK_LOCAL_DIRS=str(tmp_path),
        PYSPARK_PYTHON=sys.executable,
    )


def test_nemo_curator(expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """Its stage keeps all rows."""
    pytest.importorskip("nemo_curator", reason="needs nemo-curator")
    from nemo_curator.tasks import DocumentBatch

    from scrapy_dripper.corpus.curator import CuratorStage

    batch = CuratorStage(OPTIONS)
    for data in (table(), table().to_pandas()):
        (found,) = batch.process_batch([DocumentBatch(dataset_name="pages", data=data)])
        assert cells(found.to_pyarrow().to_pylist()) == expected
