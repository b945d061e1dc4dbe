"""JSON files of users that are nested 100,000 levels deep are named like other damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper_lab.annotation.labels import load
from scrapy_dripper_lab.evaluation.measure import read_stored
from scrapy_dripper_lab.export.checkpoint import find_recipe, open_checkpoint
from scrapy_dripper_lab.sets import DataError, SetChoice, load_set
from tests.security.test_bombs import DEEP, Reader, check

READERS: dict[str, Reader] = {
    "an annotation": ("ground-truth/1.json", lambda folder: load_set(SetChoice(folder)), DataError),
    "annotations": ("pages.jsonl", lambda folder: load_set(SetChoice(folder)), DataError),
    "labels": ("labels.jsonl", lambda folder: load(folder / "labels.jsonl"), UsageError),
    "predictions": ("texts.jsonl", lambda folder: read_stored(folder / "texts.jsonl"), DataError),
    "a checkpoint": ("config.json", lambda folder: open_checkpoint(str(folder)), UsageError),
    "a recipe": ("scrapy_dripper.json", lambda folder: find_recipe(folder, {}), UsageError),
}


@DEEP
@pytest.mark.parametrize("kind", READERS)
def test_deep_json_is_damage(kind: str, deep: str, tmp_path: Path) -> None:
    check(READERS[kind], deep, tmp_path)
