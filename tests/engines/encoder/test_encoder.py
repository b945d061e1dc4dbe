"""The encoder classifies the token after each block in one pass over a page. The tests use a small random model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import document_fromstring

from scrapy_dripper.config import Config
from scrapy_dripper.engines import load_engine, loss, session
from scrapy_dripper.engines.base import EngineError, EngineLostError, Labels, ModelError
from scrapy_dripper.engines.encoder.chunks import Chunk, chunks
from scrapy_dripper.engines.encoder.engine import EncoderEngine
from scrapy_dripper.engines.encoder.model import EncoderModel
from scrapy_dripper.engines.encoder.prepared import Encoder, load_encoder
from scrapy_dripper.extraction import Document, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page.page import Page
from scrapy_dripper.page.profiles import PROFILES
from scrapy_dripper.workers import Task, shared_pool

PREPARED = Path(__file__).parent / "prepared"
QWEN3 = Path(__file__).parents[1] / "qwen3" / "prepared" / "gqa"


@pytest.fixture(scope="module")
def prepared() -> Encoder:
    return load_encoder(PREPARED)


@pytest.fixture
def engine() -> Iterator[EncoderEngine]:
    engine = EncoderEngine.load(Config(engine="encoder", model=str(PREPARED)))
    yield engine
    engine.close()


def page(n: int, words: int = 3) -> Page:
    """Return a page of n paragraphs."""
    text = "".join(
        f"<p>{k} {' '.join(['harbour', 'tide', 'market'][(k + j) % 3] for j in range(words))}" for k in range(n)
    )
    return PROFILES["v1.0"].cut(document_fromstring(f"<html><body>{text}</body></html>"), "")


def good(answer: Labels | EngineError) -> Labels:
    assert isinstance(answer, Labels)
    return answer


# ---------------------------------------------------------------------- tokens
@given(st.lists(st.lists(st.integers(4, 500), max_size=30), max_size=30), st.integers(4, 60), st.booleans())
def test_every_block_is_read_once_with_a_separator_behind_it(blocks: list[list[int]], most: int, marks: bool) -> None:
    """Blocks stay in order and within the context. A block that is too long is cut off."""
    encoder = replace(load_prepared_once(), before=[0] if marks else [], after=[1] if marks else [], separator=3)
    passes = chunks(blocks, encoder, most)

    found = []
    for one in passes:
        assert len(one.ids) <= most
        assert (one.ids[one.rows] == 3).all()
        assert one.ids.tolist()[:1] + one.ids.tolist()[-1:] == [0, 1] if marks else one.ids[-1] == 3
        start = len(encoder.before)
        for row in one.rows.tolist():
            found.append(one.ids[start:row].tolist())
            start = row + 1
        assert start == len(one.ids) - len(encoder.after)
    room = most - 2 * marks
    assert found == [block[: room - 1] for block in blocks]
    sizes = [len(one.ids) - 2 * marks for one in passes]
    firsts = [int(one.rows[0]) - marks + 1 for one in passes]
    assert all(size + first > room for size, first in zip(sizes, firsts[1:], strict=False))  # no pass too many


_loaded: list[Encoder] = []


def load_prepared_once() -> Encoder:
    """Return the encoder for a property test, which cannot use a function-scoped fixture."""
    if not _loaded:
        _loaded.append(load_encoder(PREPARED))
    return _loaded[0]


def test_what_a_published_encoder_reads(engine: EncoderEngine) -> None:
    """The input is the simplified HTML of each block, tokenized separately, and a final end-of-document token."""
    (one,) = engine._chunks(page(2))
    text = engine._tokenizer.decode(one.ids.tolist(), skip_special_tokens=False)

    assert text == (
        '<|begin_of_text|><p _item_id="1">0 harbour tide market</p><|sep|>'
        '<p _item_id="2">1 tide market harbour</p></body></html><|sep|><|end_of_text|>'
    )


# ---------------------------------------------------------------------- labels
def test_the_graph_answers_as_pytorch_does(prepared: Encoder) -> None:
    """The manifest holds PyTorch's logits, and both labels occur among them."""
    model = EncoderModel(prepared)
    checks = prepared.source["checks"]
    passes = [Chunk(np.array(one["ids"]), np.array(one["rows"])) for one in checks]

    for logits, one in zip(model.run(passes), checks, strict=True):
        np.testing.assert_allclose(logits, one["logits"], atol=1e-4)
    margins = np.diff(np.concatenate([one["logits"] for one in checks]))
    assert 0 < (margins > 0).sum() < len(margins)
    model.close()


