"""The tagger as an engine, with the bundled model, and the influence of each group of its features."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose.decision import DecisionRule, best_cut
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.folder import read_manifest
from scrapy_dripper.engines.tagger import Tagger, engine
from scrapy_dripper.engines.tagger.engine import GROUPS, SAME_FOR_ALL, group_of
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.testing import page


def manifest(folder: Path, **changes: Any) -> None:
    path = folder / engine.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), "manifest.json is missing"),
        (lambda f: (f / "manifest.json").write_text("{"), "is damaged"),
        (lambda f: (f / "manifest.json").write_text("[]"), "is damaged"),
        (lambda f: manifest(f, decoding={"unknown": 1}), "is damaged"),
        (lambda f: manifest(f, engine="qwen3"), "is for engine 'qwen3'"),
        (lambda f: manifest(f, format="scrapy-dripper-qwen3"), "for the engine 'qwen3': set DRIPPER_ENGINE to 'qwen3'"),
        (lambda f: manifest(f, format=99), "format 99"),
        (lambda f: manifest(f, feature_schema="0"), "was trained for other features"),
        (lambda f: manifest(f, cut=99), "blocks cut by version 99 of the rules; this version cuts by 1: train"),
        (lambda f: manifest(f, weights_sha256="0"), "is damaged"),
        (lambda f: (f / "blocks.onnx").unlink(), "Cannot read"),
        (lambda f: (f / "context.onnx").write_bytes(b"nothing"), "SHA-256"),
    ],
)
def test_a_damaged_model_is_one_sentence_at_load(folder: Path, damage: Any, message: str) -> None:
    damage(folder)

    with pytest.raises(ModelError, match=message):
        Extractor(Config(model=str(folder)))


def test_no_runtime_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_installed", lambda _: False)
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)

    with pytest.raises(ModelError, match=r"pip install scrapy-dripper\[cpu\]"):
        Tagger.load(Config())


RECALL, WORDS = 0.8, DecisionRule().min_words


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(1, 300)), min_size=1, max_size=40))
def test_the_cut_maximises_the_expected_f1(blocks: list[tuple[float, int]]) -> None:
    """No other cut of the ranking has a higher expected F1. Nothing is main if too few words can be expected to be."""
    p, size = (np.array(column, dtype=np.float32) for column in zip(*blocks, strict=True))
    found = best_cut(p, size, RECALL, WORDS)
    w, q = size.astype(np.float64), p.astype(np.float64)
    total = float(q @ w)

    if total < WORDS:
        assert found is None
        return
    assert found is not None
    main = q >= found[0]
    order = np.argsort(-q, kind="stable")
    cuts = [(q * w)[order[:k]].sum() / (w[order[:k]].sum() + RECALL * total) for k in range(1, len(p) + 1)]
    chosen = (q * w)[main].sum() / (w[main].sum() + RECALL * total)
    assert chosen >= max(cuts) - 1e-9


def test_favor_on_real_pages() -> None:
    """From precision to recall, more and more text is extracted from the same pages."""
    folder = Path(__file__).parents[2] / "example_project" / "example" / "website" / "pages"
    bodies = [path.read_bytes() for path in sorted(folder.rglob("*.html"))]
    counts = []
    extractor = Extractor(Config())
    for favor in ("precision", "balanced", "recall"):
        config = Config(favor=favor)
        found = extractor.extract([Document(body, config=config) for body in bodies])
        counts.append([one.main_blocks for one in found])

    # One block of a hole may stay out if its likelier neighbour no longer is a part of the hole.
    assert all(a <= b + 1 and b <= c + 1 for a, b, c in zip(*counts, strict=True))
    assert sum(counts[0]) < sum(counts[1]) < sum(counts[2])


def test_a_tagger_for_another_engine_says_which_engine_it_is_for(folder: Path) -> None:
    """A missing DRIPPER_ENGINE is the usual mistake, in both directions."""
    with pytest.raises(ModelError, match="is a model for the engine 'tagger': set DRIPPER_ENGINE to 'tagger'"):
        read_manifest(folder)


# ---------------------------------------------------------------------- influences
PAGE = """<title>Tides</title><nav><a href=/>Home</a></nav><nav><a href=/a>About the harbour</a></nav>
<article><h1>Tides</h1><p>Tides are the rise and fall of sea levels, caused by the Moon and, less so, by the Sun.</p>
<p>Most coasts see two high waters and two low waters in a little more than a day, as everybody there knows.</p>
<p>The range between them is largest twice a month, when the Sun and the Moon pull along one line.</p></article>"""


def test_every_feature_is_in_a_group_and_no_group_is_empty() -> None:
    names = features([page(PAGE)]).names

    groups = {name: group_of(name) for name in names}

    assert set(groups.values()) == {*GROUPS, SAME_FOR_ALL}
    assert {name for name, group in groups.items() if group == SAME_FOR_ALL} == {
        name for name in names if name.startswith(("page_", "about_"))
    }
    assert (groups["words"], groups["words:shop"], groups["words+1"]) == (GROUPS[0], "wording", "blocks around")


def test_what_all_blocks_share_has_no_influence(tagger: Tagger) -> None:
    """On a page with a single block, the block itself is typical."""
    found = tagger.influences(page("<p>A page of one block, which is all there is to it and to say of it.</p>"))

    assert set(found) == set(GROUPS)
    assert all(change.tolist() == [0.0] for change in found.values())


def test_links_speak_against_a_menu_and_not_against_a_paragraph(tagger: Tagger) -> None:
    found = page(PAGE)

    links = tagger.influences(found)["links"]

    menu, text = 0, len(found.blocks) - 2
    assert links[menu] < 0
    assert links[text] >= links[menu]
