"""The benchmarks of the Qwen3 loop on few pages: what they write, not the figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PREPARED = ROOT / "tests" / "engines" / "qwen3" / "prepared"


def run(*arguments: object, script: str = "decode.py") -> subprocess.CompletedProcess[str]:
    """Run the benchmark as a user does."""
    command = [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Annotated pages: short ones, and one that is too long for a prompt."""
    for folder in ("html", "ground-truth"):
        (tmp_path / folder).mkdir()
    for number, lines in enumerate([3, 4, 150, 5]):
        texts = [f"A quiet line number {k} of page {number}." for k in range(lines)]
        body = "".join(f"<p>{text}</p>" for text in texts)
        (tmp_path / "html" / f"{number:04}.html").write_text(f"<html><body>{body}</body></html>")
        truth = {
            "url": f"https://site-{number}.example/page",
            "ground_truth": {"main_content": "\n".join(texts), "with": [], "without": []},
            "_internal": {"page_type": {"primary": "article"}},
        }
        (tmp_path / "ground-truth" / f"{number:04}.json").write_text(json.dumps(truth))
    return tmp_path


def test_the_proof_is_a_command(tmp_path: Path) -> None:
    """Each answer format has a row, and no page differs."""
    report = tmp_path / "proof.txt"
    done = run("--prove", "--cases", 3, "--most-blocks", 9, "--folders", PREPARED / "gqa", "--output", report)

    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in report.read_text(encoding="utf-8").splitlines() if line.startswith("gqa")]
    assert [row[1] for row in rows] == ["json", "json_space", "json_colon", "mineru_v1", "compact"]
    assert all(row[5:7] == ["0", "0"] for row in rows)


def test_time_is_beside_a_bare_prefill(tmp_path: Path) -> None:
    report = tmp_path / "time.txt"
    done = run("--time", PREPARED / "gqa", "--tokens", 100, "--blocks", 5, "--repeats", 1, "--output", report)

    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "a prompt of 100 tokens, 5 blocks" in text
    assert all(way in text for way in ("bare prefill", "(a) one token", "(b) forced runs", "(c) draft, 1.00 right"))


def test_real_pages_by_the_quality_of_their_drafts(tmp_path: Path, data: Path) -> None:
    """Every prompt is in one row; stops are counted per prompt, not per page."""
    report = tmp_path / "pages.txt"
    done = run("--pages", PREPARED / "gqa", "--data", data / "html", "--limit", 5, "--output", report)

    assert done.returncode == 0, done.stderr
    lines = report.read_text(encoding="utf-8").splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("---")) + 1 :]
    rows = {line[:12].strip(): line[12:].split() for line in table}
    assert sum(int(row[0]) for name, row in rows.items() if name != "all") == int(rows["all"][0]) >= 5
    assert all(1 <= float(row[2]) <= int(row[3]) for row in rows.values())


def test_the_longest_pages_are_labelled_in_windows(tmp_path: Path, data: Path) -> None:
    """All blocks of each page are labelled, longest page first; a single prompt cuts the page or falls back."""
    report = tmp_path / "crawl.txt"
    done = run(PREPARED / "gqa", "--data", data, "--longest", 2, "--output", report, script="qwen3_crawl.py")

    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "all blocks of 2 of 2 pages" in text
    long, short = [line.split() for line in text.splitlines() if re.match(r"[\d,]+ +\d+ +\d", line)]
    assert (long[1], long[3], long[5]) == ("150", "150", "oversize")
    assert int(long[2]) > 1
    assert 0 < int(long[4]) < 150
    assert short[1:] == ["5", "1", "5", "5", "5"]


def test_a_crawl_of_annotated_pages(tmp_path: Path, data: Path) -> None:
    """Each crawl has an item for every held-out page, and a row in the table of outcomes."""
    report = tmp_path / "crawl.txt"
    done = run(PREPARED / "gqa", "--data", data, "--folds", 2, "--output", report, script="qwen3_crawl.py")

    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "2 of 4 pages, of hosts that the model has not seen" in text
    outcomes = text[text.index("crawl  ") :].splitlines()[2:7]
    names = ["qwen3, windows", "qwen3, truncated", "qwen3, fallback", "qwen3, windows, cascade 0.97", "tagger"]
    rows = [line.removeprefix(name).split() for line, name in zip(outcomes, names, strict=True)]
    assert [int(row[0]) + int(row[1]) + int(row[3]) for row in rows] == [2] * 5
    assert [row[1] for row in rows[:3]] == ["0"] * 3
    assert rows[4][:2] == ["0", "2"]


def test_the_plot_is_a_drawing(tmp_path: Path) -> None:
    """It is a valid, self-contained SVG with every line in it."""
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
