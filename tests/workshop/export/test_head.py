"""Cutting the head of a graph keeps the logits at the choices and removes the rest of the head."""

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
from scrapy_dripper.workshop.export.head import cut_head, load_graph, oldest_runtime, save_graph

VOCABULARY, HIDDEN, HEADS, WIDTH = 90, 24, 2, 16
CLOSE = {"rtol": 1e-5, "atol": 2e-5}
"""The runtime multiplies matrices of different shapes by different kernels, which sum in different orders."""
FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def full_graph(*, tied: str = "", half: bool = False, cast: bool = False, seed: int = 0) -> ModelProto:
    """Return a graph with the inputs and outputs of an exported Qwen3, and a model without layers between them.

    ``tied`` says which of embedding and head is the other one transposed, if any; ``cast`` gives logits in single
    precision of a product in half.
    """
    rng = np.random.default_rng(seed)
    real, kind = (np.float16, HALF) if half else (np.float32, FLOAT)
    weight = rng.standard_normal((HIDDEN, VOCABULARY)).astype(real)
    embedding = (weight.T if tied else rng.standard_normal((VOCABULARY, HIDDEN))).astype(real)
    nodes, tensors = [], {"scale": np.array([1.5], dtype=real)}
    if tied == "embedding":
        tensors["lm_head"] = weight
        nodes.append(helper.make_node("Transpose", ["lm_head"], ["embedding"], perm=[1, 0]))
    elif tied == "head":
        tensors["embedding"] = np.ascontiguousarray(embedding)
        nodes.append(helper.make_node("Transpose", ["embedding"], ["lm_head"], perm=[1, 0]))
    else:
        tensors |= {"lm_head": weight, "embedding": embedding}
    product = "product" if cast else "logits"
    nodes += [
        helper.make_node("Gather", ["embedding", "input_ids"], ["embedded"]),
        helper.make_node("Mul", ["embedded", "scale"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "lm_head"], [product]),
        *([helper.make_node("Cast", ["product"], ["logits"], to=FLOAT)] if cast else []),
        helper.make_node("Identity", ["past_key_values.0.key"], ["present.0.key"]),
        helper.make_node("Identity", ["past_key_values.0.value"], ["present.0.value"]),
    ]
    cache = ["B", HEADS, "P", WIDTH]
    inputs = {
        "input_ids": (INT64, ["B", "S"]),
        "attention_mask": (INT64, ["B", "T"]),
        "position_ids": (INT64, ["B", "S"]),
    }
    inputs |= {f"past_key_values.0.{part}": (kind, cache) for part in ("key", "value")}
    outputs = {"logits": (FLOAT if cast else kind, ["B", "S", VOCABULARY])}
    outputs |= {f"present.0.{part}": (kind, cache) for part in ("key", "value")}
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info(name, *rest) for name, rest in inputs.items()],
        [helper.make_tensor_value_info(name, *rest) for name, rest in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in tensors.items()],
        value_info=[helper.make_tensor_value_info("product", kind, ["B", "S", VOCABULARY])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model: ModelProto | Path, output: str, ids: npt.NDArray[np.int64], **more: object) -> npt.NDArray[np.float32]:
    """Return an output of a graph."""
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    kinds = {one.name: np.float16 if "16" in one.type else np.float32 for one in session.get_inputs()}
    empty = (len(ids), HEADS, 0, WIDTH)
    feed = {f"past_key_values.0.{part}": np.zeros(empty, kinds["past_key_values.0.key"]) for part in ("key", "value")}
    feed |= {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.zeros_like(ids), **more}
    return session.run([output], feed)[0]


@pytest.mark.parametrize("tied", ["", "embedding", "head"])
def test_the_same_logits_at_the_choices(tied: str) -> None:
    """This holds for each way to store embedding and head, and without any choice."""
    rng = np.random.default_rng(1)
    full, cut = full_graph(tied=tied), full_graph(tied=tied)
    cut_head(cut, 7, 60)
    for n in (0, 1, 2, 9, 40):
        ids = rng.integers(0, VOCABULARY, (3, 11))
        rows = rng.integers(0, ids.size, n)
        expected = run(full, "logits", ids).reshape(-1, VOCABULARY)[rows][:, [7, 60]]
        found = run(cut, "choice_logits", ids, choice_rows=rows)
        np.testing.assert_allclose(found, expected, **CLOSE)


