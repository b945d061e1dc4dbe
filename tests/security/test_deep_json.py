"""JSON files of users that are nested 100,000 levels deep are named like other damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.commands.site import _records
from scrapy_dripper.rules import RuleError, read_rules
from scrapy_dripper.workshop.annotation.labels import load
from scrapy_dripper.workshop.dataset.sets import DataError, SetChoice, load_set
from scrapy_dripper.workshop.evaluation.measure import read_stored
from scrapy_dripper.workshop.export.checkpoint import find_recipe, open_checkpoint
from scrapy_dripper.workshop.learning import is_ours

READERS: dict[str, tuple[str, Callable[[Path], Any], type[Exception] | None]] = {
    "rules": ("rules.json", lambda folder: read_rules(folder / "rules.json"), RuleError),
    "labels": ("labels.jsonl", lambda folder: load(folder / "labels.jsonl"), UsageError),
    "an annotation": ("ground-truth/1.json", lambda folder: load_set(SetChoice(folder)), DataError),
    "annotations": ("pages.jsonl", lambda folder: load_set(SetChoice(folder)), DataError),
    "predictions": ("texts.jsonl", lambda folder: read_stored(folder / "texts.jsonl"), DataError),
    "a checkpoint": ("config.json", lambda folder: open_checkpoint(str(folder)), UsageError),
    "a recipe": ("scrapy_dripper.json", lambda folder: find_recipe(folder, {}), UsageError),
    "a learnt model": ("manifest.json", is_ours, None),
    "the index of a site": ("index.jsonl", lambda folder: list(_records(folder / "index.jsonl")), None),
}


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
@pytest.mark.parametrize("kind", READERS)
def test_deep_json_is_damage(kind: str, deep: str, tmp_path: Path) -> None:
    """What only ignores damaged lines or folders ignores these, too."""
    name, read, error = READERS[kind]
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "1.html").write_text("<p>Text</p>")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(deep)

    if error is None:
        assert not read(tmp_path)
    else:
        with pytest.raises(error, match=name):
            read(tmp_path)
