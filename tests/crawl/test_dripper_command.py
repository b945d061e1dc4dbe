"""``scrapy dripper URL``, and what all of the command refuses."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lxml.html import fromstring

from scrapy_dripper.cli.inputs import Source, read_source
from tests.crawl.crawling import Site, answer, page
from tests.crawl.processes import COMMAND, Done, run, scrapy_command

MAIN = "MAIN text of page 1"


def command(*args: str) -> Done:
    """Run the command outside of any project. The fallback replaces the engine."""
    return run(scrapy_command, ["dripper", *args], COMMAND)


@pytest.mark.parametrize(("form", "expected"), [("html", f"<p>{MAIN}"), ("json", '"main_html": "<html>')])
def test_it_prints_the_main_content(site: Site, form: str, expected: str) -> None:
    """It prints several formats. Standard error names the source if it was not the model."""
    done = command("-f", form, site.url("/page/1"))

    assert expected in done.stdout
    assert "fallback:html, because of oversize" in done.stderr
    assert done.returncode == 0
    if form == "json":
        assert json.loads(done.stdout)["source"] == "fallback:html"


def test_it_says_why_there_is_nothing(site: Site) -> None:
    """The reason is on standard error, and the exit status is 1."""
    site.routes["/pdf"] = ("text/html", b"%PDF-1.4")
    site.routes["/gone"] = ("text/html", page(1).encode())
    site.status["/gone"] = 404

    site.raw["/cut"] = [(answer(b"<p>MAIN", length=99), "close")]
    long = site.url("/long?" + "x" * 3_000)

    pdf, gone, cut = (command(site.url(path)) for path in ("/pdf", "/gone", "/cut"))
    refused, too_long = command("http://127.0.0.1:1/"), command(long)

    assert [one.returncode for one in (pdf, gone, cut, refused, too_long)] == [1] * 5
    assert pdf.stdout == ""
    assert f"{site.url('/cut')}: ResponseDataLossError" in cut.stderr
    assert f"{long}: a URL of {len(long):,} characters, over URLLENGTH_LIMIT = 2,083" in too_long.stderr
    assert "not an HTML page" in pdf.stderr
    assert "HTTP 404" in gone.stderr
    assert "http://127.0.0.1:1/: " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_closed_pipe_is_not_an_error(site: Site) -> None:
    """With ``| head -1``, there is no complaint, although the page is larger than the pipe's buffer."""
    paragraphs = "".join(f"<p>Paragraph {number} has a sentence to say.</p>" for number in range(10_000))
    site.routes["/long"] = ("text/html", f"<html><body>{paragraphs}</body></html>".encode())

    code = (
        "import sys; from tests.crawl.processes import COMMAND, scrapy_command; "
        "scrapy_command(['dripper', sys.argv[1]], COMMAND)"
    )
    arguments = [sys.executable, "-c", code, site.url("/long")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait(60)

    assert first == "Paragraph 0 has a sentence to say.\n"
    assert "Traceback" not in err
    assert "Broken pipe" not in err


SPIDERS = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = {"DRIPPER_MARKDOWN": {"links": "drop"}}

    async def start(self):
        yield scrapy.Request(self.first)

    def parse(self, response):
        yield {"url": response.url}
        yield response.follow("/page/2")
"""


PROJECT = {
    **COMMAND,
    "ADDONS": {"scrapy_dripper.Addon": 500},
    "SPIDER_MODULES": ["spiders"],
    "FEEDS": {"feed.jsonl": {"format": "jsonlines"}},
}


def in_project(folder: Path, *args: str) -> Done:
    """Run the command in a project with one spider."""
    (folder / "spiders.py").write_text(SPIDERS, encoding="utf-8")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = project\n", encoding="utf-8")
    return run(scrapy_command, ["dripper", *args], PROJECT, cwd=folder)


def test_a_spider_gives_the_page_its_settings(site: Site, tmp_path: Path) -> None:
    """Its callback does not run, nothing else is downloaded, and feeds are not written."""
    done = in_project(tmp_path, site.url("/page/1"), "--spider", "pages", "-a", "day=monday")

    assert done.stdout.startswith(f"Menu\n\n{MAIN}")
    assert (done.returncode, site.seen.count("/page/2")) == (0, 0)
    assert not (tmp_path / "feed.jsonl").exists()


URL = "https://a.example/"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "[options] <url>"),  # as every command of Scrapy
        (["example.com/x"], "expected a URL, such as https://example.com/story (got example.com/x)"),
        ([URL, "https://b.example/"], "expected one URL, such as"),
        ([URL, "-s", "DRIPPER_FAVOR=recal"], "DRIPPER_FAVOR must be one of"),
        ([URL, "-s", "DRIPPER_MODEL=none-there"], "No tagger model in none-there"),
        ([URL, "-a", "day=1"], "-a needs a --spider"),
        ([URL, "--spider", "page"], "no spider 'page'; the project has pages"),
        ([URL, "--spider", "pages", "-a", "day"], "argument -a: expected NAME=VALUE"),
        ([URL, "--inspect", "-f", "json"], "--inspect takes no --format"),
        ([URL, "--open"], "--open needs --inspect"),
        ([URL, "--follow"], "--follow needs a folder or a file for the pages, as in -o pages/"),
        ([URL, "-o", "x"], "--output needs --follow"),
        ([URL, "--follow", "-o", "x", "-f", "json"], "--follow has its own spider, and writes Markdown"),
        ([URL, "--follow", "-o", "x", "--max-pages", "0"], "expected a whole number of at least 1 (got '0')"),
        # A folder of that name would hide the pages.
        ([URL, "--follow", "-o", "pages.csv"], "NAME.jsonl or NAME.parquet"),
        ([URL, "--follow", "-o", "x", "--allow", "["], "'[' is not a regular expression"),
        ([URL, "--follow", "-o", __file__], f"cannot write {__file__}: Not a directory"),
    ],
)
def test_what_cannot_begin_gets_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = in_project(tmp_path, *arguments)

    assert (done.stdout if arguments else "", done.returncode) == ("", 2)
    assert message in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "scrapy.cfg",
        "spiders.py",
    ]


@pytest.mark.parametrize(
    ("settings", "source", "asks_again"),
    [
        ({"DRIPPER_WARC": "crawl.warc"}, "in the archive of the crawl", False),
        ({"HTTPCACHE_ENABLED": True}, "in Scrapy's cache", False),
        ({}, "downloaded again", True),
    ],
    ids=["archive", "cache", "neither"],
)
def test_the_report_of_a_crawl_names_the_command_that_shows_a_page(
    site: Site, tmp_path: Path, settings: dict[str, object], source: str, asks_again: bool
) -> None:
    """It takes the page from where the crawl has kept it, and leaves the report as it is."""
    if "DRIPPER_WARC" in settings:
        pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)
    settings = {**PROJECT, **settings, "DRIPPER_REPORT": "report.html"}
    in_project(tmp_path, site.url("/page/1"))  # which writes the project
    site.seen.clear()
    run(scrapy_command, ["crawl", "pages", "-a", f"first={site.url('/page/1')}"], settings, cwd=tmp_path)
    report = (tmp_path / "report.html").read_bytes()
    root = fromstring(report.decode())
    words = shlex.split(root.get_element_by_id("command").get("data-start").replace(" --open", ""))

    done = run(scrapy_command, [*words[1:], site.url("/page/1"), "-o", "looks"], settings, cwd=tmp_path)

    assert source in root.text_content()
    assert (done.returncode, done.stderr) == (0, "")
    (view,) = (tmp_path / "looks").glob("*.inspect.html")
    assert done.stdout == f"looks/{view.name}\n"
    assert MAIN in view.read_text(encoding="utf-8")
    saved = view.with_name(view.name.replace(".inspect", ""))
    assert saved.read_bytes().endswith(page(1).encode())
    assert read_source(Source(str(saved), ""), 10_000).url == site.url("/page/1")
    assert site.seen.count("/page/1") == 1 + asks_again
    assert (tmp_path / "report.html").read_bytes() == report
    assert len([*tmp_path.glob("*.warc")]) == ("DRIPPER_WARC" in settings)


def test_the_help_teaches_by_examples(tmp_path: Path) -> None:
    out = in_project(tmp_path, "--help").stdout

    assert "scrapy dripper https://example.com/story --spider news " in out
    assert "exit codes: 0 " in out
