"""Pools and extractors that are closed after each test, and programs that replace their workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers import process
from scrapy_dripper.workers.pool import Pool
from tests.workers.children import FAKE, LIGHT, OWN, SECONDS, Make, Pools


@pytest.fixture
def pools() -> Iterator[Pools]:
    """Return a factory for pools, which are closed in the end: ``pools(most, config)``."""
    made: list[Pool] = []

    def make(most: int = 1, config: Config = OWN, **options: Any) -> Pool:
        made.append(Pool(config, most, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Pool]:
    """A pool of one worker, for tests that leave it intact."""
    made = Pool(OWN, 1)
    yield made
    made.close()


@pytest.fixture
def extractor() -> Iterator[Make]:
    """Return a factory for extractors, which are closed in the end."""
    made: list[Extractor] = []

    def make(**options: Any) -> Extractor:
        made.append(Extractor(Config(**{"timeout": SECONDS, "engine": "tests.workers.engines.AllMain", **options})))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that replaces the program of workers."""

    def install(code: str) -> None:
        file = tmp_path / "child.py"
        file.write_text(FAKE + code, encoding="utf-8")
        monkeypatch.setattr(process, "_MAIN", file)

    return install


@pytest.fixture
def light(fake: Callable[[str], None]) -> None:
    """Replace workers by a program that starts ten times as fast, for tests of what is done with workers."""
    fake(LIGHT)
