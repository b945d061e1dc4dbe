"""Learnt weights: which sites are learnt, the sums of weights around blocks, and the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper import learning
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import MANIFEST, TaggerModel, bundled
from scrapy_dripper.engines.tagger.learnt import LEARNT, Learnt, Places, SiteWeights, Vocabulary, names
from scrapy_dripper.inspection.answers import read_answers
from scrapy_dripper.learning import Correction, gain_rows, learn, of_record, total_gain
from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from tests.html_strategies import documents
from tests.learning.conftest import TOPICS, correct, page_of

SITES = {
    "a.example": SiteWeights(
        {"p": 0, ".price": 1, ".noise": 2}, np.array([0.0, -2.25, 1e-4, 1, 2, -1e-4, 0, 0, 0, -0.5])
    )
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
    near, wide = (SiteWeights({}, np.array([value])) for value in (1.0, 2.0))
    learnt = Learnt({"shop.a.example": near, "a.example": wide})

    assert learnt.site_of("https://www.shop.a.example/1") is near
    assert learnt.site_of("https://eu.shop.A.example:8080/") is near
    assert learnt.site_of("https://blog.a.example/") is wide
    assert learnt.site_of("https://ba.example/") is None
    assert learnt.site_of("") is None


def weights_of(vocabulary: Vocabulary, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=3 * len(vocabulary) + 1)


def one_by_one(page: Page, vocabulary: Vocabulary, weights: np.ndarray) -> list[float]:
    """Return the sums by their definition: for each block, over each ancestor."""
    tree, size = page.tree, len(vocabulary)

    def names_of(node: int) -> list[str]:
        return names(str(tree.nodes[node].tag), tree.names[node])

    sums = []
    for context, leaf in zip(page.blocks.context.tolist(), page.blocks.leaf.tolist(), strict=True):
        around, node = set(), leaf
        while node >= 0:
            around |= {name for name in names_of(node) if name.startswith(".")}
            node = int(tree.parent[node])
        total = weights[-1] + sum(weights[vocabulary[name]] for name in around)
        total += sum(weights[size + vocabulary[name]] for name in names_of(context))
        sums.append(total + sum(weights[2 * size + vocabulary[name]] for name in names_of(leaf)))
    return sums


@given(st.lists(documents(), min_size=1, max_size=3), st.integers(0, 9))
def test_property_sums_are_those_of_the_elements_around(sources: list[str], seed: int) -> None:
    """This also holds for several pages at once."""
    pages = [cut(parse(source)) for source in sources]
    vocabulary: Vocabulary = {}
    parts = [Places.of(page, vocabulary, grow=True) for page in pages]
    weights = weights_of(vocabulary, seed)

    expected = [value for page in pages for value in one_by_one(page, vocabulary, weights)]

    # Those of earlier pages, whose names were fewer, hold for the whole vocabulary.
    np.testing.assert_allclose(Places.joined(parts).odds(weights), expected, atol=1e-9)


@given(documents(), st.integers(0, 9))
def test_property_gathering_is_the_transpose(source: str, seed: int) -> None:
    """The gradient of the loss is thus right: <values, odds(weights)> = <gathered(values), weights>."""
    page = cut(parse(source))
    vocabulary: Vocabulary = {}
    places = Places.of(page, vocabulary, grow=True)
    weights = weights_of(vocabulary, seed)
    values = np.random.default_rng(seed + 1).normal(size=len(page.blocks))

    np.testing.assert_allclose(values @ places.odds(weights), places.gathered(values, len(vocabulary)) @ weights)


def test_names_are_bounded_and_without_numbers() -> None:
    """A number identifies a single post. The number and length of names are limited on any page."""
    assert names("p", "price post-1234 price") == ["p", ".price", ".post-0"]
    assert len(names("p", " ".join(f"{chr(97 + i)}x" for i in range(26)))) == 13
    assert max(map(len, names("x" * 1_000_000, "y" * 1_000_000))) == 61


@pytest.fixture
def four(tmp_path: Path) -> list[Correction]:
    """The corrections of four pages of a site."""
    for topic in TOPICS[:4]:
        correct(tmp_path, topic)
    pages = {page.sha256: page for page in map(page_of, TOPICS[:4])}
    return [of_record(answer, pages[answer.sha256]) for answer in read_answers(tmp_path, pytest.fail)]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((0.6, 0.7, 0.6, 0.7), "learnt"),
        ((0.5, 0.5, 0.5, 0.5), "left as it was"),
        ((0.503, 0.503, 0.503, 0.503), "left as it was"),
        ((0.9, 0.4, 0.4, 0.3), "learnt, unsure"),
        ((0.4, 0.4, 0.5, 0.5), "left as it was"),
    ],
    ids=["gain", "no change", "hardly any", "by chance", "loss"],
)
def test_a_site_is_learnt_if_it_may_gain(
    four: list[Correction], monkeypatch: pytest.MonkeyPatch, after: Sequence[float], said: str
) -> None:
    """The limit is one standard error. Sites that are not learnt do not change the total."""
    answers = iter([[0.5] * 4, *([value] for value in after)])
    monkeypatch.setattr(learning, "_f1", lambda pages, model, learnt: next(answers))

    sites, gains = learn(four, TaggerModel(bundled()))

    assert [row[-1] for row in gain_rows(gains)[1]] == [said]
    assert bool(sites) == said.startswith("learnt")
    found = total_gain(gains)
    assert found is not None
    assert found[:2] == pytest.approx((0.5, sum(after) / 4 if sites else 0.5))


def test_no_page_is_measured_by_what_it_taught(four: list[Correction], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is held out once. Then all pages are learnt."""
    taught: list[int] = []
    real = learning.fit

    def fit(examples: Sequence[object], vocabulary: dict[str, int]) -> object:
        taught.append(len(examples))
        return real(examples, vocabulary)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "fit", fit)
    monkeypatch.setattr(learning, "FOLDS", 2)
    learn(four, TaggerModel(bundled()))
    assert taught == [2, 2, 4]

    taught.clear()
    monkeypatch.setattr(learning, "FOLDS", 5)
    learn(four, TaggerModel(bundled()))
    assert taught == [3, 3, 3, 3, 4]
