"""The command line of the export, as far as nothing is exported."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper_lab.cli import export as export_command
from scrapy_dripper_lab.export import build
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export"], "expected MODEL and OUT, or --check FOLDER"),
        (["export", "model"], "expected MODEL and OUT, or --check FOLDER"),
        (["export", "model", "out", "--check", "folder"], "--check takes a prepared folder, and no MODEL, OUT or"),
        (["export", "--check", "folder", "--device", "cpu"], "--check takes a prepared folder, and no MODEL, OUT or"),
        (["export", "--check", "missing"], "manifest.json is missing"),
        *(
            (["export", "model", "out", flag, value], f"argument {flag}: ")
            for flag, value in zip(
                ("--context", "--truncate-chars", "--dtype", "--weight-format"), ("0", "-1", "int4", "fp8"), strict=True
            )
        ),
    ],
)
def test_usage(arguments: list[str], message: str, run: Run) -> None:
    """The exit code is 2, and the message says what was expected."""
    done = run(*arguments)
    assert (done.code, message in done.err) == (2, True)


def test_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The error comes before anything is read or downloaded."""
    monkeypatch.setattr(build, "find_spec", lambda module: None)
    done = run("export", "owner/model", tmp_path / "out")
    assert (done.code, "pip install -e . -e 'lab[export]' in a clone of" in done.err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_what_can_be_chosen_is_what_there_is() -> None:
    """The names are in two places, because --help must work without the packages of the engine."""
    assert set(export_command.ANSWERS) == set(FORMATS)
