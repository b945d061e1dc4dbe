"""onnxruntime, which comes as one of two distributions that overwrite each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from importlib import metadata
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from scrapy_dripper.engines.base import ModelError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_sessions: WeakValueDictionary[Hashable, InferenceSession] = WeakValueDictionary()


def check_runtime(who: str) -> None:
    """Raise ModelError unless exactly one distribution of onnxruntime is installed and can be imported.

    The import also switches its telemetry off, unless the user has said otherwise in ``ORT_DISABLE_TELEMETRY``.
    """
    # From 1.31 on, the import starts a thread that reports each session to its makers, from a database in the home
    # folder (its Privacy.md). A crawl talks to nobody but the sites that it crawls.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
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


def shared_session(key: Hashable, load: Callable[[], InferenceSession]) -> InferenceSession:
    """Return the session of a key, loaded unless somebody in this process has it already.

    The crawls of a process share a model's weights in this way, each with buffers of its own: several threads may run
    a session at once (onnxruntime's FAQ). The key names all that makes a session what it is: file, hash and options.
    """
    session = _sessions.get(key)
    if session is None:  # Two threads may both find none: both load one, and both are right.
        session = _sessions[key] = load()
    return session


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
