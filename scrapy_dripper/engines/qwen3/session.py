"""The onnxruntime session of a prepared model: the right provider or an error, and how much memory there is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3 import cuda
from scrapy_dripper.engines.qwen3.prepared import MANIFEST, Prepared
from scrapy_dripper.engines.runtime import check_runtime

if TYPE_CHECKING:
    import onnxruntime

CPU = "CPUExecutionProvider"
CUDA_SHARE, CPU_SHARE = 0.85, 0.5
"""Shares of the free memory that the engine takes: a GPU is its own, the machine's memory is the crawl's too."""
UNKNOWN_MEMORY = 2 << 30  # bytes, where the system does not say how much is free
SCORES = 6
"""Score matrices [heads, S, S] that a plain graph holds at a time, and a little; 5.4 were measured."""


def open_session(
    prepared: Prepared, device: str, threads: int, sdpa_kernel: int | None = None
) -> onnxruntime.InferenceSession:
    """Return a session on the device that was asked for: ``cpu``, ``cuda`` or ``auto``, the one of the folder.

    ``sdpa_kernel`` is the option of that name of the CUDA provider: which attention kernels it may run.
    Raise :exc:`ModelError`, saying what to do, if it would run anywhere else, or not at all.
    """
    check_runtime("The Qwen3 engine")
    import onnxruntime

    device = prepared.device if device == "auto" else device
    if device != prepared.device:
        raise ModelError(
            f"The model in {prepared.folder} was exported for {prepared.device}: set DRIPPER_DEVICE to 'auto', or "
            f"export it again with '--device {device}'"
        )
    _check_version(prepared, onnxruntime.__version__)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # nearly every pass has a shape of its own: a pattern would be kept for each
    options.log_severity_level = 4  # what goes wrong in a pass is an exception, and some are expected
    providers: list[Any] = [CPU]
    if device == "cuda":
        cuda.check_provider()
        settings = {"arena_extend_strategy": "kSameAsRequested"}
        if sdpa_kernel is not None:
            settings["sdpa_kernel"] = str(sdpa_kernel)
        providers = [(cuda.CUDA, settings), CPU]
    try:
        session = onnxruntime.InferenceSession(str(prepared.graph), options, providers=providers)
    except Exception as error:  # onnxruntime raises types of its own for every kind of damage
        raise ModelError(
            f"onnxruntime cannot load {prepared.graph} ({error}): export the model again with 'scrapy-dripper export'"
        ) from None
    if device == "cuda" and cuda.CUDA not in session.get_providers():
        raise cuda.not_started()
    _check_graph(session, prepared)
    return session


def _check_version(prepared: Prepared, installed: str) -> None:
    """Raise ModelError if this onnxruntime is older than the graph needs: its own message would not say so."""
    package = {"cuda": "onnxruntime-gpu", "cpu": "onnxruntime"}[prepared.device]
    if _numbers(installed) < _numbers(prepared.runtime):
        older = " or, if the driver is for CUDA 12, export the model again with '--cuda 12'"
        raise ModelError(
            f"The model in {prepared.folder} needs onnxruntime {prepared.runtime} or later (got {installed}): run 'pip "
            f'install "{package}>={prepared.runtime}"\'' + (older if prepared.device == "cuda" else "")
        )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]


def _check_graph(session: onnxruntime.InferenceSession, prepared: Prepared) -> None:
    """Raise ModelError unless the graph's inputs and outputs are those that the manifest makes expect.

    The graph is given memory for keys and values by these numbers, and onnxruntime does not compare all of them.
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
    """Return how many tokens fit into a share of the device's free memory: keys and values, and a pass over them.

    A pass needs about as much for each token as its keys and values take (Qwen3-0.6B: 112 KiB and 72 KiB), and a plain
    graph its score matrices besides.
    """
    if prepared.device == "cuda":
        free, share = cuda.free_memory(), CUDA_SHARE
    else:
        free, share = free_memory(), CPU_SHARE
    usable = share * (UNKNOWN_MEMORY if free is None else free)
    linear = 2 * prepared.token_bytes
    if prepared.attention == "gqa":
        return int(usable / linear)
    heads = 2 * prepared.kv_heads  # as in all Qwen3 models up to 1.7B; a guess for others
    square = SCORES * heads * prepared.number_bytes
    return int((math.sqrt(linear**2 + 4 * square * usable) - linear) / (2 * square))


def free_memory() -> int | None:
    """Return the bytes of memory that this process can still have, as Linux says; None if that is not known."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        found += [int(limit)] if limit != "max" else []
    except (OSError, ValueError):
        pass
    return min(found, default=None)
