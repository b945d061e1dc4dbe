"""Run forward passes of a graph over several sequences, with keys and values that stay on the device.

A graph with GroupQueryAttention writes them in place, into buffers of a fixed size. It only accepts several sequences
if none has been read before (onnxruntime: "batch_size must be 1 when sequence_length > 1 and past context is given").
So sequences are read together once, and then one by one. A plain graph returns longer copies, and accepts several
sequences at any time. Both are padded on the right, because GroupQueryAttention reads padding on the left as text.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper.engines.qwen3.loop import Chunk, Floats
from scrapy_dripper.engines.qwen3.prepared import Prepared

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, OrtValue

GRANULE = 64
"""The capacity of buffers is a multiple of this number of tokens, so that the part of each sequence is aligned."""
CHUNK = {"cuda": 256, "cpu": 1}
"""A pass with GroupQueryAttention reads a multiple of this number of tokens. It is padded after the text.

From onnxruntime 1.28 on, compute capability 9.0 and above uses cuDNN's attention, with a plan for each combination of
sequences, tokens and capacity. Creating a plan takes 40 to 400 ms, and nearly every page would need a new one.
"""

_TYPES = {"float16": np.float16, "bfloat16": 16, "float32": np.float32}
"""Types as onnxruntime accepts them. numpy has no bfloat16, so it is given by its number in ONNX."""


class Passes(ABC):
    """A model for :func:`~scrapy_dripper.engines.qwen3.loop.decode`. It processes one set of sequences at a time."""

    def __init__(self, session: InferenceSession, prepared: Prepared, shared: Ids, most: int | None = None) -> None:
        """``most`` is the maximum number of tokens of a sequence, by default the model's context."""
        self._session, self._prepared, self._shared = session, prepared, shared
        self._most = most or prepared.context
        types = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
        self._logits = types[next(one.type for one in session.get_outputs() if one.name == "choice_logits")]

    @abstractmethod
    def begin(self, lengths: Sequence[int], *, shared: bool) -> int:
        """Forget all sequences, and allocate the capacity for new ones of the given lengths.

        With ``shared``, all of them begin with the shared prefix. Return how many tokens of each have already been read
        in an earlier pass: 0, or the length of the prefix.
        """

    @abstractmethod
    def forward(self, chunks: Sequence[Chunk]) -> list[Floats]:
        """Read chunks of different sequences; return, for each, float32 logits [rows, 2] of main and other."""

    @abstractmethod
    def release(self) -> None:
        """Give back all keys and values."""

    def _run(self, binding: IOBinding, inputs: dict[str, npt.NDArray[np.int64]]) -> Floats:
        """Run the graph with these inputs in addition to the bound ones, and return the logits."""
        logits = np.empty((len(inputs["choice_rows"]), 2), dtype=self._logits)
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        binding.bind_output("choice_logits", "cpu", 0, self._logits, logits.shape, logits.ctypes.data)
        binding.synchronize_inputs()
        self._session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return logits.astype(np.float32)


def open_passes(session: InferenceSession, prepared: Prepared, shared: Ids, most: int | None = None) -> Passes:
    """Return the passes that suit the graph of a model, for sequences of at most ``most`` tokens."""
    return (GqaPasses if prepared.attention == "gqa" else PlainPasses)(session, prepared, shared, most)


