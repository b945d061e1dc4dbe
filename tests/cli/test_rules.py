"""``scrapy-dripper rules check``, and rules on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.cli import rules as rules_command
from scrapy_dripper.config import Config

PAGE = """<html><body><h1>Prices</h1><p class=newsletter>Our best stories, every Friday</p>
<p class=price>Adults <b class=sum>12</b></p><p class=price>Children \x1b[31m8</p></body></html>"""
URL = "https://example.com/prices"


@pytest.fixture
def page(tmp_path: Path) -> str:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    return str(tmp_path / "page.html")


def rules(folder: Path, **kinds: object) -> str:
    """Write rules for example.com and return the path of the file."""
    (folder / "rules.json").write_text(json.dumps({"example.com": kinds}), encoding="utf-8")
    return str(folder / "rules.json")


def test_it_shows_which_rule_takes_which_blocks(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters, which a terminal would obey, are not shown."""
    code = main(["rules", "check", rules(tmp_path, drop=".newsletter", keep="p.price"), page, "--url", URL])

    out = capsys.readouterr().out.splitlines()
    assert out == [
        page,
        '  drop   example.com  .newsletter  1 block: "Our best stories, every Friday"',
        '  keep   example.com  p.price  2 blocks: "Adults 12", "Children \ufffd[31m8"',
    ]
    assert code == 0


@pytest.mark.parametrize(
    ("selector", "url", "words"),
    [
        (".gone", URL, "drop   example.com  .gone  nothing"),
        (".sum", URL, "nothing: it selects parts of blocks"),
        ("p", "https://other.example/", "no rule is for this page"),
    ],
)
def test_a_rule_that_takes_nothing_is_a_failure(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], selector: str, url: str, words: str
) -> None:
    assert main(["rules", "check", rules(tmp_path, drop=selector), page, "--url", url]) == 1
    assert words in "".join(capsys.readouterr())


def test_a_rule_for_some_of_the_pages_is_no_failure(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few rules apply to each page of a site. One that applies to none of them is named at the end."""
    (tmp_path / "other.html").write_text("<p class=ad>An offer</p><p>A text of some words</p>", encoding="utf-8")
    file = tmp_path / "rules.json"
    pages = [page, str(tmp_path / "other.html")]

    file.write_text(json.dumps({"*": {"drop": [".newsletter", ".ad"]}}), encoding="utf-8")
    assert main(["rules", "check", str(file), *pages]) == 0
    assert capsys.readouterr().out.count("nothing") == 2

    file.write_text(json.dumps({"*": {"drop": [".newsletter", ".gone"]}}), encoding="utf-8")
    assert main(["rules", "check", str(file), *pages]) == 1
    assert "drop * .gone: selects nothing on any of these pages" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"dropp": ".ad"}, "'example.com' has 'dropp'; did you mean drop?"),
     ({"drop": "p >"}, "'p >' of 'example.com' is not CSS")],
)  # fmt: skip
def test_a_wrong_rule_is_one_sentence_that_names_the_file(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, str], words: str
) -> None:
    assert main(["rules", "check", rules(tmp_path, **wrong), page]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert str(tmp_path / "rules.json") in line


def test_a_page_that_cannot_be_read_is_named(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.html").write_text("", encoding="utf-8")

    assert main(["rules", "check", rules(tmp_path, drop="p"), str(tmp_path / "empty.html")]) == 1
    assert "empty.html: empty_body" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "learn"])
def test_a_server_that_breaks_off_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ConnectionError("no valid answer")

    monkeypatch.setattr(rules_command, "read_source", broken)
    file = rules(tmp_path, drop="p")

    assert main(["rules", command, *([file] if command == "check" else ["-o", f"{file}.new"]), URL]) == 1
    assert f"{URL}: no valid answer" in capsys.readouterr().err


def test_a_selector_that_takes_for_ever_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is tried in a worker process first. The other pages are shown."""
    monkeypatch.setattr(rules_command, "Config", partial(Config, timeout=3))
    (tmp_path / "many.html").write_text(PAGE + "<p>x" * 5_000, encoding="utf-8")
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"*": {"drop": "//p[count(//p[count(//p) > 1]) > 1]"}}), encoding="utf-8")

    assert main(["rules", "check", str(file), str(tmp_path / "many.html"), str(tmp_path / "page.html")]) == 1
    out, err = capsys.readouterr()
    assert "many.html: timeout" in err
    assert "3 blocks" in out


def test_extract_takes_rules(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["extract", page, "-f", "text", "--url", URL, "--rules", rules(tmp_path, whole=".newsletter")])

    assert (code, capsys.readouterr().out) == (0, "Our best stories, every Friday\n")


