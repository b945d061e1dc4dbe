"""Pages with every structure have the same extractions in a worker and in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task
from tests.workers.children import OWN

FOLDER = Path(__file__).parents[1] / "structured"
PAGES = sorted(FOLDER.glob("*/*.html"))
DEEP = [
    "<ul><li>" * 240 + "deep lists",
    "<ul><li>x" * 2_000 + "deeper lists",
    "<blockquote>" * 450 + "deep quotes",
    "<b><i>" * 1_000 + "deep runs",
    "<table><tr><td>" * 100 + "deep tables",
]
NAMES = "title main_html markdown text content labels source fallback_reason error truncated metadata".split()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """A pool for all pages."""
    made = Pool(OWN, 1)
    yield made
    made.close()


def values(extractions: list[Extraction]) -> list[list[object]]:
    return [[getattr(one, name) for name in NAMES] for one in extractions]


@pytest.mark.parametrize(
    ("options", "pages"),
    [({}, PAGES[::4]), ({"metadata_field": "m", "markdown": {"links": "citations", "tables": "linear"}}, PAGES)],
    ids=["plain", "rich"],
)
def test_all_that_comes_out_is_the_same(pool: Pool, options: dict[str, Any], pages: list[Path]) -> None:
    """Main-HTML, Markdown, text, content list, labels and metadata are compared, also for deeply nested pages."""
    config = replace(OWN, content_field="content", **options)
    documents = [Document(page.read_bytes(), "http://example.com/") for page in pages]
    documents += [Document(text, "http://example.com/") for text in DEEP]
    here = Extractor(replace(config, processes=0))
    expected = values(here.extract(documents))
    for document, one in zip(documents, expected, strict=True):
        assert values(pool.extract([Task(document, config)])) == [one]
    assert values(pool.extract([Task(document, config) for document in documents[:8]])) == expected[:8]


@pytest.mark.parametrize("fallback", ["trafilatura", "html", "empty", "none"])
def test_fallbacks_are_the_same(pool: Pool, fallback: str) -> None:
    """With their metadata."""
    config = Config(fallback=fallback, content_field="content", metadata_field="metadata")
    documents = [Document(page.read_bytes(), "http://example.com/") for page in PAGES[::9]]
    documents += [Document(text, "http://example.com/") for text in DEEP]
    here = Extractor(replace(config, processes=0, engine=OWN.engine))
    reason = FallbackReason.ENGINE_ERROR
    for document in documents:
        expected = values([here.fall_back(document, reason, "x")])
        assert values(pool.extract([Task(document, config, reason, "x")])) == expected
