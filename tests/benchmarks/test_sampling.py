"""The benchmark of `corpus sample` on a few small pages: what it writes, not the figures."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.benchmarks.test_benchmarks import run
from tests.evaluation.test_evaluate_command import write_page

pytest.importorskip("sklearn", reason="needs the extra [sample]")
pytest.importorskip("py3langid", reason="needs the extra [sample]")
pytest.importorskip("lightgbm", reason="needs the extra [train]")


def test_chosen_pages_beside_random_ones(tmp_path: Path) -> None:
    """Every method has a row with its F1, its difference from random pages, and the kinds of its pages."""
    for number in range(12):
        write_page(tmp_path / "pages", f"p{number}", "forum" if number % 3 else "article", seed=random.randrange(99))
        path = tmp_path / "pages" / "ground-truth" / f"p{number}.json"
        annotation = json.loads(path.read_text())
        path.write_text(json.dumps({**annotation, "url": f"https://host{number % 6}.example/{number}"}))
    report = tmp_path / "sampling.txt"
    done = run(
        *("sampling.py", tmp_path / "pages", "--pages", 3, "--draws", 2, "--seeds", 1, "--folds", 2, "--jobs", 1),
        *("--work", tmp_path / "work", "--known", tmp_path / "known.pkl", "--output", report),
    )
    assert done.returncode == 0, done.stderr
    text = report.read_text(encoding="utf-8")
    assert "2 folds, word F1 on 12 held-out pages" in text
    for way in ("random", "layouts", "layouts, formats", "layouts, formats, languages"):
        assert sum(line.startswith(f"{way}  ") for line in text.splitlines()) == 2