@given(
    batch=st.integers(1, 4),
    length=st.integers(1, 20),
    labels=st.tuples(*[st.integers(0, VOCABULARY - 1)] * 2),
    data=st.data(),
)
def test_property_the_same_logits(batch: int, length: int, labels: tuple[int, int], data: st.DataObject) -> None:
    """This holds for all shapes, any two labels, and any rows in any order."""
    rows = np.array(data.draw(st.lists(st.integers(0, batch * length - 1), max_size=12)), dtype=np.int64)
    ids = np.random.default_rng(length).integers(0, VOCABULARY, (batch, length))
    cut = full_graph()
    cut_head(cut, *labels)
    expected = run(full_graph(), "logits", ids).reshape(-1, VOCABULARY)[rows][:, labels]
    np.testing.assert_allclose(run(cut, "choice_logits", ids, choice_rows=rows), expected, **CLOSE)


@pytest.mark.parametrize("cast", [False, True])
def test_half_precision_is_not_rounded_again(cast: bool) -> None:
    """The head is computed in single precision, so its logits are within half a step of the full head's."""
    ids = np.random.default_rng(2).integers(0, VOCABULARY, (2, 30))
    rows = np.arange(ids.size)
    cut = full_graph(half=True, cast=cast)
    cut_head(cut, 1, 2)
    found = run(cut, "choice_logits", ids, choice_rows=rows)
    assert found.dtype == np.float32
    full = run(full_graph(half=True, cast=cast), "logits", ids).reshape(-1, VOCABULARY)[:, [1, 2]].astype(np.float32)
    np.testing.assert_allclose(found, full, rtol=1e-3, atol=1e-2)
    assert (found != found.astype(np.float16)).any()


@pytest.mark.parametrize("tied", ["", "embedding", "head"])
def test_nothing_of_the_head_is_left(tied: str) -> None:
    """Only the embedding has the size of the vocabulary, and it is not transposed at run time."""
    model = full_graph(tied=tied)
    cut_head(model, 0, 1)
    large = [tensor.name for tensor in model.graph.initializer if VOCABULARY in tensor.dims]
    assert large == ["embedding"]
    assert "Transpose" not in [node.op_type for node in model.graph.node]
    assert "product" not in [one.name for one in model.graph.value_info]
    onnx.checker.check_model(model)


def test_weights_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    """The graph that is loaded from both files gives the same output as the one in memory."""
    model = full_graph()
    cut_head(model, 3, 4)
    ids, rows = np.arange(10).reshape(2, 5), np.array([9, 0])
    expected = run(model, "choice_logits", ids, choice_rows=rows)
    assert save_graph(model, tmp_path) == ["model.onnx", "model.onnx.data"]
    weights = VOCABULARY * HIDDEN * 4
    assert (tmp_path / "model.onnx").stat().st_size < weights <= (tmp_path / "model.onnx.data").stat().st_size
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", "choice_logits", ids, choice_rows=rows), expected)


def _without_logits() -> ModelProto:
    model = full_graph()
    model.graph.output.pop(0)
    return model


def _quantised() -> ModelProto:
    model = full_graph()
    (product,) = (node for node in model.graph.node if node.op_type == "MatMul")
    product.op_type, product.domain = "MatMulNBits", "com.microsoft"
    return model


@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (_without_logits, (0, 1), "no output 'logits'"),
        (_quantised, (0, 1), "a MatMulNBits; expected a MatMul"),
        (full_graph, (0, VOCABULARY), "not below the size of the vocabulary"),
    ],
)
def test_what_cannot_be_cut(model: object, labels: tuple[int, int], message: str) -> None:
    """The error for another kind of graph names the difference."""
    with pytest.raises(UsageError, match=message):
        cut_head(model(), *labels)  # type: ignore[operator]


@pytest.mark.parametrize(("inputs", "runtime"), [(9, "1.23"), (12, "1.23"), (13, "1.25"), (16, "1.28")])
def test_the_oldest_runtime(inputs: int, runtime: str) -> None:
    """It follows from the number of inputs of GroupQueryAttention."""
    model = full_graph()
    names = [f"x{i}" for i in range(inputs)]
    model.graph.node.append(helper.make_node("GroupQueryAttention", names, ["y"], domain="com.microsoft"))
    assert oldest_runtime(model) == runtime


def test_unknown_graphs(tmp_path: Path) -> None:
    """The engine needs GroupQueryAttention."""
    with pytest.raises(UsageError, match="has 0 inputs; 1 to 16 are known"):
        oldest_runtime(full_graph())
    with pytest.raises(UsageError, match=r"no model\.onnx"):
        load_graph(tmp_path)