def test_labels_do_not_depend_on_other_pages(engine: EncoderEngine) -> None:
    pages = [page(n) for n in (12, 1, 0, 25)]
    together = [good(answer) for answer in engine.label(pages)]

    assert [len(answer.main) for answer in together] == [12, 1, 0, 25]
    assert engine.label([]) == []
    for one, answer in zip(pages, together, strict=True):
        alone = good(engine.label([one])[0])
        assert alone.main.tolist() == answer.main.tolist() == (answer.probabilities > 0.5).tolist()
        assert alone.probabilities.tolist() == answer.probabilities.tolist()
    assert 0 < sum(int(answer.main.sum()) for answer in together) < 38


def test_a_long_page_is_read_in_passes(engine: EncoderEngine, prepared: Encoder) -> None:
    """No pass is too long, and the first one equals that of a page with only its blocks."""
    long = good(engine.label([page(200, 20)])[0])

    assert (len(long.main), long.truncated) == (200, False)
    assert long.work["passes"] > 2
    assert long.work["positions"] <= long.work["passes"] * prepared.context
    first = len(engine._chunks(page(200, 20))[0].rows)
    alone = good(engine.label([page(first - 1, 20)])[0])
    assert alone.probabilities.tolist() != long.probabilities[: first - 1].tolist()  # what stands behind matters


