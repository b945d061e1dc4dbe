"""The onnxruntime session of a prepared model: the right provider or an error, and how much memory there is."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.prepared import MANIFEST, Prepared
from scrapy_dripper.engines.runtime import check_runtime

if TYPE_CHECKING:
    import onnxruntime

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
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
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # nearly every pass has a shape of its own: a pattern would be kept for each
    options.log_severity_level = 4  # what goes wrong in a pass is an exception, and some are expected
    providers: list[Any] = [CPU]
    if device == "cuda":
        _preload_cuda()
        cuda = {"arena_extend_strategy": "kSameAsRequested"}
        if sdpa_kernel is not None:
            cuda["sdpa_kernel"] = str(sdpa_kernel)
        providers = [(CUDA, cuda), CPU]
    try:
        session = onnxruntime.InferenceSession(str(prepared.graph), options, providers=providers)
    except Exception as error:  # onnxruntime raises types of its own for every kind of damage
        raise ModelError(
            f"onnxruntime cannot load {prepared.graph} ({error}): export the model again with 'scrapy-dripper export'"
        ) from None
    if device == "cuda" and CUDA not in session.get_providers():
        raise _no_cuda("it could not be started")
    _check_graph(session, prepared)
    return session


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
    kind = {"float16": "tensor(float16)", "float32": "tensor(float)"}[prepared.dtype]
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


def _preload_cuda() -> None:
    """Load the CUDA libraries that come as wheels. Raise ModelError if this onnxruntime knows no CUDA."""
    import onnxruntime

    if CUDA not in onnxruntime.get_available_providers():
        raise _no_cuda("this onnxruntime was built without it")
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()


def _no_cuda(why: str) -> ModelError:
    # onnxruntime itself would go on with the CPU, hundreds of times slower, without a word.
    return ModelError(
        f"{CUDA} was asked for, but {why}: run 'pip uninstall onnxruntime onnxruntime-gpu', then 'pip install "
        "scrapy-dripper[gpu]', and see with 'python -c \"import onnxruntime; onnxruntime.preload_dlls()\"' which CUDA "
        "library is missing"
    )


def tokens_that_fit(prepared: Prepared) -> int:
    """Return how many tokens fit into a share of the device's free memory: keys and values, and a pass over them.

    A pass needs about as much for each token as its keys and values take (Qwen3-0.6B: 112 KiB and 72 KiB), and a plain
    graph its score matrices besides.
    """
    if prepared.device == "cuda":
        free, share = free_cuda_memory(), CUDA_SHARE
    else:
        free, share = free_memory(), CPU_SHARE
    usable = share * (UNKNOWN_MEMORY if free is None else free)
    linear = 2 * prepared.token_bytes
    if prepared.attention == "gqa":
        return int(usable / linear)
    heads = 2 * prepared.kv_heads  # as in all Qwen3 models up to 1.7B; a guess for others
    square = SCORES * heads * (2 if prepared.dtype == "float16" else 4)
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


def free_cuda_memory() -> int | None:
    """Return the free bytes of the first CUDA device, by the driver's account; None if it does not say.

    The driver and not the management library is asked, for it numbers devices as onnxruntime does.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return None
    try:
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return None if failed else free.value
    finally:
        driver.cuDevicePrimaryCtxRelease(0)
