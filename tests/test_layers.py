"""The rooms of the package, and who may import whom, as ``[tool.importlinter]`` in pyproject.toml says."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(find_spec("importlinter") is None, reason="needs import-linter")
def test_no_import_runs_up_or_in_a_circle() -> None:
    """Imports inside functions count as well; a new module at the top has to be given a layer."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
