"""The file of learnt weights: what is written, and which files are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.learnt import LEARNT, Learnt, Site
from scrapy_dripper.engines.tagger.model import MANIFEST, bundled

SITES = {
    "a.example": Site({"p": 0, ".price": 1, ".noise": 2}, np.array([0.0, -2.25, 1e-4, 1, 2, -1e-4, 0, 0, 0, -0.5]))
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with learnt weights, with links to the graphs of the bundled one."""
    folder = tmp_path / "model"
    folder.mkdir()
    manifest = json.loads((bundled() / MANIFEST).read_text(encoding="utf-8"))
    for name in manifest["weights_sha256"]:
        (folder / name).write_bytes((bundled() / name).read_bytes())
    Learnt(SITES).write(folder)
    sign(folder)
    return folder


def sign(folder: Path) -> None:
    """Put the hashes of a folder's files into its manifest."""
    manifest = json.loads((bundled() / MANIFEST).read_text(encoding="utf-8"))
    manifest["weights_sha256"] = hashes(folder, [*manifest["weights_sha256"], LEARNT])
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Names whose weights round to zero are left out."""
    Learnt(SITES).write(tmp_path)
    site = Learnt.read(tmp_path).sites["a.example"]

    assert site.vocabulary == {".price": 0, "p": 1}
    assert site.weights.tolist() == [-2.25, 0.0, 2.0, 1.0, 0.0, 0.0, -0.5]


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        {"format": 2, "sites": {}},
        {"format": 1},
        {"format": 1, "sites": {"a.example": {"all": 0, "names": {"p": [1, 2]}}}},
        {"format": 1, "sites": {"a.example": {"all": 0, "names": {"p": [1, 2, "3"]}}}},
        {"format": 1, "sites": {"a.example": {"all": 0, "names": {"p": [1, 2, 1e301]}}}},
        {"format": 1, "sites": {"a.example": {"all": None, "names": {}}}},
        {"format": 1, "sites": {"a.example": {"names": {}}}},
        {"format": 1, "sites": {"a.example": {"all": 0, "names": []}}},
    ],
)
def test_damage_is_reported_before_the_crawl(model: Path, damaged: Any) -> None:
    """Also that of a file that is not the one in the manifest."""
    Tagger.load(Config(model=str(model))).close()
    (model / LEARNT).write_text(json.dumps(damaged), encoding="utf-8")
    with pytest.raises(ModelError, match=r"learnt\.json is damaged: its SHA-256 is not the one in"):
        Tagger.load(Config(model=str(model)))
    sign(model)

    with pytest.raises(ModelError, match=r"learnt\.json is damaged .*: restore the model folder, or learn again"):
        Tagger.load(Config(model=str(model)))


def test_the_nearest_site_decides() -> None:
    """A subdomain may have its own weights. A domain with the same ending is another site."""
    near, wide = (Site({}, np.array([value])) for value in (1.0, 2.0))
    learnt = Learnt({"shop.a.example": near, "a.example": wide})

    assert learnt.site_of("https://www.shop.a.example/1") is near
    assert learnt.site_of("https://eu.shop.A.example:8080/") is near
    assert learnt.site_of("https://blog.a.example/") is wide
    assert learnt.site_of("https://ba.example/") is None
    assert learnt.site_of("") is None