def test_texts_are_shown_as_far_as_the_terminal_can(tmp_path: Path) -> None:
    """The code page of a pipe on Windows lacks most characters."""
    (tmp_path / "page.html").write_text("<p class=x>A \u65e5\u672c \u00e9 text</p>", encoding="utf-8")
    arguments = ["rules", "check", rules(tmp_path, drop=".x"), "page.html", "--url", URL]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy_dripper", *arguments],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "cp1252:strict"},
    )

    assert done.returncode == 0, done.stderr
    assert b'"A ?? \xe9 text"' in done.stdout


def site(folder: Path, pages: int) -> list[str]:
    """Write pages with their URLs, and return their paths."""
    folder.mkdir()
    for number in range(pages):
        text = f"This is the text of page {number}, and it says what {number} times {number} is, in some words. " * 9
        (folder / f"{number}.html").write_text(
            f"<html><body><nav><a href=/>Home</a></nav><div class=story><h1>Page {number}</h1><p>{text}</p></div>"
            "<div class='box side'><p>Our best stories, every Friday</p></div></body></html>"
        )
    return [str(folder / f"{number}.html") for number in range(pages)]


def test_rules_are_learnt_and_can_be_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They give the labels of the engine, whatever another engine says, and what a person adds counts as well."""
    page = site(tmp_path / "pages", 1)[0]
    file = tmp_path / "rules.toml"

    assert main(["rules", "learn", page, "--url", URL, "-o", str(file)]) == 0
    found = file.read_text()
    assert '["example.com"]' in found
    assert '    "div.story",' in found.partition("keep = [")[2]
    assert '    "div.box.side",' in found.partition("drop = [")[2].partition("]")[0]
    assert main(["rules", "check", str(file), page, "--url", URL]) == 0
    assert main(["rules", "learn", page, "--url", URL, "-o", str(file)]) == 2
    assert "exists: name another file" in capsys.readouterr().err

    file.write_text(found.replace("drop = [", 'drop = [\n    "h1",'))
    all_main = ("--engine", "tests.corpus.corpus_engines.AllMain", "--rules", str(file), "--title", "drop")
    assert main(["extract", page, "--url", URL, "--format", "text", *all_main]) == 0
    text = capsys.readouterr().out
    assert "says what 0 times 0 is" in text
    assert "Friday" not in text
    assert "Page 0" not in text


def test_the_site_of_saved_pages(tmp_path: Path) -> None:
    """It is that of ``--url`` for all files, or the one that they declare, by which their rules are also checked."""
    pages, given, declared = site(tmp_path / "pages", 3), tmp_path / "given.toml", tmp_path / "declared.toml"
    assert main(["rules", "learn", *pages, "--url", "https://example.com/", "-o", str(given)]) == 0
    for number, page in enumerate(map(Path, pages)):
        page.write_text(f"<link rel=canonical href=https://example.com/{number}>{page.read_text()}")

    assert main(["rules", "learn", *pages, "-o", str(declared)]) == 0
    assert declared.read_text() == given.read_text()
    assert "on 3 of its pages" in given.read_text()
    assert main(["rules", "check", str(declared), *pages]) == 0


def test_names_on_pages_cannot_control_a_terminal_or_a_rule(tmp_path: Path) -> None:
    """Classes are escaped, as CSS and as TOML, and the file selects what they name."""
    page = Path(site(tmp_path / "pages", 1)[0])
    page.write_text(page.read_text().replace("class=story", 'class="st&#x9b;31m&#x7f; ]] &quot; , >"'))
    file = tmp_path / "rules.toml"

    assert main(["rules", "learn", str(page), "--url", URL, "-o", str(file)]) == 0
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", file.read_text(encoding="utf-8"))
    assert main(["rules", "check", str(file), str(page), "--url", URL]) == 0


def test_pages_from_which_no_rules_can_be_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their site is unknown, or the engine finds nothing on them. No file is written."""
    (tmp_path / "empty.html").write_text("<html><body><nav><a href=/>Home</a></nav></body></html>")
    out = str(tmp_path / "rules.toml")

    assert main(["rules", "learn", *site(tmp_path / "pages", 2), str(tmp_path / "none.html"), "-o", out]) == 1
    said = capsys.readouterr().err
    assert said.count("its URL is unknown") == 2
    assert "none.html" in said
    assert main(["rules", "learn", str(tmp_path / "empty.html"), "--url", URL, "-o", out]) == 1
    assert "there is no page to learn from" in capsys.readouterr().err
    page = site(tmp_path / "more", 1)[0]
    method = ("--engine", "r4", "--max-blocks", "2")
    assert main(["rules", "learn", page, "--url", URL, "-o", out, *method]) == 1
    assert "over DRIPPER_LIMITS" in capsys.readouterr().err
    Path(page).write_text(Path(page).read_text().replace("</body>", "<b></b>" * 25_000 + "<p>More of it"))
    assert main(["rules", "learn", page, "--url", URL, "-o", out, *method[:2]]) == 1
    assert "too many or too long to learn from" in capsys.readouterr().err
    assert not Path(out).exists()
