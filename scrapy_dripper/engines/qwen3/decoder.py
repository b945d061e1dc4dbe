"""Run the model: open its session on a device, and decode the labels of pages in few forward passes.

The labels are those of token-by-token decoding. Greedy decoding under the grammar needs the model's choice for each
block, given all labels before it. A causal model gives the choices for a whole draft of the answer in one pass. They
are right up to and including the first one that differs from the draft, because the text before it is the same. So the
loop (:func:`decode`) reads the draft together with the prompt, corrects the first choice that differs, and takes the
model's choices in that pass as the new draft for the rest (Jacobi iteration, as in Santilli et al., ACL 2023), until
nothing differs. A right draft takes one pass, and the worst one takes a pass per block.

In floating point, the number of tokens in a pass changes the last bits of the logits. If the logits of main and other
are nearly equal, this could change a label. ``benchmarks/gpu.py`` searches for such cases.

A pass (:class:`Passes`) reads a sequence whose keys and values stay on the device. GroupQueryAttention writes them in
place, into buffers of a fixed size. The tokens at the start of all prompts are read once for all pages: their keys and
values stay where they are, and those of a page follow them.

With CUDA graphs, a short pass behind other tokens has one of a few shapes, so that a GPU can repeat the first pass of
each: the same kernels at the same addresses. What it repeats must not depend on the text. The length of the text does
not, because the mask has the length of the buffers, and GroupQueryAttention takes from its sum, on the GPU, where the
text ends.

To open a session on a GPU, the driver is asked, and errors say why onnxruntime cannot use it.
"""

from __future__ import annotations

import ctypes
import logging
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import EngineError, EngineLostError, ModelError, PrecisionError
from scrapy_dripper.engines.files import GPU_EXTRA, MANIFEST, check_runtime
from scrapy_dripper.engines.qwen3.folder import EXPORT, Prepared
from scrapy_dripper.engines.qwen3.grammar import AnswerTokens, Grammar, Ids, Prompt
from scrapy_dripper.machine import free_memory

if TYPE_CHECKING:
    import onnxruntime
    from onnxruntime import InferenceSession, IOBinding, OrtValue, RunOptions

logger = logging.getLogger(__name__)

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


