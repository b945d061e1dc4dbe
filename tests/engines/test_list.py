"""The list of engines is complete, and every engine in it can be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

import scrapy_dripper.engines
from scrapy_dripper.checks import MODELS
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import ModelError


def test_every_model_of_the_package_can_be_named() -> None:
    folders = Path(scrapy_dripper.engines.__file__).parent.glob("*/engine.py")
    assert {folder.parent.name for folder in folders} == set(MODELS)
    with pytest.raises(ConfigError, match="DRIPPER_ENGINE must be one of"):
        Config(engine="forgotten")


@pytest.mark.parametrize("name", MODELS)
def test_a_name_leads_to_its_engine(name: str, tmp_path: Path) -> None:
    """Without a loader, a name would be taken for a user's callable."""
    with pytest.raises(ModelError, match="manifest"):
        load_engine(Config(engine=name, model=str(tmp_path)))
