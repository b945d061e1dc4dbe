"""The guide to search and retrieval works, from its settings to the records for a vector store."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.derived import plain_chunks
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.page.parse import parse

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "rag.md"
sys.path.insert(0, str(ROOT / "example_project"))

from example.website import Website  # noqa: E402
from example.website.server import stored_pages  # noqa: E402

from tests.crawl.processes import run as run_program  # noqa: E402
from tests.crawl.processes import scrapy_command  # noqa: E402


def snippet(first: str) -> str:
    """Return the Python of the guide that begins with a line."""
    found = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    (code,) = [code for code in found if code.startswith(first)]
    return str(code)


def run(code: str, **given: Any) -> dict[str, Any]:
    """Run code of the guide and return its names."""
    exec(compile(code, str(GUIDE), "exec"), given)
    return given


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


def test_each_passage_has_an_id_its_headings_and_a_place_to_point_to(feed: Path) -> None:
    records = list(run(snippet("# records.py"))["records"](feed))

    assert len({record["id"] for record in records}) == len(records) > 20
    (restore,) = [record for record in records if "On the first Monday" in record["text"]]
    assert restore["url"].endswith("/docs/backup.html#restore")
    assert "Practise the way back" in restore["text"].partition("\n\n")[0]


def test_a_record_is_of_a_chunk_with_its_path(tmp_path: Path) -> None:
    """An item without chunks has none."""
    html = "<h1>Backup</h1><p>Copy all of it, every night.</p><h2 id=again>Restore</h2><p>Copy all of it back.</p>"
    found = chunks(content_list(parse(html)), "https://e.org/", size=50)
    lines = [{"url": "https://e.org/", "chunks": plain_chunks(found)}, {"url": "https://e.org/empty"}]
    feed = tmp_path / "pages.jsonl"
    feed.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    made = [tuple(record.values()) for record in run(snippet("# records.py"))["records"](feed)]

    first = ("https://e.org/#0", "https://e.org/", "Backup\n\n# Backup\n\nCopy all of it, every night.")
    second = ("https://e.org/#1", "https://e.org/#again", "Backup > Restore\n\n## Restore\n\nCopy all of it back.")
    assert made == [first, second]
