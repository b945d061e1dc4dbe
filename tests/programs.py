"""Python in a process of its own, which finds what the tests import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PATIENCE = 300


def python(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, with the import path of the tests. Return its exit code and what it has printed."""
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        cwd=cwd,
        check=False,
    )
