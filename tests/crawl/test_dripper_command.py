"""``scrapy dripper URL``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.crawl.crawling import EXTENSIONS, Site, page

MAIN = "MAIN text of page 1"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """Run the command outside of any project. The fallback replaces the engine."""
    return subprocess.run(command(*args), capture_output=True, text=True, encoding="utf-8")


def command(*args: str) -> list[str]:
    """Return the command line of the command."""
    settings = {
        "COMMANDS_MODULE": "scrapy_dripper.commands",
        "EXTENSIONS_BASE": EXTENSIONS,
        "DRIPPER_LIMITS": {"blocks": "1"},
        "DRIPPER_FALLBACK": "html",
    }
    # Not with -s: Scrapy looks for its commands before it reads that.
    code = (
        "import sys; from scrapy.cmdline import execute; from scrapy.settings import Settings; "
        f"execute(['scrapy', 'dripper', *sys.argv[1:]], Settings({settings!r}))"
    )
    return [sys.executable, "-c", code, *args]


@pytest.mark.parametrize(("form", "expected"), [("html", f"<p>{MAIN}"), ("json", '"main_html": "<html>')])
def test_it_prints_the_main_content(site: Site, form: str, expected: str) -> None:
    """It prints several formats. Standard error names the source if it was not the model."""
    done = run("-f", form, site.url("/page/1"))

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

    pdf, gone, refused = run(site.url("/pdf")), run(site.url("/gone")), run("http://127.0.0.1:1/")

    assert (pdf.stdout, pdf.returncode, gone.returncode, refused.returncode) == ("", 1, 1, 1)
    assert "not an HTML page" in pdf.stderr
    assert "HTTP 404" in gone.stderr
    assert "http://127.0.0.1:1/: " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_closed_pipe_is_not_an_error(site: Site) -> None:
    """With ``| head -1``, there is no complaint, although the page is larger than the pipe's buffer."""
    paragraphs = "".join(f"<p>Paragraph {number} has a sentence to say.</p>" for number in range(10_000))
    site.routes["/long"] = ("text/html", f"<html><body>{paragraphs}</body></html>".encode())

    process = subprocess.Popen(command(site.url("/long")), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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


def test_without_a_url_it_says_how_it_is_used() -> None:
    """This is the behaviour of every Scrapy command."""
    done = run()

    assert done.returncode == 2
    assert "[options] <url>" in done.stdout + done.stderr


def test_the_help_teaches_by_examples() -> None:
    out = run("--help").stdout

    assert "scrapy dripper https://example.com/story -f json" in out
    assert "exit codes: 0 " in out
