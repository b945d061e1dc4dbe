"""Names, URLs and error messages come from servers and archives. Control characters in them are not printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.characters import to_json
from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import say, why
from scrapy_dripper.commands.dripper import Command
from scrapy_dripper.learning.metrics import aligned

EVIL = "a\x1b]0;owned\x07\x1b[31m\x9b2J\rb"
controls = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]").findall


def test_messages_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing files, errors, JSON and the lines above texts have none. A line feed does not end such a line."""
    for name in "xy":
        (tmp_path / f"{name}{EVIL}\n.html").write_text("<p>Words.</p>")
    for form in ("text", "markdown", "jsonl"):
        main(["extract", f"no{EVIL}.html", str(tmp_path), "-f", form])
    say(why(OSError(EVIL)))
    Command().complain(f"http://x/{EVIL}", EVIL)
    out, err = capsys.readouterr()

    assert controls(out) == controls(err) == []
    assert "scrapy-dripper: a" in err
    assert sum(line.startswith("<!-- ") and line.endswith(" -->") for line in out.splitlines()) == 2


def test_tables() -> None:
    """A name in a table, such as a site's, has no controls, and stays in its line."""
    assert aligned(["site", "n"], [[f"a\n{EVIL}", "1"], ["b", "2"]]).count("\n") == 2
    assert controls(aligned(["site"], [[EVIL]])) == []


@given(st.text(), st.sampled_from([None, 2]))
def test_json(text: str, indent: int | None) -> None:
    """JSON for a terminal escapes all that controls it, and is the same value."""
    written = to_json({"id": text + EVIL}, indent)
    assert controls(written) == []
    assert json.loads(written) == {"id": text + EVIL}
