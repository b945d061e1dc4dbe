"""The libraries that run the model report to no one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_RUN = """
from scrapy_dripper import Extractor

extractor = Extractor()
print(extractor.extract(["<p>A page with some text in it, and nothing else at all.</p>"])[0].source)
"""


def test_nothing_is_left_behind_for_somebody_to_collect(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        [sys.executable, "-c", _RUN], env=environment, capture_output=True, text=True, timeout=120, check=True
    )

    assert done.stdout.strip() == "tagger"
    assert [path for path in tmp_path.rglob("*") if "Microsoft" in str(path)] == []
