"""Open the onnxruntime session of a prepared graph on the requested device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scrapy_dripper.engines import cuda
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.runtime import check_runtime
from scrapy_dripper.machine import free_memory

if TYPE_CHECKING:
    import onnxruntime

CPU = "CPUExecutionProvider"
CUDA_SHARE, CPU_SHARE = 0.85, 0.5
"""Shares of the free memory that an engine may use. It shares the machine's memory with the crawl, but not a GPU's."""
UNKNOWN_MEMORY = 2 << 30
"""Bytes that count as free if the system does not report its free memory."""
_NO_MEMORY = ("allocate memory", "out of memory", "bad allocation", "bad_alloc", "ALLOC_FAILED")


class Graph(Protocol):
    """A graph in a prepared folder."""

    @property
    def folder(self) -> Path:
        """The prepared folder."""

    @property
    def graph(self) -> Path:
        """The file of the graph."""

    @property
    def device(self) -> str:
        """The device that it was exported for: ``cuda`` or ``cpu``."""

    @property
    def runtime(self) -> str:
        """The oldest version of onnxruntime that supports all its operators, such as ``1.28``."""


def open_graph(
    made: Graph, device: str, threads: int, who: str, settings: dict[str, str] | None = None
) -> onnxruntime.InferenceSession:
    """Return a session on a device: ``cpu``, ``cuda``, or ``auto`` for the device that the graph was exported for.

    ``settings`` are options of the CUDA provider. Raise :exc:`ModelError` if the session would run on another device or
    cannot be created.
    """
    check_runtime(who)
    import onnxruntime

    device = made.device if device == "auto" else device
    if device != made.device:
        raise ModelError(
            f"The model in {made.folder} was exported for {made.device}: set DRIPPER_DEVICE to 'auto', or "
            f"export it again with '--device {device}'"
        )
    _check_version(made, onnxruntime.__version__)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a pattern would be kept for each shape, and nearly every pass has a new one
    options.log_severity_level = 4  # failures also raise exceptions, and some are expected
    providers: list[Any] = [CPU]
    if device == "cuda":
        cuda.check_provider()
        providers = [(cuda.CUDA, {"arena_extend_strategy": "kSameAsRequested", **(settings or {})}), CPU]
    try:
        session = onnxruntime.InferenceSession(str(made.graph), options, providers=providers)
    except Exception as error:  # onnxruntime has its own exception types
        if is_no_memory(error):
            raise no_room(made, error) from None
        raise ModelError(
            f"onnxruntime cannot load {made.graph} ({error}): export the model again with 'scrapy-dripper export'"
        ) from None
    if device == "cuda" and cuda.CUDA not in session.get_providers():
        raise cuda.not_started()
    return session


def is_no_memory(error: Exception) -> bool:
    """Return True if an error means that there is not enough memory. onnxruntime has no exception type for that."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def no_room(made: Graph, error: Exception) -> ModelError:
    """Return the error for a model that does not fit into the free memory."""
    free = free_bytes(made.device)
    known = "" if free is None else f"; {free / (1 << 30):.1f} GiB are free now"
    return ModelError(
        f"The model in {made.folder} does not fit into the memory of its device ({error}){known}: stop other programs "
        "that use it ('nvidia-smi' lists those on a GPU), or use a larger device"
    )


def usable_memory(device: str) -> float:
    """Return how many bytes of a device's memory an engine may use."""
    free = free_bytes(device)
    return (CUDA_SHARE if device == "cuda" else CPU_SHARE) * (UNKNOWN_MEMORY if free is None else free)


def free_bytes(device: str) -> int | None:
    """Return how many bytes of a device's memory are free, or None if that is unknown."""
    return cuda.free_memory() if device == "cuda" else free_memory()


def _check_version(made: Graph, installed: str) -> None:
    """Raise ModelError if onnxruntime is too old for the graph. Its own message would not say so."""
    package = {"cuda": "onnxruntime-gpu", "cpu": "onnxruntime"}[made.device]
    if _numbers(installed) < _numbers(made.runtime):
        older = " or, if the driver is for CUDA 12, export the model again with '--cuda 12'"
        raise ModelError(
            f"The model in {made.folder} needs onnxruntime {made.runtime} or later (got {installed}): run 'pip "
            f'install "{package}>={made.runtime}"\'' + (older if made.device == "cuda" else "")
        )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]
