"""``scrapy-dripper rules check`` and ``learn``, and rules on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from scrapy_dripper.cli import rules as rules_command
from scrapy_dripper.config import Config
from tests.cli.conftest import Run

PAGE = """<html><body><h1>Prices</h1><p class=newsletter>Our best stories, every Friday</p>
<p class=price>Adults <b class=sum>12</b></p><p class=price>Children \x1b[31m8</p></body></html>"""
URL = "https://example.com/prices"
LEARN = ("rules", "learn", "-o", "rules.toml")


@pytest.fixture
def page(here: Path) -> str:
    Path("page.html").write_text(PAGE, encoding="utf-8")
    return "page.html"


def rules(site: str = "example.com", **kinds: object) -> str:
    """Write rules for a site and return the name of the file."""
    Path("rules.json").write_text(json.dumps({site: kinds}), encoding="utf-8")
    return "rules.json"


def test_it_shows_which_rule_takes_which_blocks(page: str, run: Run) -> None:
    """Control characters, which a terminal would obey, are not shown."""
    done = run("rules", "check", rules(drop=".newsletter", keep="p.price"), page, "--url", URL)

    assert done.out.splitlines() == [
        page,
        '  drop   example.com  .newsletter  1 block: "Our best stories, every Friday"',
        '  keep   example.com  p.price  2 blocks: "Adults 12", "Children \ufffd[31m8"',
    ]
    assert done.code == 0


@pytest.mark.parametrize(
    ("selector", "url", "words"),
    [
        (".gone", URL, "drop   example.com  .gone  nothing"),
        (".sum", URL, "nothing: it selects parts of blocks"),
        ("p", "https://other.example/", "no rule is for this page"),
    ],
)
def test_a_rule_that_takes_nothing_is_a_failure(page: str, run: Run, selector: str, url: str, words: str) -> None:
    done = run("rules", "check", rules(drop=selector), page, "--url", url)

    assert (done.code, words in done.out + done.err) == (1, True)


def test_a_rule_for_some_of_the_pages_is_no_failure(page: str, run: Run) -> None:
    """Few rules apply to each page of a site. One that applies to none of them is named at the end."""
    Path("other.html").write_text("<p class=ad>An offer</p><p>A text of some words</p>", encoding="utf-8")

    some = run("rules", "check", rules("*", drop=[".newsletter", ".ad"]), page, "other.html")
    none = run("rules", "check", rules("*", drop=[".newsletter", ".gone"]), page, "other.html")

    assert (some.code, some.out.count("nothing"), none.code) == (0, 2, 1)
    assert "drop * .gone: selects nothing on any of these pages" in none.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"dropp": ".ad"}, "'example.com' has 'dropp'; did you mean drop?"),
     ({"drop": "p >"}, "'p >' of 'example.com' is not CSS")],
)  # fmt: skip
def test_a_wrong_rule_is_one_sentence_that_names_the_file(
    page: str, run: Run, wrong: dict[str, str], words: str
) -> None:
    done = run("rules", "check", rules(**wrong), page)

    assert (done.code, done.err.count("\n"), "rules.json" in done.err) == (2, 1, True)
    assert words in done.err


def test_a_page_that_cannot_be_read_is_named(here: Path, run: Run) -> None:
    Path("empty.html").write_text("", encoding="utf-8")

    done = run("rules", "check", rules(drop="p"), "empty.html")

    assert (done.code, "empty.html: empty_body" in done.err) == (1, True)


def test_a_selector_that_takes_for_ever_is_given_up(page: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is tried in a worker process first. The other pages are shown."""
    monkeypatch.setattr(rules_command, "Config", partial(Config, timeout=3))
    Path("many.html").write_text(PAGE + "<p>x" * 5_000, encoding="utf-8")

    done = run("rules", "check", rules("*", drop="//p[count(//p[count(//p) > 1]) > 1]"), "many.html", page)

    assert done.code == 1
    assert "many.html: timeout" in done.err
    assert "3 blocks" in done.out


def test_texts_are_shown_as_far_as_the_terminal_can(here: Path) -> None:
    """The code page of a pipe on Windows lacks most characters."""
    Path("page.html").write_text("<p class=x>A \u65e5\u672c \u00e9 text</p>", encoding="utf-8")
    arguments = ["rules", "check", rules(drop=".x"), "page.html", "--url", URL]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy_dripper", *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "cp1252:strict"},
    )

    assert done.returncode == 0, done.stderr
    assert b'"A ?? \xe9 text"' in done.stdout


