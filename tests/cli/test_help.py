"""The help of every command."""

from __future__ import annotations

import re

import pytest

from scrapy_dripper.cli.entry import COMMANDS
from tests.cli.conftest import Run

ALL = [name.split() for name in COMMANDS if name != "rules"] + [["rules", "check"]]


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_a_command_teaches_by_examples_and_says_how_it_ends(command: list[str], run: Run) -> None:
    """Each has examples of its own command line, and its exit codes."""
    code, out, _ = run(*command, "--help")

    assert code == 0
    examples = out.partition("examples:\n")[2].partition("\n\n")[0]
    assert f"scrapy-dripper {' '.join(command)}" in examples
    codes = " ".join(out.partition("exit codes: ")[2].split())
    assert re.match(r"0 ", codes)
    assert {"2 ", "130 "} <= set(re.findall(r"\b(?:2|130) ", codes))


@pytest.mark.parametrize("asks", [True, False], ids=["--help", "bare"])
@pytest.mark.parametrize("command", [[], ["corpus"], ["rules"]], ids=" ".join)
def test_a_group_of_commands_lists_them(command: list[str], asks: bool, run: Run) -> None:
    """Without one of them, the list is on standard error, and the usage was wrong."""
    code, out, err = run(*command, *["--help"] * asks)

    assert code == (0 if asks else 2)
    listed = out if asks else err
    assert all(len(name) == 1 + len(command) or name[0] in listed for name in ALL if name[: len(command)] == command)
