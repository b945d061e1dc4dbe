"""The tagger as an engine, with the bundled model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.config import Config
from scrapy_dripper.engines import runtime
from scrapy_dripper.engines.base import Labels, ModelError
from scrapy_dripper.engines.tagger import Tagger, model
from scrapy_dripper.engines.tagger.decode import Decoding, decode
from scrapy_dripper.extractor import Extractor

ARTICLE = (
    "<html><head><title>Bees</title></head><body><nav><ul><li><a href=/>Home</a><li><a href=/a>About us</a></ul></nav>"
    "<article><h1>How bees keep warm</h1>"
    + "".join(
        f"<p>In winter the bees of hive {i} hold close together, eat honey and shiver with the muscles of their wings. "
        "The heat is kept in the middle of the cluster, where the queen sits, and the bees outside change places with "
        "those inside so that none of them grows too cold.</p>"
        for i in range(6)
    )
    + "</article><footer><p>Copyright 2026. All rights reserved. <a href=/p>Privacy policy</a></p></footer></body>"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model to damage."""
    return Path(shutil.copytree(model.bundled(), tmp_path / "tagger"))


def test_an_article_without_its_navigation_and_footer() -> None:
    """The bundled model does its job on a plain page, from HTML to Markdown."""
    (found,) = Extractor().extract([ARTICLE])

    assert found.source == "tagger"
    assert found.fallback_reason is None
    assert found.title == "Bees"
    assert found.markdown is not None
    assert "In winter the bees of hive 5" in found.markdown
    assert "About us" not in found.markdown
    assert "Privacy" not in found.markdown
    assert found.blocks == len(found.labels) == len(found.probabilities)
    assert found.confidence is not None
    assert 0.5 < found.confidence <= 1


def test_a_batch_gives_what_each_page_gives_alone() -> None:
    pages = [ARTICLE, ARTICLE.replace("bees", "wasps"), "<p>Short.</p>", ARTICLE.replace("article", "div")]
    extractor = Extractor()
    alone = [extractor.extract([html])[0] for html in pages]

    for single, batched in zip(alone, extractor.extract(pages), strict=True):
        assert single.labels == batched.labels
        assert single.markdown == batched.markdown


def manifest(folder: Path, **changes: Any) -> None:
    path = folder / model.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), "manifest.json is missing"),
        (lambda f: (f / "manifest.json").write_text("{"), "is damaged"),
        (lambda f: (f / "manifest.json").write_text("[]"), "is damaged"),
        (lambda f: manifest(f, decoding={"unknown": 1}), "is damaged"),
        (lambda f: manifest(f, engine="qwen3"), "is for engine 'qwen3'"),
        (lambda f: manifest(f, format=99), "format 99"),
        (lambda f: manifest(f, feature_schema="0"), "was trained for other features"),
        (lambda f: manifest(f, weights_sha256="0"), "is damaged"),
        (lambda f: (f / "blocks.onnx").unlink(), "Cannot read"),
        (lambda f: (f / "context.onnx").unlink(), "Cannot read"),
        (lambda f: (f / "context.onnx").write_bytes(b"nothing"), "SHA-256"),
    ],
)
def test_a_damaged_model_is_one_sentence_at_load(folder: Path, damage: Any, message: str) -> None:
    damage(folder)

    with pytest.raises(ModelError, match=message):
        Extractor(Config(model=str(folder)))


def test_weights_that_are_no_graph(folder: Path) -> None:
    """Damage that the hash cannot show, because the manifest was made for it."""
    import hashlib

    (folder / "context.onnx").write_bytes(b"nothing")
    hashes = json.loads((folder / model.MANIFEST).read_text())["weights_sha256"]
    manifest(folder, weights_sha256={**hashes, "context.onnx": hashlib.sha256(b"nothing").hexdigest()})

    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        Tagger.load(Config(model=str(folder)))


