"""Each fault of the mutation benchmark can still be made in exactly one place of the code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_fault_has_one_place() -> None:
    """The code changes over time. `python benchmarks/mutations.py` tries all faults."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        mutations = importlib.import_module("mutations")
    finally:
        sys.path.pop(0)

    assert len(mutations.MUTATIONS) >= 25
    for one in mutations.MUTATIONS:
        source = (ROOT / one.file).read_text(encoding="utf-8")
        compile(mutations.mutated(source, one), one.file, "exec")
