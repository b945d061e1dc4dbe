"""Extractors that are closed in the end, and programs in the place of their child process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from children import FAKE, SECONDS, AllMain, Make

from scrapy_dripper.config import Config
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.sandbox import process


@pytest.fixture
def extractor() -> Iterator[Make]:
    """Return a maker of extractors that are closed in the end."""
    made: list[Extractor] = []

    def make(**options: Any) -> Extractor:
        made.append(Extractor(Config(**{"timeout": SECONDS, **options}), AllMain()))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a program of its own in the place of the child's."""

    def install(code: str) -> None:
        file = tmp_path / "child.py"
        file.write_text(FAKE + code, encoding="utf-8")
        monkeypatch.setattr(process, "_MAIN", file)

    return install
