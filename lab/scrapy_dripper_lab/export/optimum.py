"""Take a graph that ``optimum-cli export onnx --task text-generation-with-past`` has written.

It computes attention with plain products, whose memory grows with the square of the prompt, and appends to copies of
all keys and values in each pass. One GroupQueryAttention takes their place in each layer, so the engine can run the
graph like any other.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper_lab.export.checkpoint import CONFIG, Checkpoint
from scrapy_dripper_lab.export.head import HIDDEN

_TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float32": TensorProto.FLOAT}
_PREFIX = "/attention/"


def fuse_attention(model: ModelProto, checkpoint: Checkpoint, dtype: str) -> None:
    """Turn a graph of optimum, in place, into one like those of onnxruntime-genai without a head.

    Raise :exc:`UsageError` if it is another graph, or one of another data type or other rotations.
    """
    config: dict[str, Any] = json.loads((checkpoint.folder / CONFIG).read_text(encoding="utf-8"))
    graph, heads = model.graph, int(config["num_attention_heads"])
    by_name = {node.name: node for node in graph.node}
    try:
        found = by_name["/model/rotary_emb/Expand"].input[0]
        frequencies = next(_value(node) for node in graph.node if found in node.output).ravel()
        kinds = {one.name: one.type.tensor_type.elem_type for one in graph.input}
        kind = kinds["past_key_values.0.key"]
        hidden = by_name["/lm_head/MatMul"].input[0]
        sizes = {"q_norm": heads, "k_norm": checkpoint.kv_heads}
        layers = []
        for i in range(checkpoint.layers):
            names = {part: f"/model/layers.{i}/self_attn/{part}/" for part in (*sizes, "v_proj", "o_proj")}
            parts = [by_name[names[part] + "Mul_1"].output[0] for part in sizes]
            layers.append((parts, by_name[names["v_proj"] + "MatMul"].output[0], by_name[names["o_proj"] + "MatMul"]))
    except (KeyError, StopIteration) as error:
        raise UsageError(
            f"the graph is not one of Qwen3 by 'optimum-cli export onnx --task text-generation-with-past' ({error} is "
            "missing): see [optimum] in lab/pyproject.toml for the releases that work"
        ) from None
    if kind != _TYPES[dtype]:
        raise UsageError(f"the graph does not have the data type {dtype}: export it again, or name its --dtype")
    theta = (config.get("rope_parameters") or config).get("rope_theta", 10_000.0)
    expected = float(theta) ** -(np.arange(0, checkpoint.head_dim, 2) / checkpoint.head_dim)
    if not np.allclose(frequencies, expected, rtol=1e-2):
        raise UsageError(
            f"the graph rotates by other angles than {checkpoint.name}: transformers 4, which optimum needs, does not "
            f'read rope_parameters; add "rope_theta": {theta} to its {CONFIG}, and export the graph again'
        )

    angles = np.outer(np.arange(checkpoint.positions), expected)
    constants = {
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
        "one": np.array([1], dtype=np.int64),
        **{name: np.array([0, -1, size * checkpoint.head_dim], dtype=np.int64) for name, size in sizes.items()},
    }
    start = [
        _node("Cast", [_PREFIX + name], _PREFIX + name + "/typed", to=kind) for name in ("cos", "sin")
    ] + [
        _node("ReduceSum", ["attention_mask", _PREFIX + "one"], _PREFIX + "read", keepdims=0),
        _node("Sub", [_PREFIX + "read", _PREFIX + "one"], _PREFIX + "last"),
        _node("Cast", [_PREFIX + "last"], _PREFIX + "last/typed", to=TensorProto.INT32),
        _node("Shape", ["attention_mask"], _PREFIX + "shape", start=1),
        _node("Cast", [_PREFIX + "shape"], _PREFIX + "shape/typed", to=TensorProto.INT32),
    ]  # fmt: skip
    shared = [_PREFIX + name + "/typed" for name in ("last", "shape", "cos", "sin")]
    attention: dict[str, list[NodeProto]] = {}
    for i, (parts, value, after) in enumerate(layers):
        flat = [f"{_PREFIX}{i}/{name}" for name in sizes]
        caches = [f"{i}.{part}" for part in ("key", "value")]
        after.input[0] = f"{_PREFIX}{i}"
        attention[after.name] = [
            *(_node("Reshape", [part, _PREFIX + size], to) for part, size, to in zip(parts, sizes, flat, strict=True)),
            helper.make_node(
                "GroupQueryAttention",
                [*flat, value, *(f"past_key_values.{name}" for name in caches), *shared],
                [after.input[0], *(f"present.{name}" for name in caches)],
                domain="com.microsoft", num_heads=heads, kv_num_heads=checkpoint.kv_heads, do_rotary=1,
            ),
        ]  # fmt: skip
    nodes = [*start]
    for node in graph.node:
        if not any(name.startswith("present.") for name in node.output):
            nodes += [*attention.get(node.name, ()), node]
    nodes.append(_node("Identity", [hidden], HIDDEN))

    outputs = [one for one in graph.output if one.name.startswith("present.")]
    needed = {HIDDEN, *(one.name for one in outputs)}
    kept = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    width = int(config["hidden_size"])
    _replace(graph.node, reversed(kept))
    _replace(graph.output, [helper.make_tensor_value_info(HIDDEN, kind, ["B", "S", width]), *outputs])
    _replace(graph.input, [one for one in graph.input if one.name in needed])
    added = [numpy_helper.from_array(value, _PREFIX + name) for name, value in constants.items()]
    _replace(graph.initializer, [*(one for one in graph.initializer if one.name in needed), *added])
    del graph.value_info[:]
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def _node(operator: str, inputs: list[str], output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs, [output], output, **attributes)


def _value(node: NodeProto) -> np.ndarray[Any, Any]:
    return numpy_helper.to_array(next(one.t for one in node.attribute if one.name == "value")).astype(np.float64)


def _replace(field: Any, values: Any) -> None:
    values = list(values)
    del field[:]
    field.extend(values)
