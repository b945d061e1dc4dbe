"""The help of every command, and the commands of other distributions."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from scrapy_dripper.cli import COMMANDS, ENTRY_POINTS, LABORATORY
from scrapy_dripper.cli.console import REPOSITORY
from tests.cli.conftest import Run

ALL = [name.split() for name in COMMANDS if name != "rules"] + [["rules", "check"]]


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_a_command_teaches_by_examples_and_says_how_it_ends(command: list[str], run: Run) -> None:
    check(command, run)


def check(command: list[str], run: Run) -> None:
    """A command has examples of its own command line, and its exit codes."""
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


class Installed:
    """Entry points of another distribution, and how often they were looked up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **commands: str) -> None:
        self.lookups = 0
        self.points = [EntryPoint(name.replace("_", "."), value, ENTRY_POINTS) for name, value in commands.items()]
        monkeypatch.setattr("scrapy_dripper.cli.entry_points", self.look_up)

    def look_up(self, *, group: str) -> list[EntryPoint]:
        """Return the entry points, as :mod:`importlib.metadata` does."""
        assert group == ENTRY_POINTS
        self.lookups += 1
        return self.points


def add_echo(commands: Any) -> None:
    """Add a command, as another distribution does."""
    commands.add_parser("echo", help="say it again").set_defaults(run=lambda _: print("again") or 0)


def test_other_distributions_add_commands_and_commands_of_a_group(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked up for the help, and for a command that is none of ours; ours cannot be replaced."""
    here = f"{__name__}:add_echo"
    installed = Installed(monkeypatch, echo=here, corpus_echo=here, extract="nowhere:at_all")

    assert [run(*words).out for words in (["echo"], ["corpus", "echo"])] == ["again\n", "again\n"]
    assert ["say it again" in run(*words).out for words in (["--help"], ["corpus", "--help"])] == [True, True]
    assert installed.lookups == 4
    assert [run(*words, "--help").code for words in (["extract"], ["corpus", "extract"])] == [0, 0]
    assert installed.lookups == 4


@pytest.mark.parametrize("value", ["nowhere:at_all", "re:nothing", "re:purge", "os:abort.nothing"])
@pytest.mark.parametrize("words", [["broken"], ["--help"]], ids=" ".join)
def test_a_broken_command_of_another_distribution_is_one_line(
    words: list[str], value: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the help still lists the others."""
    Installed(monkeypatch, broken=value)
    code, out, err = run(*words)

    assert code == (0 if out else 2)
    assert ("extract" in out) == (words == ["--help"])
    assert re.fullmatch(r"scrapy-dripper: the command broken of another distribution does not load \(.+\)\n", err)


@pytest.mark.parametrize("command", LABORATORY)
def test_a_command_of_the_laboratory_that_is_missing_says_how_to_install_it(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names a folder and where to get it, and no name on a package index, which anybody could register."""
    Installed(monkeypatch)
    code, _, err = run(*command.split(), "pages/")

    assert code == 2
    assert err == (
        f"scrapy-dripper: {command} is a command of the laboratory, which is not installed: run pip install -e . -e "
        f"lab in a clone of {REPOSITORY}\n"
    )
