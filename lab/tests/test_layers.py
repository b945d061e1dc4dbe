"""The modules of the package that the laboratory imports are those in ``[tool.importlinter]`` of its pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_layers import lint

pytest.importorskip("importlinter")


def test_the_laboratory_imports_only_what_is_listed() -> None:
    """Imports inside functions count as well, and nothing is listed that is not imported."""
    lint(Path(__file__).parents[1])