def test_fewer_tokens_and_characters_if_asked(prepared: Encoder) -> None:
    def work(**options: Any) -> tuple[int, int]:
        engine = EncoderEngine.load(Config(engine="encoder", model=str(PREPARED), **options))
        found = good(engine.label([page(20, 20)])[0]).work
        engine.close()
        return found["passes"], found["positions"]

    passes, positions = work()
    assert work(max_tokens=prepared.context // 4)[0] > passes
    assert work(truncate_chars=20)[1] < positions == work(truncate_chars=0)[1]


def test_the_second_class_may_be_other(prepared: Encoder) -> None:
    """Some checkpoints have the class main first."""
    answers = []
    for main in (0, 1):
        model = EncoderModel(replace(prepared, main=main))
        engine = EncoderEngine(prepared, model.run, Config())
        answers.append(good(engine.label([page(9)])[0]).main)
        model.close()

    assert answers[0].tolist() == (~answers[1]).tolist()


# ---------------------------------------------------------------------- failures
def test_logits_that_are_not_finite(engine: EncoderEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with logits that are not finite falls back alone, with the reason for that."""
    model = EncoderModel(load_encoder(PREPARED))
    model.prepared = replace(model.prepared, dtype="float16")
    monkeypatch.setattr(model, "_session", Broken([np.full((3, 2), np.nan, dtype=np.float32)] * 5))
    answers = EncoderEngine(model.prepared, model.run, Config()).label([page(3)] * 5)

    assert {answer.reason for answer in answers if isinstance(answer, EngineError)} == {FallbackReason.OVERFLOW}
    assert "export the model with '--dtype bf16'" in str(answers[0])
    model.close()


class Broken:
    """Stands for a session. It returns or raises the given values in turn, and then repeats the last one."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.asked = 0

    def run(self, *_: object) -> list[Any]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [answer]


def test_a_pass_that_fails_once_is_tried_again(prepared: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EncoderModel(prepared)
    right = np.array([[0, 1], [1, 0]], dtype=np.float32)
    monkeypatch.setattr(model, "_session", Broken([MemoryError(), right]))
    (answer,) = EncoderEngine(prepared, model.run, Config()).label([page(2)])

    assert good(answer).main.tolist() == [True, False]
    model.close()


def test_a_device_that_is_gone(prepared: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss is detected after three pages. Later pages do not wait, and the model is loaded again after a pause."""
    model = EncoderModel(prepared)
    engine, pages = EncoderEngine(prepared, model.run, Config()), [page(4)] * 6
    expected = good(engine.label(pages)[0]).main.tolist()
    broken = Broken([RuntimeError("CUDA failure 719: unspecified launch failure")])
    monkeypatch.setattr(model, "_session", broken)

    answers = engine.label(pages)
    assert [type(answer) for answer in answers] == [EngineError] * 2 + [EngineLostError] * 4
    assert "CUDA failure 719" in str(answers[-1])
    assert broken.asked == 2 * 3 + 1
    monkeypatch.setattr(loss.time, "monotonic", lambda: model.loss.again + 1)
    assert [good(answer).main.tolist() for answer in engine.label(pages)] == [expected] * 6
    model.close()


def test_a_pass_that_memory_has_no_room_for(prepared: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is detected at the start, and the message gives advice."""
    monkeypatch.setattr(session, "free_memory", lambda: 4 << 20)

    with pytest.raises(
        ModelError, match=r"reads 1,024 tokens .* set DRIPPER_MAX_TOKENS to a number from 4 to (\d+)"
    ) as e:
        EncoderModel(prepared)
    most = int(str(e.value).rpartition(" ")[2])
    EncoderModel(prepared, most=most).close()


def test_a_model_that_does_not_run(prepared: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are detected at the start, for lack of memory and for any other reason."""
    monkeypatch.setattr(EncoderModel, "_pass", lambda *_: 1 / 0)
    with pytest.raises(ModelError, match=r"does not run \(division by zero\): see what 'scrapy-dripper export --check"):
        EncoderModel(prepared)

    def no_memory(*_: object) -> None:
        raise RuntimeError("CUDA failure 2: out of memory")

    monkeypatch.setattr(EncoderModel, "_pass", no_memory)
    with pytest.raises(ModelError, match=r"does not fit into the memory of its device"):
        EncoderModel(prepared)


# ---------------------------------------------------------------------- folders
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "scrapy-dripper-qwen3"}, "set DRIPPER_ENGINE to 'qwen3'"),
        ({"version": 9}, "is of format"),
        ({"main": 2}, "main must be one of 0, 1"),
        ({"main": True}, "main must be one of 0, 1"),
        ({"heads": 0}, "heads must be a whole number above 0"),
        ({"separator": 512}, "must be tokens, from 0 to 511"),
        ({"before": [0, None]}, "must be tokens"),
        ({"profile": "v9"}, "profile must be one of"),
        ({"dtype": ["float32"]}, "dtype must be one of"),
        ({"runtime": "new"}, "runtime must be a version"),
        ({"truncate_chars": -1}, "truncate_chars must be null"),
        ({"foot": None}, "must be strings"),
        ({"files": {"model.onnx": 1}}, "files must be an object of strings"),
        ({"files": {}}, r"lists no model\.onnx"),
    ],
)
def test_a_damaged_manifest(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """Each error is one sentence."""
    folder = Path(shutil.copytree(PREPARED, tmp_path / "prepared"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | changes), encoding="utf-8")

    with pytest.raises(ModelError, match=message):
        load_encoder(folder)


def test_an_invalid_folder(tmp_path: Path) -> None:
    """The folder is missing, or has a language model, another graph or a damaged tokenizer."""
    with pytest.raises(ModelError, match=r"No prepared encoder in .*: manifest\.json is missing"):
        load_encoder(tmp_path)
    with pytest.raises(ModelError, match="set DRIPPER_ENGINE to 'qwen3'"):
        load_engine(Config(engine="encoder", model=str(QWEN3)))
    with pytest.raises(ModelError, match="set DRIPPER_MODEL to a folder made with 'scrapy-dripper export'"):
        load_engine(Config(engine="encoder"))
    with pytest.raises(ModelError, match=r"is of format .*scrapy-dripper-encoder"):
        load_engine(Config(engine="qwen3", model=str(PREPARED)))
    folder = Path(shutil.copytree(PREPARED, tmp_path / "prepared"))
    shutil.copy(QWEN3 / "model.onnx", folder)
    with pytest.raises(ModelError, match="SHA-256"):
        load_encoder(folder)
    with pytest.raises(ModelError, match=r"model\.onnx is not what .*manifest\.json says"):
        EncoderModel(replace(load_encoder(PREPARED), folder=folder))


# ---------------------------------------------------------------------- on the way of a page
@pytest.mark.skipif(os.name != "posix", reason="workers share a model over pipes as POSIX has them")
def test_workers_that_ask_one_model() -> None:
    """The labels are bit for bit those of a single process, for long pages and for pages without blocks."""
    config = Config(engine="encoder", model=str(PREPARED), processes=1, timeout=120, fallback="empty")
    documents = [Document(f"<p>{'a quiet line ' * 9}" * n, f"http://example.com/{n}") for n in (1, 7, 300, 0)]
    extractor = Extractor(config)
    expected = [replace(one, milliseconds=0) for one in extractor.extract(documents)]
    extractor.close()
    shared = shared_pool(config)
    try:
        found = shared.pool.extract([Task(document, config) for document in documents])
    finally:
        shared.close()

    assert [replace(one, milliseconds=0) for one in found] == expected
    assert {"encoder"} <= {one.source for one in expected}
    assert expected[2].work["passes"] > 1


def test_closing_twice(prepared: Encoder) -> None:
    engine = EncoderEngine.load(Config(engine="encoder", model=str(PREPARED)))
    engine.close()
    engine.close()
