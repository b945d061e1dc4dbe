"""Open the session of a Qwen3 graph, check it against the manifest, and compute how many tokens fit into memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.prepared import MANIFEST
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.session import open_graph, usable_memory

if TYPE_CHECKING:
    import onnxruntime

SCORES = 6
"""Number of score matrices [heads, S, S] that a plain graph holds at a time, with a margin: 5.4 were measured."""


def open_session(
    prepared: Prepared, device: str, threads: int, sdpa_kernel: int | None = None
) -> onnxruntime.InferenceSession:
    """Return a session like :func:`~scrapy_dripper.engines.session.open_graph`.

    ``sdpa_kernel`` is the CUDA provider's option of this name, which selects attention kernels. Also raise
    :exc:`ModelError` if the graph does not match the manifest.
    """
    settings = {} if sdpa_kernel is None else {"sdpa_kernel": str(sdpa_kernel)}
    session = open_graph(prepared, device, threads, "The Qwen3 engine", settings)
    _check_graph(session, prepared)
    return session


def _check_graph(session: onnxruntime.InferenceSession, prepared: Prepared) -> None:
    """Raise ModelError unless the graph's inputs and outputs match the manifest.

    The manifest determines the memory for keys and values, and onnxruntime does not check all of these sizes.
    """
    names = prepared.cache_names
    wanted = {"input_ids", "attention_mask", "choice_rows", *(f"past_key_values.{name}" for name in names)}
    if prepared.attention == "plain":
        wanted.add("position_ids")
    inputs = {one.name: one for one in session.get_inputs()}
    outputs = {one.name for one in session.get_outputs()}
    past = [one for name, one in inputs.items() if name.startswith("past_key_values.")]
    kind = {"float16": "tensor(float16)", "bfloat16": "tensor(bfloat16)", "float32": "tensor(float)"}[prepared.dtype]
    sizes = {1: prepared.kv_heads, 3: prepared.head_dim}
    if (
        set(inputs) != wanted
        or outputs != {"choice_logits", *(f"present.{name}" for name in names)}
        or any(one.type != kind for one in past)
        or any(isinstance(one.shape[i], int) and one.shape[i] != size for one in past for i, size in sizes.items())
    ):
        raise ModelError(
            f"{prepared.graph} is not what {prepared.folder / MANIFEST} says: export the model again with "
            "'scrapy-dripper export'"
        )


def tokens_that_fit(prepared: Prepared) -> int:
    """Return how many tokens fit into a share of the device's free memory, with their keys and values, in one pass.

    For each token, a pass needs about as much memory as the keys and values (Qwen3-0.6B: 72 KiB and 112 KiB). A plain
    graph also needs its score matrices.
    """
    usable, linear = usable_memory(prepared.device), 2 * prepared.token_bytes
    if prepared.attention == "gqa":
        return int(usable / linear)
    heads = 2 * prepared.kv_heads  # right for all Qwen3 models up to 1.7B, a guess for others
    square = SCORES * heads * prepared.number_bytes
    return int((math.sqrt(linear**2 + 4 * square * usable) - linear) / (2 * square))