def test_both_runtimes_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two wheels overwrite each other: that is said before anything strange happens."""
    monkeypatch.setattr(runtime, "_installed", lambda _: True)

    with pytest.raises(ModelError, match="pip uninstall onnxruntime onnxruntime-gpu"):
        Tagger.load(Config())


def test_no_runtime_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_installed", lambda _: False)
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)

    with pytest.raises(ModelError, match=r"pip install scrapy-dripper\[cpu\]"):
        Tagger.load(Config())


def test_the_tagger_does_not_pretend_to_use_a_gpu() -> None:
    with pytest.raises(ModelError, match="runs on the CPU"):
        Tagger.load(Config(device="cuda"))


DECODING = Decoding()


@pytest.mark.parametrize(
    ("probabilities", "sizes", "texts", "main"),
    [
        ([0.9, 0.1], [50, 50], ["a", "b"], [True, False]),
        ([0.9, 0.8, 0.05], [50, 50, 50], ["a", "b", "c"], [True, True, False]),
        ([0.1, 0.1], [20, 20], ["a", "b"], [False, False]),  # 4 words expected: nothing is main
        ([0.9, 0.95], [50, 50], ["same", "same"], [True, False]),  # a copy is kept once, at its first place
        ([0.8, 0.9, 0.9], [50, 50, 50], ["same", "b", "same"], [True, True, False]),  # nor for one a little likelier
        ([0.1, 0.9, 0.9], [9, 50, 9], ["same", "b", "same"], [False, True, True]),  # a heading, listed in the contents
        ([0.9, 0.9], [5, 50], ["same", "same"], [True, True]),  # too short to be called a copy
        ([0.4, 0.3], [500, 400], ["a", "b"], [True, True]),  # no 0.5 threshold: an undecided page keeps what it can
    ],
)
def test_decoding(probabilities: list[float], sizes: list[float], texts: list[str], main: list[bool]) -> None:
    p, size = np.array(probabilities, dtype=np.float32), np.array(sizes, dtype=np.float32)

    assert decode(p, size, texts, np.zeros(len(p), dtype=np.bool_), DECODING).tolist() == main


@pytest.mark.parametrize(
    ("blocks", "links", "main"),
    [
        # the picture's link, the title and the title with its price, by probability
        ([("A red hat", 0.5), ("A red hat", 0.9), ("A red hat 19 €", 0.8)], [1, 1, 0], [0, 1, 0]),
        ([("A red hat", 0.5), ("A red hat", 0.5), ("A red hat 19 €", 0.8)], [1, 1, 1], [0, 0, 1]),
        ([("A red hat", 0.8), ("one", 0.9), ("two", 0.9), ("A red hat", 0.5)], [1, 0, 0, 0], [1, 1, 1, 0]),
        ([("A red hat", 0.9), ("A red hat", 0.9)], [0, 0], [1, 1]),  # no link: they may be values of a table
        ([("A red hat", 0.9), *[("x", 0.9)] * 6, ("A red hat", 0.9)], [1] * 8, [1] * 8),  # too far apart
        ([("hat", 0.9), ("hat", 0.9)], [1, 1], [1, 1]),  # one word is too little
        ([("The scarf", 0.9), ("The scarf that my aunt made me", 0.9)], [1, 0], [1, 1]),  # more than a copy
        ([("Chapter 1", 0.9), ("Chapter 12", 0.9)], [1, 1], [1, 1]),  # not the same word
        ([("Home Seating Chairs", 0.1), ("Seating Chairs", 0.9)], [1, 0], [0, 1]),  # a heading below its breadcrumb
        # the first stands for the last, which is hardly likelier, and for the second, its neighbour
        ([("1 2 3 4 5 6", 0.8), ("1 2 3 4 5 6 more", 0.8), *[("x", 0.9)] * 9, ("1 2 3 4 5 6", 0.9)], [1] * 12,
         [1, 0, *[1] * 9, 0]),
        # the last stands for the first, and is too far from the second
        ([("1 2 3 4 5 6", 0.3), ("1 2 3 4 5 6 more", 0.4), *[("x", 0.9)] * 9, ("1 2 3 4 5 6", 0.9)], [1] * 12,
         [0, 1, *[1] * 9, 1]),
    ],
)  # fmt: skip
def test_what_a_link_says_twice_is_kept_once(
    blocks: list[tuple[str, float]], links: list[int], main: list[int]
) -> None:
    texts = [text for text, _ in blocks]
    p = np.array([chance for _, chance in blocks], dtype=np.float32)
    size = np.array([len(text.split()) for text in texts], dtype=np.float32)
    everything = Decoding(min_words=0, recall_weight=100)

    assert decode(p, size, texts, np.array(links, dtype=np.bool_), everything).astype(int).tolist() == main


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(1, 300)), min_size=1, max_size=40))
def test_decoding_maximises_the_expected_f1(blocks: list[tuple[float, int]]) -> None:
    """No other cut of the ranking has a higher expected F1, and the cut respects the ranking."""
    p, size = (np.array(column, dtype=np.float32) for column in zip(*blocks, strict=True))
    main = decode(p, size, [str(i) for i in range(len(p))], np.zeros(len(p), dtype=np.bool_), DECODING)
    w, q = size.astype(np.float64), p.astype(np.float64)
    total = float(q @ w)

    if total < DECODING.min_words:
        assert not main.any()
        return
    assert p[main].min() >= p[~main].max(initial=0)
    order = np.argsort(-q, kind="stable")
    cuts = [
        (q * w)[order[:k]].sum() / (w[order[:k]].sum() + DECODING.recall_weight * total) for k in range(1, len(p) + 1)
    ]
    chosen = (q * w)[main].sum() / (w[main].sum() + DECODING.recall_weight * total)
    assert chosen >= max(cuts) - 1e-9


def test_label_answers_every_page() -> None:
    from scrapy_dripper.extraction import Document
    from scrapy_dripper.page import read

    config = Config()
    pages = [read(Document(html), config) for html in (ARTICLE, "<p>One line.</p>")]
    answers = Tagger.load(config).label(pages)

    for page, answer in zip(pages, answers, strict=True):
        assert isinstance(answer, Labels)
        assert answer.main.shape == answer.probabilities.shape == (len(page.blocks),)
