"""Open the onnxruntime session of a prepared graph on its device, and say how much memory there is.

On a GPU, the driver is asked, and errors say why onnxruntime cannot use it.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import GPU_EXTRA, MANIFEST, check_runtime
from scrapy_dripper.engines.qwen3.folder import EXPORT, Prepared
from scrapy_dripper.machine import free_memory

if TYPE_CHECKING:
    import onnxruntime

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
