"""Give an exported graph a head for the two labels, at the positions where a label is chosen.

The full head of a checkpoint turns each position's hidden state into one logit per token of the vocabulary. For 6,000
positions of Qwen3-0.6B, these are 1.8 GB in half precision, and a third of the cost of everything before it.
Constrained decoding reads two of these logits, at one position per block. So the graph is exported without its head,
and gets one that takes the positions as ``choice_rows`` and returns ``choice_logits``, always in single precision. They
equal those of the full head up to the order of summation, or, in half precision, up to its rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from scrapy_dripper.cli.console import UsageError

HIDDEN = "hidden_states"
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
    try:
        return onnx.load(folder / GRAPH)
    except Exception as error:  # raised by the file system, protobuf or onnx
        raise UsageError(f"the exporter wrote no {GRAPH} that can be read ({error})") from None


def add_head(model: ModelProto, weight: npt.NDArray[np.float32]) -> None:
    """Replace the output ``hidden_states`` [B, S, H] of a graph, in place, by ``choice_logits`` float32 [N, 2].

    ``choice_rows`` int64 [N], a new input, are the positions of the choices in the flattened [B * S]. ``weight`` [H, 2]
    has the columns of the full head for the tokens of main and other. Raise :exc:`UsageError` if there is no such
    output.
    """
    graph = model.graph
    output = next((one for one in graph.output if one.name == HIDDEN), None)
    if output is None:
        raise UsageError(f"it has no output {HIDDEN!r}, but {', '.join(one.name for one in graph.output) or 'none'}")
    shape = numpy_helper.from_array(np.array([-1, len(weight)], dtype=np.int64), _PREFIX + "shape")
    columns = numpy_helper.from_array(np.ascontiguousarray(weight, dtype=np.float32), _PREFIX + "weight")
    graph.initializer.extend([shape, columns])
    # Each step is an operator, its inputs and its attributes. The input "" stands for the output of the step before.
    single = output.type.tensor_type.elem_type == TensorProto.FLOAT
    steps: list[tuple[str, list[str], dict[str, Any]]] = [
        ("Reshape", [HIDDEN, shape.name], {}),
        ("Gather", ["", CHOICE_ROWS], {"axis": 0}),
        *([] if single else [("Cast", [""], {"to": int(TensorProto.FLOAT)})]),
        ("MatMul", ["", columns.name], {}),
    ]
    for i, (operator, inputs, attributes) in enumerate(steps):
        inputs = [name or _PREFIX + str(i - 1) for name in inputs]
        result = CHOICE_LOGITS if i == len(steps) - 1 else _PREFIX + str(i)
        graph.node.append(helper.make_node(operator, inputs, [result], _PREFIX + operator, **attributes))
    graph.input.append(helper.make_tensor_value_info(CHOICE_ROWS, TensorProto.INT64, ["choices"]))
    graph.output.remove(output)
    graph.output.insert(0, helper.make_tensor_value_info(CHOICE_LOGITS, TensorProto.FLOAT, ["choices", 2]))


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
