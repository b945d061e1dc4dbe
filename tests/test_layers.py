"""The rooms of the package, and who may import whom, as ``[tool.importlinter]`` in pyproject.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_no_import_runs_up_or_in_a_circle(capsys: pytest.CaptureFixture[str]) -> None:
    """Imports inside functions count as well; a new module at the top has to be given a layer."""
    linter = pytest.importorskip("importlinter.cli", reason="needs import-linter")

    status = linter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)

    assert status == linter.EXIT_STATUS_SUCCESS, capsys.readouterr().out
