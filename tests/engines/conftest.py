"""The bundled model, and a copy of its folder that tests may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger import Tagger, engine


@pytest.fixture(scope="session")
def tagger() -> Tagger:
    return Tagger.load(Config())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model."""
    return Path(shutil.copytree(engine.bundled(), tmp_path / "tagger"))
