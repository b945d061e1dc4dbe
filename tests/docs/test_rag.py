"""The guide to search and retrieval works, from its settings to the records for a vector store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "rag.md"
sys.path.insert(0, str(ROOT / "example_project"))

from example.website import Website  # noqa: E402
from example.website.server import stored_pages  # noqa: E402


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
        inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        inherited.pop("SCRAPY_SETTINGS_MODULE", None)
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", "crawl", "docs"],
            cwd=folder,
            env=inherited | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return folder / "pages.jsonl"


def test_each_passage_has_an_id_its_headings_and_a_place_to_point_to(feed: Path) -> None:
    records = list(run(snippet("# records.py"))["records"](feed))

    assert len({record["id"] for record in records}) == len(records) > 20
    (restore,) = [record for record in records if "On the first Monday" in record["text"]]
    assert restore["url"].endswith("/docs/backup.html#restore")
    assert "Practise the way back" in restore["text"].partition("\n\n")[0]
