"""The extras of the package for a GPU install what exported graphs need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scrapy_dripper_lab.export.head import _RUNTIMES

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_the_extras_install_what_graphs_need() -> None:
    """[gpu] installs at least the newest version that a graph requires. [gpu-cuda12] has the newest that supports CUDA
    12."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    newest = max(_RUNTIMES.values(), key=lambda one: [int(part) for part in one.split(".")])

    assert [f">={newest}," in one for one in extras["gpu"] if "runtime" in one] == [True]
    assert [",<1.26" in one for one in extras["gpu-cuda12"] if "runtime" in one] == [True]
