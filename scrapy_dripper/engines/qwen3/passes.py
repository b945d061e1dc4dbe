"""Run forward passes of a graph over a sequence, with keys and values that stay on the device.

GroupQueryAttention writes them in place, into buffers of a fixed size. It only accepts several sequences if none has
been read before (onnxruntime: "batch_size must be 1 when sequence_length > 1 and past context is given"). A page keeps
a GPU busy by itself, so pages are read one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper.engines.qwen3.loop import Floats, TokenChunk

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, OrtValue

GRANULE = 64
"""The capacity of the buffers is a multiple of this number of tokens."""
CHUNK = {"cuda": 256, "cpu": 1}
"""A pass reads a multiple of this number of tokens. It is padded after the text.

From onnxruntime 1.28 on, compute capability 9.0 and above uses cuDNN's attention, with a plan for each combination of
tokens and capacity. Creating a plan takes 40 to 400 ms, and nearly every page would need a new one.
"""

_TYPES = {"float16": np.float16, "bfloat16": 16, "float32": np.float32}
"""Types as onnxruntime accepts them. numpy has no bfloat16, so it is given by its number in ONNX."""


class Passes:
    """A model for :func:`~scrapy_dripper.engines.qwen3.loop.decode`. It processes one sequence at a time.

    Tokens and capacity are rounded up, so that there are few combinations of them (:data:`CHUNK`).
    """

    def __init__(self, session: InferenceSession, prepared: Prepared, shared: Ids, most: int | None = None) -> None:
        """``most`` is the maximum number of tokens of a sequence, by default the model's context."""
        self._session, self._prepared, self._shared = session, prepared, shared
        self._most = most or prepared.context
        types = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
        self._logits = types[next(one.type for one in session.get_outputs() if one.name == "choice_logits")]
        self.release()

    def release(self) -> None:
        """Give back all keys and values."""
        self._binding: IOBinding | None = None
        self._capacity = 0
        self._prefixed = False  # the buffers keep the shared prefix at their beginning, page after page

    def begin(self, length: int, *, shared: bool) -> int:
        """Forget the sequence, and allocate the capacity for a new one of the given length.

        With ``shared``, it begins with the shared prefix. Return how many of its tokens have already been read in an
        earlier pass: 0, or the length of the prefix.
        """
        if self._capacity < length:
            self.release()  # frees before it allocates
            capacity = max(length, min(1 << (length - 1).bit_length(), self._most))
            self._allocate(math.ceil(capacity / GRANULE) * GRANULE)
        self._prefixed &= shared
        if shared and not self._prefixed:
            self.forward(TokenChunk(0, self._shared, np.zeros(1, dtype=np.int64)))
            self._prefixed = True
        return len(self._shared) if shared else 0

    def forward(self, chunk: TokenChunk) -> Floats:
        """Read a chunk after the cached tokens; return float32 logits [rows, 2] of main and other.

        The graph reads padding as text. That has no effect, because no earlier token attends to it, and the next chunk
        overwrites it.
        """
        step, end = CHUNK[self._prepared.device], min(self._capacity, self._prepared.context)
        # There are no positions beyond the context.
        ids = np.zeros((1, min(math.ceil(len(chunk.ids) / step) * step, end - chunk.start)), dtype=np.int64)
        ids[0, : len(chunk.ids)] = chunk.ids
        mask = np.ones((1, chunk.start + ids.shape[1]), dtype=np.int64)
        rows = np.ascontiguousarray(chunk.rows)
        return self._run({"input_ids": ids, "attention_mask": mask, "choice_rows": rows})

    def _run(self, inputs: dict[str, npt.NDArray[np.int64]]) -> Floats:
        binding = self._binding
        assert binding is not None
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        logits = np.empty((len(inputs["choice_rows"]), 2), dtype=self._logits)
        binding.bind_output("choice_logits", "cpu", 0, self._logits, logits.shape, logits.ctypes.data)
        binding.synchronize_inputs()
        self._session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return logits.astype(np.float32)

    def _allocate(self, capacity: int) -> None:
        """Bind memory for keys and values. Past and present are the same memory, so nothing is copied."""
        from onnxruntime import OrtValue

        prepared, self._capacity = self._prepared, capacity
        shape = [1, prepared.kv_heads, capacity, prepared.head_dim]
        self._binding = self._session.io_binding()
        for name in prepared.cache_names:
            value: OrtValue = OrtValue.ortvalue_from_shape_and_type(shape, _TYPES[prepared.dtype], prepared.device, 0)
            self._binding.bind_ortvalue_input(f"past_key_values.{name}", value)
            self._binding.bind_ortvalue_output(f"present.{name}", value)
