"""The command line of the export, as far as nothing is exported."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from scrapy_dripper.cli import main
from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper_lab.cli import export as export_command
from scrapy_dripper_lab.export import build


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
            for flag, value in {
                "--context": "0",
                "--truncate-chars": "-1",
                "--dtype": "int4",
                "--weight-format": "fp8",
            }.items()
        ),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and the message says what was expected."""
    try:
        code = main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error comes before anything is read or downloaded."""
    monkeypatch.setattr(build, "find_spec", lambda module: None)
    assert main(["export", "owner/model", str(tmp_path / "out")]) == 2
    assert "pip install -e . -e 'lab[export]' in a clone of" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_can_be_chosen_is_what_there_is() -> None:
    """The names are in two places, because --help must work without the packages of the engine."""
    assert set(export_command.ANSWERS) == set(FORMATS)
