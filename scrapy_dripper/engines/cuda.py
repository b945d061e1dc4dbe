"""Query the NVIDIA driver and its device, and find out why onnxruntime cannot use them."""

from __future__ import annotations

import ctypes
import sys

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.runtime import GPU_EXTRA

CUDA = "CUDAExecutionProvider"
Version = tuple[int, int]


def check_provider() -> None:
    """Load the CUDA libraries that come as wheels. Raise ModelError if this onnxruntime has no CUDA provider."""
    import onnxruntime

    if CUDA not in onnxruntime.get_available_providers():
        raise no_cuda("this onnxruntime was built without it: the package is onnxruntime, not onnxruntime-gpu")
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()


def not_started() -> ModelError:
    """Return the error for a session that does not run on CUDA as requested, with the most likely reason."""
    import onnxruntime

    driver, wheel = driver_version(), _version(getattr(onnxruntime, "cuda_version", ""))
    if driver is None:
        return no_cuda(f"there is no NVIDIA driver ({_library()} does not load; 'nvidia-smi' would show the driver)")
    if wheel is not None and driver[0] < wheel[0]:
        return ModelError(
            f"{CUDA} was asked for, but the NVIDIA driver supports CUDA {driver[0]}.{driver[1]} and onnxruntime "
            f"{onnxruntime.__version__} needs {wheel[0]}.{wheel[1]}: update the driver, or run 'pip install "
            "scrapy-dripper[gpu-cuda12]' and export the model again with '--cuda 12'"
        )
    return no_cuda("it could not be started")


def no_cuda(why: str) -> ModelError:
    """Return the error for missing CUDA, with advice."""
    # onnxruntime itself would silently continue on the CPU, hundreds of times slower.
    return ModelError(
        f"{CUDA} was asked for, but {why}: run 'pip uninstall onnxruntime onnxruntime-gpu', then 'pip install "
        f"scrapy-dripper[{GPU_EXTRA}]'; 'python -c \"import onnxruntime; onnxruntime.preload_dlls()\"' shows which "
        "CUDA library is missing"
    )


def driver_version() -> Version | None:
    """Return the newest version of CUDA that the driver supports, or None if there is no driver."""
    driver, version = _driver(), ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)):
        return None
    return version.value // 1000, version.value % 1000 // 10


def free_memory() -> int | None:
    """Return the free memory of the first CUDA device in bytes, or None if the driver does not report it.

    This asks the driver instead of the management library (NVML), because the driver numbers devices as onnxruntime
    does.
    """
    driver = _driver()
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    if driver is None or driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return None
    try:
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return None if failed else free.value
    finally:
        driver.cuDevicePrimaryCtxRelease(0)


def _library() -> str:
    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_library())
    except OSError:
        return None


def _version(text: str) -> Version | None:
    parts = [int(part) for part in text.split(".")[:2] if part.isdecimal()]
    return (parts[0], parts[1]) if len(parts) == 2 else None