class CausalModel(Protocol):
    """A causal model that caches the tokens that it has read."""

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        """Read tokens from position ``start`` on, in place of those that were read there before.

        Return float32 logits [rows, 2] of main and other. ``rows`` are the indices of the tokens after which a label is
        chosen.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DecodeTask:
    """One page to decode: its prompt, the tokens of its answer, and a draft of its n labels (True for main)."""

    prompt: Ids
    answer: AnswerTokens
    draft: Bools

    def __len__(self) -> int:
        """Return the maximum number of tokens that the model reads: all except the last label."""
        return len(self.prompt) + len(self.answer.ids) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The labels of one page, and the work that they took."""

    main: Bools
    """True for each block whose logit of main is the greater one. A tie is other."""
    margins: Floats
    """Logit of main minus logit of other, for each block."""
    passes: int
    positions: int
    """Number of tokens that the model read in all passes."""
    kept: int
    """Number of labels of the draft that were right."""
    prefill: float = 0.0
    """Seconds of the first pass, which reads the prompt with the draft."""
    rest: float = 0.0
    """Seconds of the other passes."""

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability that each block is main: the softmax over the two logits."""
        p: npt.NDArray[np.float64] = np.exp(-np.logaddexp(0, -self.margins.astype(np.float64)))
        return p


def decode(model: CausalModel, task: DecodeTask, lookahead: int | None = None, start: int = 0) -> Decoded:
    """Return the labels of a page, of whose prompt the model has read the first ``start`` tokens.

    ``lookahead`` limits how many labels of the draft a pass reads beyond the next one to choose; 0 means decoding
    without a draft, with one pass per block. Raise :exc:`PrecisionError` if a logit is not finite.
    """
    answer, n, before = task.answer, len(task.answer), len(task.prompt)
    labels, margins = task.draft.copy(), np.zeros(n, dtype=np.float32)
    seconds: list[float] = []
    fixed = passes = positions = 0  # the first ``fixed`` labels are final, the first ``start`` tokens read
    while fixed < n:
        end = n if lookahead is None else min(fixed + lookahead + 1, n)
        ids = np.concatenate([task.prompt, answer.ids[: answer.places[end - 1]]])
        places = before + answer.places[:end]
        ids[places[:-1]] = np.where(labels[: end - 1], answer.main, answer.other)
        begun = perf_counter()
        logits = model.forward(start, ids[start:], places[fixed:] - 1 - start)
        seconds.append(perf_counter() - begun)
        if not np.isfinite(logits).all():
            raise PrecisionError("the model's logits are not finite")
        passes += 1
        positions += len(ids) - start
        choices = logits[:, 0] > logits[:, 1]
        margins[fixed:end] = logits[:, 0] - logits[:, 1]
        # Up to the first choice that differs from the draft, they are final. The others become the new draft.
        different = np.flatnonzero(choices != labels[fixed:end])
        labels[fixed:end] = choices
        fixed = fixed + int(different[0]) + 1 if len(different) else end
        start = before + int(answer.places[fixed - 1])
    kept = int((labels == task.draft).sum())
    return Decoded(labels, margins, passes, positions, kept, sum(seconds[:1]), sum(seconds[1:]))


CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
CUDA_SHARE, CPU_SHARE = 0.85, 0.5
"""Shares of the free memory that an engine may use. It shares the machine's memory with the crawl, but not a GPU's."""
UNKNOWN_MEMORY = 2 << 30
"""Bytes that count as free if the system does not report its free memory."""
_NO_MEMORY = ("allocate memory", "out of memory", "bad allocation", "bad_alloc", "ALLOC_FAILED")
Version = tuple[int, int]


def open_session(prepared: Prepared, device: str | None = None) -> onnxruntime.InferenceSession:
    """Return a session on a device of the kind that the graph was exported for, by default the first.

    ``device`` is a value of ``DRIPPER_DEVICE``. Raise :exc:`ModelError` if the session would run on another device,
    cannot be created, or does not match the manifest.
    """
    check_runtime("The Qwen3 engine")
    import onnxruntime

    _check_version(prepared, onnxruntime.__version__)
    kind, _, number = (device or prepared.device).partition(":")
    if (kind == "cpu") != (prepared.device == "cpu"):
        raise ModelError(
            f"DRIPPER_DEVICE is {device!r}, but the model in {prepared.folder} is for {prepared.device}: export it "
            f"with '--device {'cpu' if kind == 'cpu' else 'cuda'}'"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = prepared.threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a pattern would be kept for each shape, and nearly every pass has a new one
    options.log_severity_level = 4  # failures also raise exceptions, and some are expected
    providers: list[Any] = [CPU]
    if prepared.device == "cuda":
        if CUDA not in onnxruntime.get_available_providers():
            raise _no_cuda("this onnxruntime was built without it: the package is onnxruntime, not onnxruntime-gpu")
        if hasattr(onnxruntime, "preload_dlls"):  # loads the CUDA libraries that come as wheels
            onnxruntime.preload_dlls()
        cuda = {"device_id": number or "0", "arena_extend_strategy": "kSameAsRequested"}
        cuda |= {"enable_cuda_graph": "1"} if prepared.cuda_graphs else {}
        providers = [(CUDA, cuda), CPU]
        if kind == "tensorrt":
            providers.insert(0, (TENSORRT, {"device_id": number or "0"}))
    try:
        session = onnxruntime.InferenceSession(str(prepared.graph), options, providers=providers)
    except Exception as error:  # onnxruntime has its own exception types
        if is_no_memory(error):
            raise no_room(prepared, error, int(number or 0)) from None
        raise ModelError(f"onnxruntime cannot load {prepared.graph} ({error}): {EXPORT}") from None
    found = session.get_providers()
    if prepared.device == "cuda" and CUDA not in found:
        built_for = getattr(onnxruntime, "cuda_version", "")
        raise _no_cuda(
            f"it could not be started: there is no NVIDIA driver ('nvidia-smi' shows it), one that is too old for CUDA "
            f"{built_for} (for CUDA 12, there is scrapy-dripper[gpu-cuda12] and '--cuda 12' of the export), or a "
            "library is missing"
        )
    if kind == "tensorrt" and TENSORRT not in found:
        raise ModelError(f"{TENSORRT} could not be started: install its libraries, or use 'cuda' as DRIPPER_DEVICE")
    _check_graph(session, prepared)
    return session


def _check_version(prepared: Prepared, installed: str) -> None:
    """Raise ModelError if onnxruntime is too old for the graph. Its own message would not say so."""
    package = {"cuda": "onnxruntime-gpu", "cpu": "onnxruntime"}[prepared.device]
    if _version(installed) < _version(prepared.runtime):
        older = " or, if the driver is for CUDA 12, export the model again with '--cuda 12'"
        raise ModelError(
            f"The model in {prepared.folder} needs onnxruntime {prepared.runtime} or later (got {installed}): run 'pip "
            f'install "{package}>={prepared.runtime}"\'' + (older if prepared.device == "cuda" else "")
        )


def _version(text: str) -> Version:
    """Return the first two numbers of a version."""
    major, minor, *_ = (int(part) for part in text.split(".")[:2])
    return major, minor


def _check_graph(session: onnxruntime.InferenceSession, prepared: Prepared) -> None:
    """Raise ModelError unless the graph's inputs and outputs match the manifest.

    The manifest determines the memory for keys and values, and onnxruntime does not check all of these sizes.
    """
    names = prepared.cache_names
    inputs = {one.name: one for one in session.get_inputs()}
    outputs = {one.name for one in session.get_outputs()}
    past = [one for name, one in inputs.items() if name.startswith("past_key_values.")]
    kind = "tensor(float)" if prepared.cache_dtype == "float32" else f"tensor({prepared.cache_dtype})"
    sizes = {1: prepared.kv_heads, 3: prepared.head_dim}
    if (
        set(inputs) != {"input_ids", "attention_mask", "choice_rows", *(f"past_key_values.{name}" for name in names)}
        or outputs != {"choice_logits", *(f"present.{name}" for name in names)}
        or any(one.type != kind for one in past)
        or any(isinstance(one.shape[i], int) and one.shape[i] != size for one in past for i, size in sizes.items())
    ):
        raise ModelError(f"{prepared.graph} is not what {prepared.folder / MANIFEST} says: {EXPORT}")


# ---------------------------------------------------------------------- memory
def tokens_that_fit(prepared: Prepared, device_id: int = 0) -> int:
    """Return for how many tokens the keys and values fit into a share of the device's free memory.

    The memory of a pass is no longer free by then (:meth:`~scrapy_dripper.engines.qwen3.decoder.Passes.warm_up`).
    """
    free = _free_bytes(prepared, device_id)
    usable = (CUDA_SHARE if prepared.device == "cuda" else CPU_SHARE) * (UNKNOWN_MEMORY if free is None else free)
    return int(usable / prepared.token_bytes)


def is_no_memory(error: Exception) -> bool:
    """Return True if an error means that there is not enough memory. onnxruntime has no exception type for that."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def no_room(prepared: Prepared, error: Exception, device_id: int = 0) -> ModelError:
    """Return the error for a model that does not fit into the free memory."""
    free = _free_bytes(prepared, device_id)
    known = "" if free is None else f"; {free / (1 << 30):.1f} GiB are free now"
    return ModelError(
        f"The model in {prepared.folder} does not fit into the memory of its device ({error}){known}: stop other "
        "programs that use it ('nvidia-smi' lists those on a GPU), or use a larger device"
    )


def _free_bytes(prepared: Prepared, device_id: int) -> int | None:
    return free_cuda_memory(device_id) if prepared.device == "cuda" else free_memory()


# ---------------------------------------------------------------------- CUDA
def _no_cuda(why: str) -> ModelError:
    """Return the error for missing CUDA, with advice."""
    # onnxruntime itself would silently continue on the CPU.
    return ModelError(
        f"{CUDA} was asked for, but {why}: run 'pip uninstall onnxruntime onnxruntime-gpu', then 'pip install "
        f"scrapy-dripper[{GPU_EXTRA}]'; 'python -c \"import onnxruntime; onnxruntime.preload_dlls()\"' shows which "
        "CUDA library is missing"
    )


def free_cuda_memory(device_id: int = 0) -> int | None:
    """Return the free memory of a CUDA device in bytes, or None if the driver does not report it.

    This asks the driver instead of the management library (NVML), because the driver numbers devices as onnxruntime
    does.
    """
    driver = _driver()
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    if driver is None or driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device_id):
        return None
    try:
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return None if failed else free.value
    finally:
        driver.cuDevicePrimaryCtxRelease(device_id)


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


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
    """A model for :func:`decode`. It processes one sequence at a time.

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
