"""JSON files of users that are nested 100,000 levels deep are named like other damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.commands.frontier import records
from scrapy_dripper.learning import is_ours
from scrapy_dripper.rules import RuleError, read_rules

Reader = tuple[str, Callable[[Path], Any], type[Exception] | None]

READERS: dict[str, Reader] = {
    "rules": ("rules.json", lambda folder: read_rules(folder / "rules.json"), RuleError),
    "a learnt model": ("manifest.json", is_ours, None),
    "the index of a site": ("index.jsonl", lambda folder: list(records(folder / "index.jsonl")), None),
}


DEEP = pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])


@DEEP
@pytest.mark.parametrize("kind", READERS)
def test_deep_json_is_damage(kind: str, deep: str, tmp_path: Path) -> None:
    """What only ignores damaged lines or folders ignores these, too."""
    check(READERS[kind], deep, tmp_path)


def check(reader: Reader, deep: str, tmp_path: Path) -> None:
    """Read a deep file. Its name is in the error, if there is one."""
    name, read, error = reader
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "1.html").write_text("<p>Text</p>")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(deep)

    if error is None:
        assert not read(tmp_path)
    else:
        with pytest.raises(error, match=name):
            read(tmp_path)
