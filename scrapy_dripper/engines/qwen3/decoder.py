"""Run the model: passes over a sequence whose keys and values stay on the device, and what to do if they fail.

GroupQueryAttention writes keys and values in place, into buffers of a fixed size. The tokens at the start of all
prompts are read once for all pages: their keys and values stay where they are, and those of a page follow them.

With CUDA graphs, a short pass behind other tokens has one of a few shapes, so that a GPU can repeat the first pass of
each: the same kernels at the same addresses. What it repeats must not depend on the text. The length of the text does
not, because the mask has the length of the buffers, and GroupQueryAttention takes from its sum, on the GPU, where the
text ends.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_dripper.engines.base import EngineError, EngineLostError, ModelError, PrecisionError
from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids, Prompt
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask, Floats, decode
from scrapy_dripper.engines.qwen3.session import CUDA, is_no_memory, no_room, open_session, tokens_that_fit

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, OrtValue, RunOptions

logger = logging.getLogger(__name__)

GRANULE = 64
"""The capacity of the buffers is a multiple of this number of tokens."""
CHUNK = {"cuda": 256, "cpu": 1}
"""A pass reads a multiple of this number of tokens. It is padded after the text.

onnxruntime may use cuDNN's attention, which makes a plan for each combination of tokens and capacity. Without this,
nearly every page has a new one.
"""
PIECE = {"cuda": 4096, "cpu": 512}
"""A pass reads at most this number of tokens, and a longer text is read in several, so that its length only determines
the memory of its keys and values."""
REPEATED = (256, 1024)
"""Numbers of tokens of the passes that CUDA graphs repeat."""
_NO_GRAPH = -1

_NONE: Ids = np.zeros(0, dtype=np.int64)
_TYPES = {"float16": np.float16, "bfloat16": 16, "float32": np.float32, "int8": np.int8, "float8e4m3fn": 17}
"""Types as onnxruntime accepts them. Those that numpy does not have are given by their number in ONNX."""


class _Bound(NamedTuple):
    """A pass of one shape, with memory for its inputs and its logits."""

    binding: IOBinding
    inputs: dict[str, OrtValue]
    logits: OrtValue
    options: RunOptions


class Passes:
    """A model for :func:`~scrapy_dripper.engines.qwen3.loop.decode`. It processes one sequence at a time.

    Tokens and capacity are rounded up, so that there are few combinations of them (:data:`CHUNK`).
    """

    def __init__(self, session: InferenceSession, prepared: Prepared, shared: Ids = _NONE) -> None:
        """``shared`` are the first tokens of all prompts."""
        self._session, self._prepared, self._shared = session, prepared, shared
        self.most = prepared.context
        """Maximum number of tokens of a sequence."""
        types = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
        self._logits = types[next(one.type for one in session.get_outputs() if one.name == "choice_logits")]
        options: dict[str, dict[str, str]] = session.get_provider_options()
        self.device_id = int(options.get(CUDA, {}).get("device_id", 0))
        """Number of the GPU."""
        self._numbers = count(1)
        self.release()

    def release(self) -> None:
        """Give back all keys and values, and forget the graphs that use them."""
        self._cache: dict[str, OrtValue] = {}
        self._graphs: dict[int, _Bound] = {}
        self._capacity = 0
        self._has_shared = False

    def warm_up(self) -> None:
        """Read the longest piece, for whose pass onnxruntime keeps the memory. Later ones need no more than that."""
        size = min(PIECE[self._prepared.device], self.most)
        self.begin(size)
        self.forward(0, np.zeros(size, dtype=np.int64), np.array([size - 1]))

    def begin(self, length: int, prompt: Ids = _NONE) -> int:
        """Allocate the capacity for a new sequence of the given length. Return how many tokens of its prompt are read.

        These are the shared ones, or none. They are always read in a pass of their own, so that a page's logits do not
        depend on the pages before it.
        """
        if self._capacity < length:
            self.release()  # frees before it allocates
            capacity = max(length, min(1 << (length - 1).bit_length(), self.most))
            self._allocate(math.ceil(capacity / GRANULE) * GRANULE)
        start = len(self._shared)
        if not start or not np.array_equal(prompt[:start], self._shared):
            self._has_shared = False  # the sequence will be written over them
            return 0
        if not self._has_shared:
            self.forward(0, self._shared, np.array([start - 1]))
            self._has_shared = True
        return start

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Read tokens after the cached ones, in pieces; return float32 logits [rows, 2] of main and other."""
        size = PIECE[self._prepared.device]
        found = [np.zeros((0, 2), dtype=np.float32)]
        for first in range(0, len(ids), size):
            piece = ids[first : first + size]
            here = rows[(rows >= first) & (rows < first + size)] - first
            # A graph gives logits for at least one row.
            logits = self._pass(start + first, piece, here if len(here) else np.array([len(piece) - 1]))
            found.append(logits[: len(here)])
        return np.concatenate(found)

    def _pass(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Read tokens in one pass.

        The graph reads padding as text. That has no effect, because no earlier token attends to it, and the next tokens
        overwrite it.
        """
        step, end = CHUNK[self._prepared.device], min(self._capacity, self._prepared.context)
        # There are no positions beyond the context.
        size, choices = min(math.ceil(len(ids) / step) * step, end - start), len(rows)
        total = start + size
        repeated = [n for n in REPEATED if len(ids) <= n <= end - start] if self._prepared.cuda_graphs and start else []
        if repeated:
            size = choices = repeated[0]
            total = end
        padded = np.zeros((1, size), dtype=np.int64)
        padded[0, : len(ids)] = ids
        mask = np.zeros((1, total), dtype=np.int64)
        mask[0, : start + size] = 1
        places = np.zeros(choices, dtype=np.int64)
        places[: len(rows)] = rows
        return self._run({"input_ids": padded, "attention_mask": mask, "choice_rows": places}, bool(repeated))[
            : len(rows)
        ]

    def _run(self, inputs: dict[str, Ids], is_repeated: bool) -> Floats:
        """Run a pass. One that is repeated has the memory, and the number, of the first one of its shape."""
        size = inputs["input_ids"].shape[1]
        bound = self._graphs.get(size) if is_repeated else None
        if bound is None:
            bound = self._bound(inputs, next(self._numbers) if is_repeated else _NO_GRAPH)
        if is_repeated:
            self._graphs[size] = bound
        for name, value in inputs.items():
            bound.inputs[name].update_inplace(value)
        self._session.run_with_iobinding(bound.binding, bound.options)
        logits: Floats = bound.logits.numpy().astype(np.float32)
        return logits

    def _bound(self, inputs: dict[str, Ids], number: int) -> _Bound:
        """Return a pass for inputs of these shapes. Past and present are the same memory, so nothing is copied."""
        from onnxruntime import RunOptions

        binding, options = self._session.io_binding(), RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(number))
        for name, value in self._cache.items():
            binding.bind_ortvalue_input(f"past_key_values.{name}", value)
            binding.bind_ortvalue_output(f"present.{name}", value)
        given = {name: self._allocated(value.shape, np.int64) for name, value in inputs.items()}
        for name, value in given.items():
            binding.bind_ortvalue_input(name, value)
        logits = self._allocated((*inputs["choice_rows"].shape, 2), self._logits)
        binding.bind_ortvalue_output("choice_logits", logits)
        return _Bound(binding, given, logits, options)

    def _allocate(self, capacity: int) -> None:
        """Allocate memory for keys and values."""
        prepared, self._capacity = self._prepared, capacity
        shape = (1, prepared.kv_heads, capacity, prepared.head_dim)
        kind = _TYPES[prepared.cache_dtype]
        self._cache = {name: self._allocated(shape, kind) for name in prepared.cache_names}

    def _allocated(self, shape: tuple[int, ...], kind: object) -> OrtValue:
        from onnxruntime import OrtValue

        value: OrtValue = OrtValue.ortvalue_from_shape_and_type(shape, kind, self._prepared.device, self.device_id)
        return value


class Decoder:
    """Labels the blocks of prompts. It needs neither pages nor the tagger, so it can run in a separate process."""

    def __init__(self, prepared: Prepared, device: str | None = None) -> None:
        """Open a prepared model on a device, by default the first of its kind. Raise :exc:`ModelError` if it does not
        run as configured.
        """
        self.prepared = prepared
        tokenizer = prepared.tokenizer()
        self.grammar = Grammar(tokenizer, prepared.answer)
        self.prompt = Prompt(tokenizer, prepared.prompt)
        around = len(self.prompt.encode([""])[0])
        passes = Passes(open_session(prepared, device), prepared, self.prompt.shared)
        self.passes: Passes | None = passes
        try:
            passes.warm_up()
            self.limit = passes.most = min(prepared.context, tokens_that_fit(prepared, passes.device_id))
            """Maximum number of tokens of a prompt together with its answer."""
            has_room = self.limit - around > self.grammar.length(1)
            if has_room:
                self._smoke()
        except Exception as error:
            if is_no_memory(error):
                raise no_room(prepared, error, passes.device_id) from None
            raise ModelError(
                f"The model in {prepared.folder} does not run ({self._explained(error)}): see what 'scrapy-dripper "
                "export --check' says, and export it again"
            ) from None
        if not has_room:
            raise ModelError(
                f"The model in {prepared.folder} has no room for pages: it takes {self.limit:,} tokens here, and its "
                f"prompt has {around:,} without a page"
            )

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""
        return [self._decode(task) for task in tasks]

    def close(self) -> None:
        """Release the session and its memory. Further calls have no effect."""
        self.passes = None

    def _decode(self, task: DecodeTask) -> Decoded | EngineError:
        """Decode a task. If that fails, mostly for lack of memory, retry it once. If that fails too, test the model.

        A model that cannot label two blocks is lost. Its process is then ended. One in the program's own process is
        tried again, because another program may have used the memory of the device.
        """
        found = self._tried(task)
        if isinstance(found, EngineError) and not isinstance(found, PrecisionError):  # which a retry would repeat
            found = self._tried(task)
            if isinstance(found, EngineError):
                try:
                    self._smoke()
                except Exception as error:
                    return EngineLostError(f"the model no longer runs ({type(error).__name__}: {error})")
        return found

    def _tried(self, task: DecodeTask) -> Decoded | EngineError:
        try:
            return self._passes_over(task)
        except PrecisionError as error:
            return PrecisionError(self._explained(error))
        except Exception as error:  # onnxruntime has its own exception types, but none for a lack of memory
            logger.debug("passes over a prompt failed", exc_info=True)
            return EngineError(f"{type(error).__name__}: {error}")

    def _passes_over(self, task: DecodeTask, lookahead: int | None = None) -> Decoded:
        passes = self.passes
        if passes is None:
            raise RuntimeError("the model was closed")
        try:
            return decode(passes, task, lookahead, passes.begin(len(task), task.prompt))
        except Exception:
            passes.release()
            raise

    def _smoke(self) -> None:
        """Decode two blocks, in two passes. Raise any exception if that fails."""
        (prompt,) = self.prompt.encode(['<p _item_id="1">a</p><p _item_id="2">b</p>'])
        draft = np.zeros(2, dtype=np.bool_)
        self._passes_over(DecodeTask(prompt, self.grammar.answer(2), draft), 0)

    def _explained(self, error: Exception) -> str:
        """Return the message of an error, with advice if the data type of the model caused it."""
        if isinstance(error, PrecisionError) and self.prepared.dtype == "float16":
            return f"{error}: fp16 ends at 65,504; export the model with '--dtype bf16', which does not"
        return str(error)
