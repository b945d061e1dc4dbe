"""The figures of the bundled model are the same in all places: those of the card that `make train` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SETS = {
    "WCXB": "wcxb-dev",
    "elsewhere: news": "elsewhere, articles",
    "elsewhere: forum": "elsewhere, forums",
    "kinds: Chinese articles": "kinds, articles",
    "kinds: Chinese forum": "kinds, forums",
    **{name: name for name in ("daniel", "dragnet", "cleaneval", "sites", "mean of sets")},
}
NAME = "word F1, five folds by host"


def of_card() -> dict[str, list[float]]:
    """Return the word F1 of each system by set, ours first."""
    lines = (ROOT / "models/tagger/README.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| set |"))
    head = lines[start].strip("| ").split(" | ")
    at = [head.index(name) for name in ("word F1", "trafilatura", "trafilatura-no-comments", "resiliparse")]
    rows = (line.strip("| ").split(" | ") for line in lines[start + 2 : start + 2 + len(SETS)])
    return {row[0]: [float(row[k]) for k in at] for row in rows}


def test_the_table_of_the_readme_is_that_of_the_card() -> None:
    text, card = (ROOT / "README.md").read_text(encoding="utf-8"), of_card()
    assert NAME in " ".join(text.split())
    start = text.index("| WCXB")
    for name, of_set in SETS.items():
        row = re.search(rf"^\| {name}.*$", text[start:], re.M)
        assert row is not None
        assert [float(value) for value in re.findall(r"\b[01]\.\d{3}\b", row[0])] == pytest.approx(
            card[of_set], abs=6e-4
        )


def test_other_places_have_the_figure_of_the_card() -> None:
    """The manifest, of which `doctor` prints the figure, and the table of the papers."""
    manifest = json.loads((ROOT / "models/tagger/manifest.json").read_text(encoding="utf-8"))
    card = of_card()
    assert manifest["word_f1"] == card["wcxb-dev"][0]
    assert manifest["set_f1"] == {name: values[0] for name, values in card.items()}
    papers = (ROOT / "docs/internals/papers.md").read_text(encoding="utf-8")
    assert f"{NAME}](results.md#word-f1), on WCXB: {card['wcxb-dev'][0]:.3f}".replace("0.", ".") in papers
