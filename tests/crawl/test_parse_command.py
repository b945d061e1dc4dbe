"""``scrapy parse URL`` shows items as the add-on fills them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawl.crawling import EXTENSIONS, Site

SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/page/2")

    async def later(self, response):
        yield {"url": response.url, "later": True}
"""


def parse(folder: Path, *args: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a project with one spider. The fallback replaces the engine."""
    (folder / "spiders.py").write_text(SPIDER, encoding="utf-8")
    (folder / "project.py").write_text("", encoding="utf-8")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project\n", encoding="utf-8")
    values = {
        "ADDONS": {"scrapy_dripper.Addon": 500},
        "SPIDER_MODULES": ["spiders"],
        "COMMANDS_MODULE": "scrapy_dripper.commands",
        "EXTENSIONS_BASE": EXTENSIONS,
        "DRIPPER_MAX_BLOCKS": 1,
        "DRIPPER_FALLBACK": "html",
        **settings,
    }
    code = (
        "import sys; sys.path.insert(0, '.'); from scrapy.cmdline import execute; "
        "from scrapy.settings import Settings; import scrapy_dripper; "
        f"execute(['scrapy', 'parse', '--spider', 'pages', '--nocolour', *sys.argv[1:]], Settings({values!r}))"
    )
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("callback", ["parse", "later"])
def test_items_are_shown_filled(site: Site, tmp_path: Path, callback: str) -> None:
    done = parse(tmp_path, site.url("/page/1"), "-c", callback)

    assert "MAIN text of page 1" in done.stdout, done.stderr
    assert "'markdown'" in done.stdout
    assert ("page/2" in done.stdout) == (callback == "parse")


def test_without_the_add_on_it_is_scrapys(site: Site, tmp_path: Path) -> None:
    done = parse(tmp_path, site.url("/page/1"), ADDONS={})

    assert "MAIN text" not in done.stdout
    assert site.url("/page/1") in done.stdout
