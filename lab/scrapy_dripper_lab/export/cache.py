"""Keep the keys and values of a graph in eight bits, so that longer pages fit into the same memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from scrapy_dripper.engines.qwen3.decoder import Floats

_TYPES = {"int8": (TensorProto.INT8, 127.0), "float8e4m3fn": (TensorProto.FLOAT8E4M3FN, 448.0)}
"""The type, and its largest number."""
CPU_RUNTIME = "1.27"
"""The oldest onnxruntime that was seen to have such a cache on CPUs. 1.25 loads the graph, and fails in each pass."""
_HEADROOM = 1.25
"""Pages can have larger numbers than the prompts that the ranges are from. Beyond this, they are cut."""
_SCALES = 12
"""Index of the first of the two inputs of GroupQueryAttention that have the scales."""


def quantize_cache(model: ModelProto, cache_dtype: str, ranges: Sequence[tuple[Floats, Floats]]) -> None:
    """Change the type of a graph's keys and values, in place.

    ``ranges`` has the largest key and value [kv_heads, head_dim] of each layer, which determine the scales.
    """
    kind, most = _TYPES[cache_dtype]
    graph = model.graph
    for one in [*graph.input, *graph.output]:
        if one.name.startswith(("past_key_values.", "present.")):
            one.type.tensor_type.elem_type = kind
    attention = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    for i, (node, both) in enumerate(zip(attention, ranges, strict=True)):
        node.input.extend([""] * (_SCALES + 2 - len(node.input)))
        for place, part, largest in zip(range(_SCALES, _SCALES + 2), ("key", "value"), both, strict=True):
            scale = np.maximum(largest, 1e-6)[None, :, None] * np.float32(_HEADROOM / most)
            node.input[place] = f"/cache/{i}/{part}"
            graph.initializer.append(numpy_helper.from_array(scale.astype(np.float32), node.input[place]))
            node.attribute.append(helper.make_attribute(f"{part[0]}_quant_type", "PER_CHANNEL"))
        node.attribute.append(helper.make_attribute("kv_cache_bit_width", 8))
