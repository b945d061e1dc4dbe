"""A short soak test. What benchmarks/soak.py checks for 50,000 pages holds for the first 1,000."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the benchmark reads /proc")


@linux
def test_a_crawl_ends_as_it_began(tmp_path: Path) -> None:
    """Every response becomes one item with its own text, and memory does not grow with the number of pages.

    Speed is not judged here, nor RSS, which a crawl of so few pages has not filled.
    """
    output = tmp_path / "soak.txt"
    command = [sys.executable, str(BENCHMARKS / "soak.py"), "--responses", "1000", "--size", "tiny"]
    command += ["--steady", "--processes", "2"]
    done = subprocess.run([*command, "--output", str(output)], capture_output=True, text=True, check=False)

    report = output.read_text(encoding="utf-8")
    lines = [re.split(r"  +", line) for line in report.splitlines()]
    found = {line[0]: line[1:] for line in lines if len(line) == 3 and line[2] in ("ok", "FAILED")}
    counts = "malloc in use,threads,files,children,worker_threads,worker_files,jobs,responses,futures".split(",")
    counts.append("Python objects")
    judged = [*(f"growth of {name}" for name in counts), "responses", "lost", "twice", "foreign", "errors"]
    assert {name: found[name][1] for name in judged} == dict.fromkeys(judged, "ok"), report + done.stderr
    assert found["responses"][0] == "1200 of 1200"
    assert "What fell back: nothing." in report
