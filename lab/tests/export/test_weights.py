"""Graphs whose weights or caches have eight or four bits: how far their labels are those in single precision."""

from __future__ import annotations

import builtins
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnx_ir")  # the extra [export]

import onnx

from benchmarks.equality import Prover
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.decoder import open_session
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper_lab.export.cache import quantize_cache
from scrapy_dripper_lab.export.validate import compare, stored_checks
from scrapy_dripper_lab.export.weights import quantize
from tests.engines.qwen3.fakes import PREPARED, with_graph


def quantized(folder: Path, weight_format: str) -> Prepared:
    """Return the small random model with its weights in fewer bits."""
    model = onnx.load(PREPARED / "model.onnx")
    quantize(model, weight_format)
    return with_graph(folder, model, weight_format=weight_format)


@pytest.mark.parametrize(("weight_format", "same", "share"), [("int8", 0.97, 0.6), ("int4", 0.7, 0.5)])
def test_the_agreement_with_single_precision(tmp_path: Path, weight_format: str, same: float, share: float) -> None:
    """The check counts the labels that are the same, and the weights are smaller. Passes still change no label."""
    folder = quantized(tmp_path, weight_format)
    exact = load_prepared(PREPARED)
    found = compare(folder, stored_checks(exact))
    assert found.passed
    assert found.same >= same * found.choices
    assert 0 < found.moved < found.margin
    assert f"{found.same} of {found.choices} labels are the same, and margins of" in str(found)

    sizes = [
        sum(onnx.numpy_helper.to_array(one).nbytes for one in onnx.load(path).graph.initializer if "layers" in one.name)
        for path in (folder.graph, exact.graph)
    ]
    assert sizes[0] < share * sizes[1]
    *_, proof = Prover(folder.folder, "json", seed=3).prove(pages=8, most_blocks=30)
    assert not proof.differ
    assert 0 < proof.main < proof.exact.labels


def largest(prepared: Prepared) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the largest keys and values of the small random model in a text, with any rotation."""
    session = open_session(prepared)
    ids = np.array([stored_checks(prepared)[-1].ids])
    nothing = np.zeros((1, prepared.kv_heads, 0, prepared.head_dim), dtype=np.float32)
    inputs = {one.name: nothing for one in session.get_inputs() if one.name.startswith("past")}
    inputs |= {"input_ids": ids, "attention_mask": np.ones_like(ids), "choice_rows": np.array([0])}
    found = []
    for i in range(prepared.layers):
        keys, values = session.run([f"present.{i}.key", f"present.{i}.value"], inputs)
        pairs = np.hypot(*np.split(keys[0], 2, axis=2)).max(axis=1)
        found.append((np.tile(pairs, 2), np.abs(values[0]).max(axis=1)))
    return found


def test_keys_and_values_in_eight_bits(tmp_path: Path) -> None:
    """They take a quarter of the memory, later passes use them, and the labels are mostly those of single precision."""
    model, exact = onnx.load(PREPARED / "model.onnx"), load_prepared(PREPARED)
    quantize_cache(model, "int8", largest(exact))
    folder = with_graph(tmp_path, model, cache_dtype="int8")
    found = compare(folder, stored_checks(exact))
    assert found.passed
    assert found.same >= 0.9 * found.choices
    assert 0 < found.moved < 0.2 * found.margin
    assert 4 * folder.token_bytes == exact.token_bytes
    *_, proof = Prover(folder.folder, "json", seed=3).prove(pages=8, most_blocks=30)
    assert sum(proof.differ.values()) <= 2  # a pass that rounds its keys first sees others than one that does not
    assert 0 < proof.main < proof.exact.labels


def test_a_damaged_model_in_eight_bits_is_no_agreement(tmp_path: Path) -> None:
    """The tolerance of a format is not so wide that another model passes."""
    model = onnx.load(PREPARED / "model.onnx")
    (weights,) = (one for one in model.graph.initializer if one.name == "model.layers.1.mlp.down_proj.MatMul.weight")
    weights.raw_data = np.flip(onnx.numpy_helper.to_array(weights)).tobytes()
    quantize(model, "int8")
    assert not compare(with_graph(tmp_path, model, weight_format="int8"), stored_checks(load_prepared(PREPARED))).passed


def test_an_onnxruntime_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install, and the logging of the program is left as it was."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    quantize(onnx.load(PREPARED / "model.onnx"), "int4")
    assert (logging.getLogger().handlers[:], logging.getLogger().level) == before

    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if "matmul_nbits" in name:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"cannot make int8 weights .*: install 1\.23 or later"):
        quantize(onnx.load(PREPARED / "model.onnx"), "int8")