class GqaPasses(Passes):
    """Passes of a graph that writes keys and values in place.

    Tokens and capacity are rounded up, so that there are few combinations of them (:data:`CHUNK`).
    """

    def __init__(self, session: InferenceSession, prepared: Prepared, shared: Ids, most: int | None = None) -> None:
        super().__init__(session, prepared, shared, most)
        self.release()

    def release(self) -> None:
        """Give back all keys and values."""
        # The buffers for one sequence keep the shared prefix at their beginning, page after page.
        self._single = self._group = self._current = _Buffers(self._prepared, 0)
        self._width = 0
        self._prefixed = False

    def begin(self, lengths: Sequence[int], *, shared: bool) -> int:
        """Allocate the capacity. A single sequence begins after the cached prefix, and several sequences do not."""
        capacity = self._capacity(max(lengths))
        if len(lengths) > 1:
            if self._group.tokens < len(lengths) * capacity:
                self._group = self._current = _Buffers(self._prepared, 0)  # frees before it allocates
                self._group = _Buffers(self._prepared, len(lengths) * capacity)
            self._current, self._width = self._group, capacity
            return 0
        if self._single.tokens < capacity:
            self._single = self._current = _Buffers(self._prepared, 0)
            self._single = _Buffers(self._prepared, capacity)
            self._prefixed = False
        self._current, self._width = self._single, self._single.tokens
        self._prefixed &= shared
        if shared and not self._prefixed:
            self._read(Chunk(0, 0, self._shared, np.zeros(1, dtype=np.int64)))
            self._prefixed = True
        return len(self._shared) if shared else 0

    def forward(self, chunks: Sequence[Chunk]) -> list[Floats]:
        """Read the beginnings of several sequences together, and everything else one by one."""
        together = all(chunk.start == 0 and chunk.sequence == i for i, chunk in enumerate(chunks))
        if len(chunks) == 1 or not together:
            return [self._read(chunk) for chunk in chunks]
        longest = max(len(chunk.ids) for chunk in chunks)
        ids, real = _padded([chunk.ids for chunk in chunks], self._rounded(longest, 0))
        logits = self._run(
            self._current.binding(self._session, 0, len(chunks), self._width),
            {"input_ids": ids, "attention_mask": real.astype(np.int64), "choice_rows": _rows(chunks, ids.shape[1])},
        )
        return _split(logits, chunks)

    def _read(self, chunk: Chunk) -> Floats:
        """Read a chunk of one sequence after its cached tokens.

        The graph reads padding as text. That has no effect, because no earlier token attends to it, and the next chunk
        overwrites it.
        """
        ids, _ = _padded([chunk.ids], self._rounded(len(chunk.ids), chunk.start))
        return self._run(
            self._current.binding(self._session, chunk.sequence, 1, self._width),
            {
                "input_ids": ids,
                "attention_mask": np.ones((1, chunk.start + ids.shape[1]), dtype=np.int64),
                "choice_rows": np.ascontiguousarray(chunk.rows),
            },
        )

    def _rounded(self, tokens: int, start: int) -> int:
        """Return the number of tokens of a pass with padding, given its tokens and its first position."""
        chunk = CHUNK[self._prepared.device]
        return min(math.ceil(tokens / chunk) * chunk, min(self._width, self._prepared.context) - start)

    def _capacity(self, tokens: int) -> int:
        """Return the capacity for a sequence: a power of 2, or the capacity for the longest sequence."""
        capacity = max(tokens, min(1 << (tokens - 1).bit_length(), self._most))
        return math.ceil(capacity / GRANULE) * GRANULE


class _Buffers:
    """Memory for the keys and values of a number of tokens, divided among the sequences of each batch."""

    def __init__(self, prepared: Prepared, tokens: int) -> None:
        self.tokens = tokens
        self._prepared = prepared
        self._values: dict[str, OrtValue] = {}
        self._bound: tuple[tuple[int, int, int], IOBinding] | None = None
        if tokens:
            self._allocate()

    def _allocate(self) -> None:
        from onnxruntime import OrtValue

        prepared = self._prepared
        shape = [1, prepared.kv_heads, self.tokens, prepared.head_dim]
        for name in prepared.cache_names:
            self._values[name] = OrtValue.ortvalue_from_shape_and_type(
                shape, _TYPES[prepared.dtype], prepared.device, 0
            )

    def binding(self, session: InferenceSession, first: int, sequences: int, width: int) -> IOBinding:
        """Return a binding of the keys and values of consecutive sequences, each of ``width`` tokens.

        Past and present are the same memory, so the graph writes new values in place and copies nothing.
        """
        key = first, sequences, width
        if self._bound is not None and self._bound[0] == key:
            return self._bound[1]
        prepared = self._prepared
        shape = [sequences, prepared.kv_heads, width, prepared.head_dim]
        offset = first * math.prod(shape[1:]) * prepared.number_bytes
        binding = session.io_binding()
        for name, value in self._values.items():
            memory = prepared.device, 0, _TYPES[prepared.dtype], shape, value.data_ptr() + offset
            binding.bind_input(f"past_key_values.{name}", *memory)
            binding.bind_output(f"present.{name}", *memory)
        self._bound = key, binding
        return binding