def site(folder: str, count: int) -> list[Path]:
    """Write pages with their URLs, and return their paths."""
    Path(folder).mkdir()
    paths = [Path(folder, f"{number}.html") for number in range(count)]
    for number, path in enumerate(paths):
        text = f"This is the text of page {number}, and it says what {number} times {number} is, in some words. " * 9
        path.write_text(
            f"<html><body><nav><a href=/>Home</a></nav><div class=story><h1>Page {number}</h1><p>{text}</p></div>"
            "<div class='newsletter-signup side'><p>Our best stories, every Friday</p></div></body></html>"
        )
    return paths


def test_rules_are_learnt_and_can_be_edited(here: Path, run: Run) -> None:
    """They give the labels of the engine, whatever another engine says, and what a person adds counts as well."""
    (page,) = site("pages", 1)
    file = Path("rules.toml")

    assert run(*LEARN, page, "--url", URL).code == 0
    found = file.read_text()
    assert '["example.com"]' in found
    assert '    "div.story",' in found.partition("keep = [")[2]
    assert '    "div.newsletter-signup.side",' in found.partition("drop = [")[2].partition("]")[0]
    assert run("rules", "check", file, page, "--url", URL).code == 0
    again = run(*LEARN, page, "--url", URL)
    assert (again.code, "exists: name another file" in again.err) == (2, True)

    file.write_text(found.replace("drop = [", 'drop = [\n    "h1",'))
    all_main = ("--engine", "tests.workers.engines.AllMain", "--rules", file, "--title", "drop")
    text = run("extract", page, "--url", URL, "--format", "text", *all_main).out
    assert "says what 0 times 0 is" in text
    assert "Friday" not in text
    assert "Page 0" not in text


def test_the_site_of_saved_pages(here: Path, run: Run) -> None:
    """It is that of ``--url`` for all files, or the one that they declare, by which their rules are also checked."""
    pages = site("pages", 3)
    assert run(*LEARN, *pages, "--url", "https://example.com/").code == 0
    given = Path("rules.toml").rename("given.toml").read_text()
    for number, page in enumerate(pages):
        page.write_text(f"<link rel=canonical href=https://example.com/{number}>{page.read_text()}")

    assert run(*LEARN, *pages).code == 0
    assert Path("rules.toml").read_text() == given
    assert "on 3 of its pages" in given
    assert run("rules", "check", "rules.toml", *pages).code == 0


def test_names_on_pages_cannot_control_a_terminal_or_a_rule(here: Path, run: Run) -> None:
    """Classes are escaped, as CSS and as TOML, and the file selects what they name."""
    (page,) = site("pages", 1)
    page.write_text(page.read_text().replace("class=story", 'class="st&#x9b;31m&#x7f; ]] &quot; , >"'))

    assert run(*LEARN, page, "--url", URL).code == 0
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", Path("rules.toml").read_text(encoding="utf-8"))
    assert run("rules", "check", "rules.toml", page, "--url", URL).code == 0


def test_pages_from_which_no_rules_can_be_learnt(here: Path, run: Run) -> None:
    """Their site is unknown, or the engine finds nothing on them. No file is written."""
    Path("empty.html").write_text("<html><body><nav><a href=/>Home</a></nav></body></html>")
    (page,) = site("more", 1)
    Path("large.html").write_text(page.read_text().replace("</body>", "<b></b>" * 25_000 + "<p>More of it"))

    unknown = run(*LEARN, *site("pages", 2), "none.html")
    assert (unknown.code, unknown.err.count("its URL is unknown"), "none.html" in unknown.err) == (1, 2, True)
    for arguments, words in (
        (["empty.html"], "there is no page to learn from"),
        ([page, "--engine", "r4", "--max-blocks", "2"], "over DRIPPER_LIMITS"),
        (["large.html", "--engine", "r4"], "too many or too long to learn from"),
    ):
        done = run(*LEARN, *arguments, "--url", URL)
        assert (done.code, words in done.err) == (1, True)
    assert not Path("rules.toml").exists()
