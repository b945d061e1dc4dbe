"""onnxruntime, which comes as one of two distributions that overwrite each other."""

from __future__ import annotations

from importlib import metadata

from scrapy_dripper.engines.base import ModelError


def check_runtime(who: str) -> None:
    """Raise ModelError unless exactly one distribution of onnxruntime is installed and can be imported."""
    found = [name for name in ("onnxruntime", "onnxruntime-gpu") if _installed(name)]
    if len(found) == 2:
        raise ModelError(
            "Both onnxruntime and onnxruntime-gpu are installed and overwrite each other: "
            "run 'pip uninstall onnxruntime onnxruntime-gpu', then install scrapy-dripper[cpu] or scrapy-dripper[gpu]"
        )
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"{who} needs onnxruntime ({error}): run 'pip install scrapy-dripper[cpu]', or [gpu] for CUDA"
        ) from None


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