class PlainPasses(Passes):
    """Passes of a graph that returns copies of the past keys and values, followed by the new ones.

    Tokens that a sequence has to forget stay in memory and are masked.
    """

    def __init__(self, session: InferenceSession, prepared: Prepared, shared: Ids, most: int | None = None) -> None:
        super().__init__(session, prepared, shared, most)
        self.release()

    def release(self) -> None:
        """Give back all keys and values."""
        self._values: list[OrtValue] = []
        self._prefix: list[npt.NDArray[Any]] = []
        self._positions = np.zeros((0, 0), dtype=np.int64)

    def begin(self, lengths: Sequence[int], *, shared: bool) -> int:
        """Start every sequence with a copy of the prefix, or with nothing."""
        if shared and not self._prefix:
            self._start(1, [])
            self.forward([Chunk(0, 0, self._shared, np.zeros(1, dtype=np.int64))])
            self._prefix = [value.numpy() for value in self._values]
        self._start(len(lengths), self._prefix if shared else [])
        return self._positions.shape[1]

    def forward(self, chunks: Sequence[Chunk]) -> list[Floats]:
        """Read all chunks in one pass. Sequences without a chunk get padding."""
        sequences = len(self._positions)
        empty = np.zeros(0, dtype=np.int64)
        parts = [empty] * sequences
        for chunk in chunks:
            parts[chunk.sequence] = chunk.ids
            before = self._positions[chunk.sequence]
            before[before >= chunk.start] = _MASKED
        ids, real = _padded(parts, max(map(len, parts)))
        starts = np.zeros((sequences, 1), dtype=np.int64)
        starts[[chunk.sequence for chunk in chunks], 0] = [chunk.start for chunk in chunks]
        positions = starts + np.arange(ids.shape[1])
        self._positions = np.hstack([self._positions, np.where(real, positions, _MASKED)])
        binding = self._session.io_binding()
        for name, value in zip(self._prepared.cache_names, self._values, strict=True):
            binding.bind_ortvalue_input(f"past_key_values.{name}", value)
            binding.bind_output(f"present.{name}", self._prepared.device)
        inputs = {
            "input_ids": ids,
            "attention_mask": (self._positions != _MASKED).astype(np.int64),
            "position_ids": positions,
            "choice_rows": _rows(chunks, ids.shape[1]),
        }
        logits = self._run(binding, inputs)
        self._values = list(binding.get_outputs())[: len(self._values)]
        return _split(logits, chunks)

    def _start(self, sequences: int, prefix: Sequence[npt.NDArray[Any]]) -> None:
        from onnxruntime import OrtValue

        prepared = self._prepared
        if not prefix:
            nothing = np.zeros((1, prepared.kv_heads, 0, prepared.head_dim), dtype=prepared.dtype)
            prefix = [nothing] * (2 * prepared.layers)
        self._values = [
            OrtValue.ortvalue_from_numpy(np.repeat(one, sequences, axis=0), prepared.device, 0) for one in prefix
        ]
        self._positions = np.tile(np.arange(prefix[0].shape[2]), (sequences, 1))


_MASKED = np.iinfo(np.int64).max
"""Position of tokens that no token may attend to."""


def _padded(parts: Sequence[Ids], width: int) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Return sequences as an array [sequences, width], padded on the right, and a mask that is False for padding."""
    real = np.arange(width) < np.array([len(part) for part in parts])[:, None]
    ids = np.zeros(real.shape, dtype=np.int64)
    ids[real] = np.concatenate(parts)
    return ids, real


def _rows(chunks: Sequence[Chunk], width: int) -> Ids:
    """Return the rows of chunks as indices into a flattened array [sequences, width]."""
    return np.concatenate([chunk.sequence * width + chunk.rows for chunk in chunks])


def _split(logits: Floats, chunks: Sequence[Chunk]) -> list[Floats]:
    return np.split(logits, np.cumsum([len(chunk.rows) for chunk in chunks])[:-1])
