"""Rules on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_dripper.cli import main

PAGE = """<html><body><h1>Prices</h1><p class=newsletter>Our best stories, every Friday</p>
<p class=price>Adults <b class=sum>12</b></p></body></html>"""


def extract(folder: Path, **kinds: object) -> int:
    """Extract the page with rules for example.com, and return the exit code."""
    page, rules = folder / "page.html", folder / "rules.json"
    page.write_text(PAGE, encoding="utf-8")
    rules.write_text(json.dumps({"example.com": kinds}), encoding="utf-8")
    return main(["extract", str(page), "-f", "text", "--url", "https://example.com/prices", "--rules", str(rules)])


def test_extract_takes_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(tmp_path, whole=".newsletter") == 0
    assert capsys.readouterr().out == "Our best stories, every Friday\n"


@pytest.mark.parametrize(
    ("kind", "selector", "words"),
    [
        ("dropp", ".ad", "'example.com' has 'dropp'; did you mean drop?"),
        ("drop", "p >", "'p >' of 'example.com' is not CSS"),
    ],
)
def test_a_wrong_rule_is_one_sentence(
    kind: str, selector: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file, too."""
    with pytest.raises(SystemExit) as ended:
        extract(tmp_path, **{kind: selector})

    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert words in line
    assert str(tmp_path / "rules.json") in line
