"""The head for two labels gives the logits of the full head at the choices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")  # the extras [export] and [train]
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper_lab.export.head import add_head, load_graph, oldest_runtime, save_graph

VOCABULARY, HIDDEN, HEADS, WIDTH = 90, 24, 2, 16
CLOSE = {"rtol": 1e-5, "atol": 2e-5}
"""The runtime multiplies matrices of different shapes by different kernels, which sum in different orders."""
WEIGHT = np.random.default_rng(1).standard_normal((HIDDEN, 2)).astype(np.float32)
FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def graph(*, half: bool = False) -> ModelProto:
    """Return a graph with the inputs and outputs of a Qwen3 that was exported without its head or layers."""
    rng = np.random.default_rng(0)
    real, kind = (np.float16, HALF) if half else (np.float32, FLOAT)
    nodes = [
        helper.make_node("Gather", ["embedding", "input_ids"], ["embedded"]),
        helper.make_node("Mul", ["embedded", "scale"], ["hidden_states"]),
        helper.make_node("Identity", ["past_key_values.0.key"], ["present.0.key"]),
        helper.make_node("Identity", ["past_key_values.0.value"], ["present.0.value"]),
    ]
    tensors = {"scale": np.array([1.5], dtype=real)}
    tensors["embedding"] = rng.standard_normal((VOCABULARY, HIDDEN)).astype(real)
    cache = ["B", HEADS, "P", WIDTH]
    inputs = {
        "input_ids": (INT64, ["B", "S"]),
        "attention_mask": (INT64, ["B", "T"]),
        "position_ids": (INT64, ["B", "S"]),
    }
    inputs |= {f"past_key_values.0.{part}": (kind, cache) for part in ("key", "value")}
    outputs = {"hidden_states": (kind, ["B", "S", HIDDEN])}
    outputs |= {f"present.0.{part}": (kind, cache) for part in ("key", "value")}
    made = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, *rest) for name, rest in inputs.items()],
        [helper.make_tensor_value_info(name, *rest) for name, rest in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def with_head(*, half: bool = False) -> ModelProto:
    """Return that graph with a head."""
    model = graph(half=half)
    add_head(model, WEIGHT)
    onnx.checker.check_model(model)
    return model


def run(model: ModelProto | Path, output: str, ids: npt.NDArray[np.int64], **more: object) -> npt.NDArray[np.float32]:
    """Return an output of a graph."""
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    kinds = {one.name: np.float16 if "16" in one.type else np.float32 for one in session.get_inputs()}
    empty = (len(ids), HEADS, 0, WIDTH)
    feed = {f"past_key_values.0.{part}": np.zeros(empty, kinds["past_key_values.0.key"]) for part in ("key", "value")}
    feed |= {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.zeros_like(ids), **more}
    return session.run([output], feed)[0]


@given(batch=st.integers(1, 4), length=st.integers(1, 20), half=st.booleans(), data=st.data())
def test_property_the_same_logits(batch: int, length: int, half: bool, data: st.DataObject) -> None:
    """This holds for all shapes, and any rows in any order, or none. The head is computed in single precision."""
    rows = np.array(data.draw(st.lists(st.integers(0, batch * length - 1), max_size=12)), dtype=np.int64)
    ids = np.random.default_rng(length).integers(0, VOCABULARY, (batch, length))
    hidden = run(graph(half=half), "hidden_states", ids).astype(np.float32).reshape(-1, HIDDEN)
    found = run(with_head(half=half), "choice_logits", ids, choice_rows=rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, hidden[rows] @ WEIGHT, **CLOSE)


def test_weights_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    """The graph that is loaded from both files gives the same output as the one in memory."""
    model = with_head()
    ids, rows = np.arange(10).reshape(2, 5), np.array([9, 0])
    expected = run(model, "choice_logits", ids, choice_rows=rows)
    assert save_graph(model, tmp_path) == ["model.onnx", "model.onnx.data"]
    weights = VOCABULARY * HIDDEN * 4
    assert (tmp_path / "model.onnx").stat().st_size < weights <= (tmp_path / "model.onnx.data").stat().st_size
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", "choice_logits", ids, choice_rows=rows), expected)


@pytest.mark.parametrize(("inputs", "runtime"), [(9, "1.23"), (12, "1.23"), (13, "1.25"), (16, "1.28")])
def test_the_oldest_runtime(inputs: int, runtime: str) -> None:
    """It follows from the number of inputs of GroupQueryAttention."""
    model = graph()
    names = [f"x{i}" for i in range(inputs)]
    model.graph.node.append(helper.make_node("GroupQueryAttention", names, ["y"], domain="com.microsoft"))
    assert oldest_runtime(model) == runtime


def test_unknown_graphs(tmp_path: Path) -> None:
    """The engine needs GroupQueryAttention, and the head needs hidden states."""
    with pytest.raises(UsageError, match="has 0 inputs; 1 to 16 are known"):
        oldest_runtime(graph())
    with pytest.raises(UsageError, match=r"no model\.onnx that can be read"):
        load_graph(tmp_path)
    with pytest.raises(UsageError, match="no output 'hidden_states', but choice_logits, present"):
        add_head(with_head(), WEIGHT)
