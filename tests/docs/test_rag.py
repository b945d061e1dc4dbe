"""The guide to search and retrieval works, from its settings to a question that a vector store answers."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

apsw = pytest.importorskip("apsw")
pytest.importorskip("sqlite_vec")

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "rag.md"
sys.path.insert(0, str(ROOT / "example_project"))

from example.website import Website  # noqa: E402
from example.website.server import stored_pages  # noqa: E402

from tests.crawl.processes import run as run_program  # noqa: E402
from tests.crawl.processes import scrapy_command  # noqa: E402

SIZE = 512


def snippet(first: str) -> str:
    """Return the Python of the guide that begins with a line."""
    found = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    (code,) = [code for code in found if code.startswith(first)]
    return str(code)


def run(code: str, **given: Any) -> dict[str, Any]:
    """Run code of the guide and return its names."""
    exec(compile(code, str(GUIDE), "exec"), given)
    return given


def embed(text: str) -> list[float]:
    """Return a vector of the words of a text, without a model. Long words have a higher weight."""
    vector = [0.0] * SIZE
    for word, count in Counter(re.findall(r"\w+", text.lower())).items():
        vector[crc32(word.encode()) % SIZE] += math.log1p(count) * max(0, len(word) - 2)
    return vector


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The feed of a crawl of the example's website, with the settings and the spider of the guide."""
    folder = tmp_path_factory.mktemp("rag")
    with Website() as site:
        urls = [site.url + path for path in stored_pages() if not path.startswith("/private/")]
        spider = snippet("# spider.py").replace('["https://example.com/docs/"]', repr(urls))
        assert urls[0] in spider
        (folder / "spider.py").write_text(spider, encoding="utf-8")
        (folder / "settings.py").write_text(
            snippet("# settings.py") + "SPIDER_MODULES = ['spider']\nDRIPPER_CHUNKS = {'size': 500}\n", encoding="utf-8"
        )
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = settings\n", encoding="utf-8")
        done = run_program(scrapy_command, ["crawl", "docs"], {}, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "pages.jsonl"


@pytest.fixture
def index(feed: Path, tmp_path: Path) -> Any:
    """The passages of the feed in a store."""
    records: Callable[[Path], Any] = run(snippet("# records.py"))["records"]
    found = run(snippet("# index.py"))["Index"](str(tmp_path / "pages.db"), embed, SIZE)
    found.add(records(feed))
    found.add(records(feed))  # a second crawl replaces the first one
    return found


@pytest.mark.parametrize(
    ("question", "path", "headings"),
    [
        (
            "On which Monday of the month is a file restored from the shelf disk?",
            "/docs/backup.html#restore",
            "Practise the way back",
        ),
        (
            "Which job links files that did not change, so that thirty days cost no room?",
            "/docs/backup.html#nightly",
            "The nightly job",
        ),
    ],
)
def test_a_question_finds_its_passage_with_the_place_to_point_to(
    index: Any, question: str, path: str, headings: str
) -> None:
    """The text begins with its headings, and the URL leads to it."""
    (url, text), *_ = index.search(question)

    assert url.endswith(path)
    assert headings in text.partition("\n\n")[0]


def test_every_passage_is_there_once(index: Any, feed: Path) -> None:
    records = list(run(snippet("# records.py"))["records"](feed))
    ((count,),) = index.db.execute("select count(*) from passages")

    assert count == len({record["id"] for record in records}) == len(records) > 20
