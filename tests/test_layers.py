"""The layers of the package in ``[tool.importlinter]`` of pyproject.toml: which module may import which."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(find_spec("importlinter") is None, reason="needs import-linter")
def test_no_import_runs_up_or_in_a_circle() -> None:
    """Imports inside functions count as well; a new top-level module must be given a layer."""
    lint(ROOT)


def lint(folder: Path) -> None:
    """Hold the contracts in the pyproject.toml of a folder."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
