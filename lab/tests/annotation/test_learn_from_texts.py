"""``learn`` takes what ``annotate --export`` writes."""

from __future__ import annotations

import json
from pathlib import Path

from scrapy_dripper.cli import main
from scrapy_dripper.engines.tagger.learnt import LEARNT
from tests.learning.conftest import corrections  # noqa: F401 (a fixture)
from tests.learning.test_learn_command import learn, learnt  # noqa: F401 (a fixture)


def test_exported_labels_and_true_texts_teach_the_same(
    corrections: Path,  # noqa: F811
    learnt: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """``annotate --export`` writes the true text of the labels."""
    store, exported = tmp_path / "labels.jsonl", tmp_path / "exported"
    assert main(["annotate", "--read-answers", str(corrections), "-o", str(store)]) == 0
    pages = [str(path) for path in corrections.glob("*.html")]
    assert main(["annotate", *pages, "-o", str(store), "--export", str(exported)]) == 0
    assert learn(exported / "html", "-o", tmp_path / "by-text") == 0

    assert json.loads((tmp_path / "by-text" / LEARNT).read_text()) == json.loads((learnt / LEARNT).read_text())
