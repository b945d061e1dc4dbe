"""The example project: its website, its spiders and the program that runs them."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import scrapy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "example_project"))

from example.browser import find_chromium
from example.website import Website, nasty
from example.website.server import stored_pages

from tests.crawl.processes import Done
from tests.crawl.processes import run as run_program
from tests.programs import python

PROJECT = Path(__file__).resolve().parents[2] / "example_project"
STORED = sorted(stored_pages())
NO_ITEM = {"/private/", "/nasty/gone", "/nasty/moved"}
UNREACHABLE = "http://localhost:9/nothing-here"


SCRIPT = PROJECT / "crawl.py"


def run(*arguments: str | Path, pages: Sequence[str] | None = None, **environment: str) -> Done:
    """Run the example's crawl.py at 100 columns. ``pages`` are the nasty ones that the website has,
    because some take seconds."""
    return run_program(_crawl_py, [str(SCRIPT), *map(str, arguments)], pages, {"COLUMNS": "100"} | environment)


def _crawl_py(argv: list[str], pages: Sequence[str] | None, environment: dict[str, str]) -> None:
    os.environ |= environment
    sys.argv = argv
    if pages is not None:
        nasty.PAGES = {path: nasty.PAGES[path] for path in ("/nasty/", *pages)}
    runpy.run_path(argv[0], run_name="__main__")


@dataclass(frozen=True)
class Crawl:
    """The results of a crawl."""

    result: Done
    output: Path

    @cached_property
    def items(self) -> dict[str, dict[str, Any]]:
        """The items of the feed, by the path of their URL."""
        lines = (self.output / "pages.jsonl").read_text(encoding="utf-8").splitlines()
        return {urlsplit(item["url"]).path: item for item in map(json.loads, lines)}

    def row(self, path: str) -> str:
        """Return the row of the table for a path of the own website."""
        return next(line for line in self.result.stdout.splitlines() if line.startswith(path + " "))


def crawl(output: Path, *arguments: str, pages: Sequence[str] | None = None) -> Crawl:
    return Crawl(run("--output", output, *arguments, pages=pages), output)


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    with Website() as site:
        yield site


@pytest.fixture(scope="module")
def site_crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    crawled = crawl(tmp_path_factory.mktemp("site"))
    assert crawled.result.returncode == 0, crawled.result.stderr
    return crawled


# The crawl of the own website


def test_each_page_gives_one_item(site_crawl: Crawl) -> None:
    lines = (site_crawl.output / "pages.jsonl").read_text(encoding="utf-8").splitlines()

    assert sorted(site_crawl.items) == sorted({*STORED, *nasty.PAGES} - NO_ITEM)
    assert len(lines) == len(site_crawl.items)


MAIN_TEXTS = {
    "/news/bridge.html": "forty-two steel tubes",
    "/blog/winter-sourdough/": "Put a little dough in a straight glass",
    "/forum/viewtopic.html": "a straight ramp that starts at full slope",
    "/questions/tomato-leaves.html": "Rolled, thick, green lower leaves",
    "/shop/block-plane.html": "134 mm long and 620 grams",
    "/docs/tides-api.html": "tides.extremes(",
    "/docs/backup.html": "rsync -a --delete",
    "/old/lighthouse.html": "among the plums",
    "/wiki/Salt_marsh.html": "The first settler is glasswort",
    "/recipes/fish-pie.html": "Flake the fish into the sauce",
    "/de/fenster.html": "Blankes Holz bekommt warmes Leinöl",
    "/de/waermepumpe.html": "Jahresverbrauch in kWh durch 2.000 teilen",
    "/zh/tea.html": "采茶不能用指甲掐",
    "/zh/bookshop.html": "门口有一棵构树",
    "/ja/kintsugi.html": "湿り気を吸ってかたまります",
    "/ja/railway.html": "枕木を一本五千円",
    "/ar/wells.html": "من دون قاضٍ ولا عدّاد",
    "/nasty/utf-16": "Старый паромщик",
    "/nasty/nul": "The bell buoy off the point",
    "/nasty/deep": "eleven miles down the coast",
    "/nasty/attributes": "eleven miles down the coast",
    "/nasty/unclosed": "eleven miles down the coast",
    "/nasty/new-address": "eleven miles down the coast",
    "/nasty/wrong-charset": "dreißig Leute die Fähre",
}
GUESSED = {
    "/nasty/no-charset-sjis": "海の音を集めている",
    "/nasty/no-charset-gb18030": "桐油刷过三遍",
    "/nasty/no-charset-1251": "Старый паромщик",
    "/nasty/bogus-charset": "Старый паромщик",
}
"""Pages whose encoding Scrapy guesses since its version 2.19."""


def test_the_main_text_is_there_in_its_own_letters(site_crawl: Crawl) -> None:
    for path, phrase in (MAIN_TEXTS | (GUESSED if scrapy.version_info >= (2, 19) else {})).items():
        item = site_crawl.items[path]
        assert phrase in item["markdown"], path
        assert item["main_html"].count("<p") + item["main_html"].count("<div") > 0, path
        assert item["dripper"]["fallback_reason"] is None, path


def test_the_boilerplate_is_not(site_crawl: Crawl) -> None:
    for path, boilerplate in {
        "/news/bridge.html": "We and our 3 partners",
        "/blog/winter-sourdough/": "Your email address will not be published",
        "/wiki/Salt_marsh.html": "Create account",
        "/de/fenster.html": "Datenschutz",
        "/zh/tea.html": "未经许可不得转载",
    }.items():
        assert boilerplate not in site_crawl.items[path]["markdown"], path


FELL_BACK = {
    "/nasty/big": "oversize",
    "/nasty/blocks": "oversize",
    "/nasty/no-blocks": "no_blocks",
    "/nasty/only-scripts": "js_shell",
}
NOT_EXTRACTED = {
    "/nasty/pdf": "skipped: not_html",
    "/nasty/png": "skipped: not_html",
    "/nasty/report.pdf": "skipped: not_html",
    "/nasty/empty": "skipped: empty_body",
}
NOT_HAD = {"/nasty/gone": "error: HTTP 404", "/private/": "error: forbidden by robots.txt"}


@pytest.mark.parametrize(("path", "remark"), [*FELL_BACK.items(), *NOT_EXTRACTED.items(), *NOT_HAD.items()])
def test_a_page_that_the_model_cannot_do_has_a_row_and_an_item_with_the_reason(
    site_crawl: Crawl, path: str, remark: str
) -> None:
    assert site_crawl.row(path).endswith(remark)
    if path in FELL_BACK:
        meta = site_crawl.items[path]["dripper"]
        assert (meta["source"], meta["fallback_reason"]) == ("fallback:trafilatura", remark)
    elif path in NOT_EXTRACTED:
        item = site_crawl.items[path]
        assert (item["main_html"], item["markdown"], item["dripper"]) == (None, None, None)


def test_the_report_fits_the_terminal_and_names_every_page(site_crawl: Crawl) -> None:
    rows, _, rest = site_crawl.result.stdout.partition("\n\n")
    lines = rows.splitlines()

    assert max(map(len, lines)) <= 100
    # The redirect is the one page that is not there under its own address.
    assert len(lines) == 2 + len({*STORED, *nasty.PAGES}) - 1
    assert "not_html 3" in rest
    assert "pages/s" in rest


def test_the_table_of_the_documentation_is_this_one(site_crawl: Crawl) -> None:
    """All but the milliseconds and the spaces between the columns are the same."""
    document = (PROJECT.parent / "docs" / "start" / "example-project.md").read_text(encoding="utf-8")
    shown = [line.split() for line in re.findall(r"^/.*", document.partition("```text\n")[2].partition("```")[0], re.M)]
    rows = [(row, site_crawl.row(row[0]).split()) for row in shown]

    assert len(rows) >= 6
    assert [row[:5] + row[6:] for row, _ in rows] == [row[:5] + row[6:] for _, row in rows]


def test_there_is_a_markdown_file_for_each_page_with_text(site_crawl: Crawl) -> None:
    files = {file.name: file.read_text(encoding="utf-8") for file in (site_crawl.output / "markdown").iterdir()}

    assert len(files) == sum(bool(item["markdown"]) for item in site_crawl.items.values())
    assert "采茶不能用指甲掐" in files["127-0-0-1-zh-tea-html.md"]


# Other spiders


def test_the_strict_spider_never_falls_back_and_truncates(tmp_path: Path) -> None:
    items = crawl(tmp_path, "--spider", "strict", pages=["/nasty/blocks", "/nasty/no-blocks", "/nasty/utf-16"]).items
    metas = {path: item["dripper"] for path, item in items.items() if item["dripper"]}

    assert {meta["source"] for meta in metas.values()} == {"tagger", "fallback:empty"}
    assert metas["/nasty/blocks"]["truncated"]
    assert metas["/nasty/blocks"]["source"] == "tagger"
    assert not items["/nasty/no-blocks"]["markdown"]


def test_the_callback_spider_keeps_long_reads_only(tmp_path: Path) -> None:
    items = crawl(tmp_path, "--spider", "callback", pages=["/nasty/utf-16", "/nasty/no-blocks"]).items

    assert "/news/bridge.html" in items
    assert "/nasty/utf-16" not in items
    assert all(item["markdown"] and item["dripper"]["fallback_reason"] is None for item in items.values())


def test_addresses_that_work_and_that_do_not(website: Website, tmp_path: Path) -> None:
    """One page is enough for exit code 0; the others have rows with their errors."""
    paths = ("/de/fenster.html", "/nasty/gone", "/private/")
    crawled = crawl(tmp_path, "--urls", "\n".join([*(website.url + path for path in paths), UNREACHABLE]))
    rows = crawled.result.stdout

    assert crawled.result.returncode == 0
    assert list(crawled.items) == ["/de/fenster.html"]
    assert "Leinöl" in crawled.items["/de/fenster.html"]["markdown"]
    for remark in ("error: HTTP 404", "error: forbidden by robots.txt", "error: connection refused"):
        assert remark in rows


def test_nothing_reachable_is_exit_code_1(tmp_path: Path) -> None:
    result = run("--output", tmp_path, "--urls", UNREACHABLE)

    assert result.returncode == 1
    assert re.search(rf"^{UNREACHABLE} +error: connection refused$", result.stdout, re.MULTILINE)


def test_a_wrong_setting_ends_the_crawl_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("from example.settings import *\nDRIPPER_FALLBACK = 'perhaps'\n")
    program = (
        "import sys, runpy; sys.path[:0] = sys.argv[1:3]; import example.settings, wrong\n"
        "sys.modules['example.settings'] = wrong; sys.argv[1:] = ['--output', sys.argv[2]]\n"
        "runpy.run_path(sys.path[0] + '/crawl.py', run_name='__main__')"
    )
    result = python("-c", program, PROJECT, tmp_path)

    assert result.returncode == 1
    assert "DRIPPER_FALLBACK must be one of" in result.stderr
    assert "Traceback" not in result.stderr


# JavaScript


def test_without_a_chromium_the_user_learns_what_to_install(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path), "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "CHROMIUM": ""}
    result = run("--js", "--output", tmp_path, PLAYWRIGHT_BROWSERS_PATH=str(tmp_path), **nowhere)

    assert result.returncode == 1
    assert "apt-get install chromium" in result.stderr
    assert "playwright install chromium" in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(
    find_spec("scrapy_playwright") is None or find_chromium() is None, reason="needs scrapy-playwright and a Chromium"
)
def test_a_page_written_by_javascript_is_empty_until_it_is_rendered(tmp_path: Path) -> None:
    result = run("--js", "--output", tmp_path)
    items = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = {item["rendered"]: item["markdown"] for item in items}

    assert result.returncode == 0, result.stderr
    assert "a piano that nobody has tuned" in texts[True]
    assert "a piano that nobody has tuned" not in texts[False]


# The command line and the report


def test_help_shows_every_way_to_run_it() -> None:
    result = python(SCRIPT, "--help")  # in the same way as a user

    assert result.returncode == 0
    for words in ("--urls", "--js", "--spider", "--output", "examples:", "exit code"):
        assert words in result.stdout
