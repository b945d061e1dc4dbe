"""Pages that hold every structure come out the same with the child process and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from children import SECONDS, AllMain

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import plant
from scrapy_dripper.sandbox import Sandbox
from scrapy_dripper.sandbox.trees import to_json

FOLDER = Path(__file__).parents[1] / "structured"
PAGES = sorted(FOLDER.glob("*/*.html"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Return one that all pages go through."""
    made = Sandbox(Config(sandbox="always", timeout=SECONDS))
    yield made
    made.close()


def test_there_are_pages() -> None:
    assert len(PAGES) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_tree_is_the_same(page: Path, sandbox: Sandbox) -> None:
    document = Document(page.read_bytes(), "http://example.com/")
    sandbox.begin()
    here, there = plant(document, Config()), sandbox.plant(document, Config())
    assert to_json(there[0]) == to_json(here[0])
    assert there[1] == here[1]


def test_all_that_comes_out_is_the_same() -> None:
    """Main-HTML, Markdown, text, content list, labels."""
    documents = [Document(page.read_bytes(), "http://example.com/") for page in PAGES]
    found = []
    for mode in ("never", "always"):
        extractor = Extractor(Config(sandbox=mode, timeout=SECONDS), AllMain())
        names = "title main_html markdown text content labels source fallback_reason truncated".split()
        found.append([[getattr(one, name) for name in names] for one in extractor.extract(documents)])
        extractor.close()
    assert found[0] == found[1]
