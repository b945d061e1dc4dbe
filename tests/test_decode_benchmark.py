"""The benchmarks of the Qwen3 loop, on few pages: for what they write, not for the figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PREPARED = ROOT / "tests" / "engines" / "qwen3" / "prepared"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the benchmark as a user does."""
    command = [sys.executable, str(ROOT / "benchmarks" / "decode.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_proof_is_a_command(tmp_path: Path) -> None:
    """A row for each answer format, with no page that differs."""
    report = tmp_path / "proof.txt"
    done = run("--prove", "--cases", 3, "--most-blocks", 9, "--folders", PREPARED / "gqa", "--output", report)

    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in report.read_text(encoding="utf-8").splitlines() if line.startswith("gqa")]
    assert [row[1] for row in rows] == ["json", "json_space", "compact"]
    assert all(row[5:7] == ["0", "0"] for row in rows)


def test_time_is_beside_a_bare_prefill(tmp_path: Path) -> None:
    report = tmp_path / "time.txt"
    done = run("--time", PREPARED / "gqa", "--tokens", 100, "--blocks", 5, "--repeats", 1, "--output", report)

    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "a prompt of 100 tokens, 5 blocks" in text
    assert all(way in text for way in ("bare prefill", "(a) one token", "(b) forced runs", "(c) draft, 1.00 right"))


def test_the_plot_is_a_drawing(tmp_path: Path) -> None:
    """Valid SVG by itself, with every line in it."""
    code = (
        "import sys, pathlib; from decode_plot import Line, draw;"
        "draw([Line('20 blocks', [(0.5, 3, 200), (1.0, 1, 100)], 20.0),"
        "Line('60 blocks', [(0.5, 5, 900), (1.0, 1, 300)], 60.0)], pathlib.Path(sys.argv[1]))"
    )
    path = tmp_path / "plot.svg"
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT / "benchmarks", check=True)

    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//{*}polyline")) == 4
    assert {text.text for text in root.findall(".//{*}text")} >= {"20 blocks", "60 blocks", "forward passes"}
