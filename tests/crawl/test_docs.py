"""The documentation of crawls: snippets run with the bundled model, and stats match the code."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import scrapy
from itemadapter import ItemAdapter

from tests.crawl.crawling import Crawls, Reactor, Site, page
from tests.crawl.processes import run, scrapy_command

DOCS = Path(__file__).parents[2] / "docs"
FORMS = ("markdown", "text", "articleBody")
DOORS = [
    *("../README", "start/five-minutes"),
    *("guides/addon", "guides/callback", "guides/scrapy-poet", "guides/rag"),
]


def snippets(name: str, first: str = "") -> list[str]:
    """Return the Python snippets of a page that begin with a line."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    return [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if code.startswith(first)]


def spiders() -> list[Any]:
    """Return every spider in the documentation as a test parameter."""
    return [
        pytest.param(door, code, id=f"{door}-{number}")
        for door in DOORS
        for number, code in enumerate(snippets(door, "# spider.py"))
    ]


def test_every_door_has_a_snippet() -> None:
    """Each page has a spider."""
    assert {param.values[0] for param in spiders()} == set(DOORS)


@pytest.mark.parametrize(("door", "code"), spiders())
def test_the_snippets_run(
    reactor: Reactor, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, door: str, code: str
) -> None:
    """Each spider, with the first settings of its page, yields items with main content."""
    if door == "guides/scrapy-poet":
        pytest.importorskip("scrapy_poet")
    site.routes["/api/articles"] = (
        "application/json",
        b'[{"link": "https://example.org/a", "content": "<p>MAIN text of an article.</p>"}]',
    )
    file = tmp_path / "spider.py"
    file.write_text(re.sub(r"https://(example\.com|quotes\.toscrape\.com)", site.url(""), code), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("documented", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "documented", module)
    monkeypatch.chdir(tmp_path)  # where feeds go
    spec.loader.exec_module(module)
    (cls,) = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, scrapy.Spider)]
    settings: dict[str, Any] = {} if "ADDONS" in code else {"ADDONS": {"scrapy_dripper.Addon": 500}}
    exec("\n".join(snippets(door, "# settings.py")[:1]), settings)

    result = Crawls(reactor)(cls, {name: value for name, value in settings.items() if name.isupper()})

    expected = 1 if "async def start" not in code else 2
    assert len(result.items) == expected
    adapters = map(ItemAdapter, result.items)
    texts = [next((text for name in FORMS if (text := item.get(name))), "") for item in adapters]
    assert sum("MAIN text of" in text for text in texts) == 1
    assert result.stats.get("log_count/ERROR", 0) == 0


@pytest.mark.parametrize("door", ["../README", "start/five-minutes"])
def test_the_first_steps_need_no_project(site: Site, tmp_path: Path, door: str) -> None:
    """The first spider and the command below it, as typed in an empty folder. Letters are written as they are."""
    site.routes["/"] = ("text/html; charset=utf-8", page("\u6d77").encode())
    text = (DOCS / f"{door}.md").read_text(encoding="utf-8")
    (code,) = snippets(door, "# spider.py")[:1]
    (command,) = re.findall(r"^(?:\$ )?scrapy (runspider .*)$", text, re.M)
    (tmp_path / "spider.py").write_text(code.replace("https://quotes.toscrape.com", site.url("")), encoding="utf-8")

    done = run(scrapy_command, command.split(), {}, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "quotes.jsonl").read_text(encoding="utf-8").splitlines()
    (item,) = map(json.loads, lines)
    assert "MAIN text of page \u6d77" in item["markdown"]
    assert "MAIN text of page \u6d77" in lines[0]
    assert set(item) == {"url", "title", "markdown", "main_html", "text", "metadata"}


def test_every_stat_is_documented() -> None:
    """stats.md lists every stat that the code writes."""
    package = DOCS.parent / "scrapy_dripper"
    sources = [*package.glob("*.py"), *(package / "crawl").glob("*.py"), package / "corpus" / "archive.py"]
    written = re.compile(r'(?:\.(?:count|peak|put)\(f?"|"dripper/)(\w+)').findall
    counted = {name for path in sources for name in written(path.read_text(encoding="utf-8"))}
    text = (DOCS / "reference/stats.md").read_text(encoding="utf-8")

    assert len(counted) >= 10
    assert set(re.findall(r"\| `dripper/(\w+)", text)) <= counted <= set(re.findall(r"[|#] `dripper/(\w+)", text))
