"""Cut the head of an exported graph down to the two labels, at the positions where a label is chosen.

The full head turns each position's hidden state into one logit per token of the vocabulary. For 6,000 positions of
Qwen3-0.6B, these are 1.8 GB in half precision, and a third of the cost of everything before it. Constrained decoding
reads two of these logits, at one position per block. The cut graph takes the positions as ``choice_rows`` and returns
``choice_logits``, always in single precision. They equal those of the full head up to the order of summation, or, if
the full head is in half precision, up to its rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from scrapy_dripper.cli.console import UsageError

LOGITS = "logits"
CHOICE_ROWS = "choice_rows"
CHOICE_LOGITS = "choice_logits"
GRAPH = "model.onnx"
WEIGHTS = "model.onnx.data"

SMALLEST_OUTSIDE = 1024
"""Bytes. Larger tensors go to a separate file, because the runtime can map it, and protobuf is limited to 2 GiB."""

_PREFIX = "/choice_head/"
_RUNTIMES = {12: "1.23", 14: "1.25", 16: "1.28"}
"""The first version of onnxruntime whose GroupQueryAttention accepts each number of inputs. The last ones are the norms
of queries and keys."""


def load_graph(folder: Path) -> ModelProto:
    """Return the graph of an exporter's folder, with its weights. Raise :exc:`UsageError` if there is none."""
    path = folder / GRAPH
    if not path.is_file():
        raise UsageError(f"the exporter wrote no {GRAPH}")
    return onnx.load(path)


def cut_head(model: ModelProto, main: int, other: int) -> None:
    """Replace the output ``logits`` [B, S, V] of a graph, in place, by ``choice_logits`` float32 [N, 2].

    ``choice_rows`` int64 [N], a new input, are the positions of the choices in the flattened [B * S]. Column 0 of the
    output is the logit of the token id ``main``, and column 1 that of ``other``. The weights of the graph must be
    loaded. Raise :exc:`UsageError` if the head is not a product with one constant matrix.
    """
    graph = model.graph
    constants = _Constants(graph)
    head = _find_head(graph, constants)
    size, vocabulary = head.weight.shape
    if not (0 <= main < vocabulary and 0 <= other < vocabulary):
        raise UsageError(f"token ids {main} and {other} are not below the size of the vocabulary, {vocabulary:,}")

    shape = numpy_helper.from_array(np.array([-1, size], dtype=np.int64), _PREFIX + "shape")
    columns = np.ascontiguousarray(head.weight[:, [main, other]], dtype=np.float32)
    weight = numpy_helper.from_array(columns, _PREFIX + "weight")
    graph.initializer.extend([shape, weight])
    # Each step is an operator, its inputs and its attributes. The input "" stands for the output of the step before.
    steps: list[tuple[str, list[str], dict[str, Any]]] = [
        ("Reshape", [head.hidden, shape.name], {}),
        ("Gather", ["", CHOICE_ROWS], {"axis": 0}),
        *([] if head.weight.dtype == np.float32 else [("Cast", [""], {"to": int(TensorProto.FLOAT)})]),
        ("MatMul", ["", weight.name], {}),
    ]
    for i, (operator, inputs, attributes) in enumerate(steps):
        inputs = [name or _PREFIX + str(i - 1) for name in inputs]
        output = CHOICE_LOGITS if i == len(steps) - 1 else _PREFIX + str(i)
        graph.node.append(helper.make_node(operator, inputs, [output], _PREFIX + operator, **attributes))
    graph.input.append(helper.make_tensor_value_info(CHOICE_ROWS, TensorProto.INT64, ["choices"]))
    graph.output.remove(head.output)
    graph.output.insert(0, helper.make_tensor_value_info(CHOICE_LOGITS, TensorProto.FLOAT, ["choices", 2]))
    # Constant tensors are transposed in advance. Tied embeddings are exported as the transposed head.
    for node in [one for one in graph.node if one.op_type == "Transpose"]:
        if (array := constants.array(node.output[0])) is not None:
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), node.output[0]))
            graph.node.remove(node)
    _remove_unused(graph)


def save_graph(model: ModelProto, folder: Path) -> list[str]:
    """Write a graph and its weights to a folder, and return the names of their files."""
    onnx.save_model(
        model,
        folder / GRAPH,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=WEIGHTS,
        size_threshold=SMALLEST_OUTSIDE,
    )
    return [GRAPH, WEIGHTS]


def oldest_runtime(model: ModelProto) -> str:
    """Return the oldest version of onnxruntime that supports a graph. Raise :exc:`UsageError` if that is unknown."""
    taken = max((len(node.input) for node in model.graph.node if node.op_type == "GroupQueryAttention"), default=0)
    if not 0 < taken <= max(_RUNTIMES):
        raise UsageError(f"its GroupQueryAttention has {taken} inputs; 1 to {max(_RUNTIMES)} are known")
    return next(version for inputs, version in _RUNTIMES.items() if taken <= inputs)


class _Head(NamedTuple):
    hidden: str
    """Name of its input, [B, S, H]."""
    weight: npt.NDArray[np.generic]
    """Shape [H, V]."""
    output: ValueInfoProto


class _Constants:
    """The constant tensors of a graph, as arrays."""

    def __init__(self, graph: GraphProto) -> None:
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.producers = {name: node for node in graph.node for name in node.output}

    def array(self, name: str) -> npt.NDArray[np.generic] | None:
        """Return a constant, also through nodes that only rename or transpose it; None for anything else."""
        if name in self.initializers:
            return numpy_helper.to_array(self.initializers[name])
        node = self.producers.get(name)
        if node is None or node.op_type not in ("Identity", "Transpose"):
            return None
        array = self.array(node.input[0])
        if array is None or node.op_type == "Identity":
            return array
        permutation = [list(one.ints) for one in node.attribute if one.name == "perm"]
        transposed: npt.NDArray[np.generic] = array.transpose(*permutation)
        return transposed


def _find_head(graph: GraphProto, constants: _Constants) -> _Head:
    output = next((one for one in graph.output if one.name == LOGITS), None)
    if output is None:
        raise UsageError(f"it has no output {LOGITS!r}, but {', '.join(one.name for one in graph.output) or 'none'}")
    node = constants.producers.get(LOGITS)
    while node is not None and node.op_type in ("Cast", "Identity"):
        node = constants.producers.get(node.input[0])
    weight = constants.array(node.input[1]) if node is not None and node.op_type == "MatMul" else None
    if node is None or weight is None or weight.ndim != 2:
        what = f"a {node.op_type}" if node is not None else "not there"
        raise UsageError(f"its head is {what}; expected a MatMul with one matrix, in half or single precision")
    return _Head(node.input[0], weight, output)


def _remove_unused(graph: GraphProto) -> None:
    """Remove nodes and weights that lead to no output, and the shapes noted for them (``value_info``)."""
    wanted = {one.name for one in graph.output}
    kept: list[NodeProto] = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(_reads(node))
            kept.append(node)
    kept.reverse()
    _replace(graph.node, kept)
    _replace(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in wanted])
    made = {name for node in kept for name in node.output}
    _replace(graph.value_info, [one for one in graph.value_info if one.name in made])


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, including those in its branches."""
    yield from node.input
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):  # ``g`` is empty where the attribute is no graph
            for child in inner.node:
                yield from _reads(child)
            yield from (output.name for output in inner.output)


def _replace(field: Any, values: list[Any]) -> None:
    """Replace the values of a repeated field of a protobuf message."""
    del field[:]
    field.extend(values)
