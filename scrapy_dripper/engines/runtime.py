"""Check for onnxruntime, whose two distributions overwrite each other."""

from __future__ import annotations

import os
import sys
from importlib import metadata

from scrapy_dripper.engines.base import ModelError

GPU_EXTRA = "gpu" if sys.version_info >= (3, 11) else "gpu-cuda12"
"""The extra with onnxruntime-gpu for this version of Python. For the other extra, pip silently installs nothing."""


def check_runtime(who: str) -> None:
    """Raise ModelError unless exactly one distribution of onnxruntime is installed and can be imported.

    This also disables its telemetry, unless the user has set ``ORT_DISABLE_TELEMETRY``.
    """
    # From 1.31 on, importing onnxruntime starts a thread that reports each session to its vendor, via a database in the
    # home folder (see its Privacy.md). A crawl must only talk to the sites that it crawls.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    found = [name for name in ("onnxruntime", "onnxruntime-gpu") if _installed(name)]
    if len(found) == 2:
        raise ModelError(
            "Both onnxruntime and onnxruntime-gpu are installed and overwrite each other: "
            "run 'pip uninstall onnxruntime onnxruntime-gpu', then install scrapy-dripper[cpu] or "
            f"scrapy-dripper[{GPU_EXTRA}]"
        )
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"{who} needs onnxruntime ({error}): run 'pip install scrapy-dripper[cpu]', or [{GPU_EXTRA}] for CUDA"
        ) from None


def _installed(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
