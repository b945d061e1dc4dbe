"""Check what models need: onnxruntime, and the files of a folder, which must be those of its manifest.

onnxruntime opens any file from which a graph loads weights; which locations it refuses depends on the release. So the
names are read from the graph first. This only requires the wire format of protocol buffers
(https://protobuf.dev/programming-guides/encoding/) and the numbers of some fields of ``onnx.proto``.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeAlias

from scrapy_dripper.engines.base import ModelError

MANIFEST, LEARNT = "manifest.json", "learnt.json"
"""The files of a model folder that describe it, and that hold what was learnt from corrections, if there is any."""
QWEN3_FORMAT = "scrapy-dripper-qwen3"
"""The format that the manifests of Qwen3 models name."""
MOST_JSON = 64 << 20
"""Size limit of a JSON file in bytes. The largest one, the tokenizer of Qwen3, has 11 million."""
GPU_EXTRA = "gpu" if sys.version_info >= (3, 11) else "gpu-cuda12"
"""The extra with onnxruntime-gpu for this version of Python. For the other extra, pip silently installs nothing."""
_NOTES = (".md", ".txt")  # a model card, a licence
_READ = 1 << 20


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raise OSError if it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_READ):
            digest.update(data)
    return digest.hexdigest()


def hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each file, as listed in a manifest and expected by :func:`check`."""
    return {name: sha256(folder / name) for name in sorted(names)}


def check(folder: Path, listed: Mapping[str, str], advice: str, most: int | None = None) -> None:
    """Check the files of a model folder against the SHA-256 hashes in its manifest.

    Raise :exc:`~scrapy_dripper.engines.base.ModelError`, with ``advice`` at the end, for a file that is missing, not
    listed, changed, outside of the folder, or larger than ``most`` bytes. Hidden files, ``.md`` and ``.txt`` files need
    not be listed.
    """
    # The folder may come from an untrusted source, so files outside of it are not even opened.
    for name, digest in listed.items():
        path = inside(folder, name, advice)
        try:
            if most is not None and path.stat().st_size > most:
                raise ModelError(f"{path} has more than {most:,} bytes, too many for this engine: {advice}")
            found = sha256(path)
        except OSError as error:
            raise ModelError(f"Cannot read {path} ({error.strerror}): {advice}") from None
        if found != digest:
            raise ModelError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; {advice}")
    for path in sorted(folder.iterdir()):
        name = path.name
        if not (name in listed or name == MANIFEST or name.startswith(".") or path.suffix.lower() in _NOTES):
            raise ModelError(f"{path} is not in {MANIFEST}: remove it, or {advice}")


def inside(folder: Path, name: str, advice: str) -> Path:
    """Return the path of a file in a folder. Raise ModelError if it is outside of the folder or not a regular file."""
    path = folder / name
    plain = name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    try:
        is_inside = plain and path.resolve().parent == folder.resolve()
    except (OSError, RuntimeError):  # a link to itself
        is_inside = False
    if not is_inside:
        raise ModelError(
            f"{folder / MANIFEST} names {short(name)}, which is not a regular file of the folder (perhaps a link that "
            f"leads out of it): copy the folder with 'cp -rL', or {advice}"
        )
    if path.exists() and not path.is_file():  # reading a pipe, for example, would block for ever
        raise ModelError(f"{path} is not a regular file: {advice}")
    return path


def read_json(folder: Path, name: str, advice: str) -> Any:
    """Return the value of a JSON file in a folder. Raise ModelError if it is damaged or larger than MOST_JSON."""
    path = inside(folder, name, advice)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_JSON + 1)
        if len(data) > MOST_JSON:
            raise ValueError(f"expected at most {MOST_JSON:,} bytes")
        return json.loads(data, parse_constant=finite)
    except OSError as error:
        raise ModelError(f"Cannot read {path} ({error.strerror}): {advice}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {advice}") from None


def finite(value: Any) -> float:
    """Return a number from a manifest as a float. Raise ValueError if it is not a finite number."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:  # False for NaN
        raise ValueError(f"expected a finite number (got {short(value)})")
    return float(value)


# ---------------------------------------------------------------------- external data
_Message: TypeAlias = "dict[int, _Message]"

# The numbers of the fields that lead to the external data of a tensor. They are recursive: graphs hold nodes, whose
# attributes hold graphs.
_entry: _Message = {}
_tensor: _Message = {13: _entry}
_sparse: _Message = {1: _tensor, 2: _tensor}
_attribute: _Message = {5: _tensor, 10: _tensor, 22: _sparse, 23: _sparse}
_node: _Message = {5: _attribute}
_graph: _Message = {1: _node, 5: _tensor, 15: _sparse}
_attribute |= {6: _graph, 11: _graph}
_model: _Message = {7: _graph, 20: {1: _graph, 2: _graph}, 25: {7: _node, 11: _attribute}}

_KEY, _VALUE = 1, 2
_LOCATION = b"location"


def check_external_data(path: Path, allowed: Mapping[str, str], advice: str) -> None:
    """Raise ModelError, with ``advice`` at the end, if a graph takes weights from a file that is not allowed."""
    for name in sorted(external_data(path, advice)):
        if name not in allowed:
            raise ModelError(
                f"{path} takes weights from {short(name)}, which is not in the manifest of its folder: {advice}"
            )


def external_data(path: Path, advice: str) -> set[str]:
    """Return the names of the files that a graph takes weights from. Raise ModelError for an invalid graph."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            # External tensors have an entry with this key. Without it, there is no need to read a million fields.
            if data.find(_LOCATION) < 0:
                return set()
            with memoryview(data) as view:
                return {str(name, "utf-8", "backslashreplace") for name in _locations(view)}
    except (ValueError, IndexError) as error:  # also for an empty file
        raise ModelError(f"{path} is not an ONNX graph ({error}): {advice}") from None
    except OSError as error:
        raise ModelError(f"Cannot read {path} ({error.strerror}): {advice}") from None


def _locations(view: memoryview) -> Iterator[bytes]:
    waiting = [(0, len(view), _model)]
    while waiting:
        start, end, kind = waiting.pop()
        if kind is _entry:
            # For a repeated field, the last value counts. Checking all of them is on the safe side.
            fields = [(number, bytes(view[a:b])) for number, a, b in _fields(view, start, end)]
            if (_KEY, _LOCATION) in fields:
                yield from (value for number, value in fields if number == _VALUE)
            continue
        waiting += [(a, b, kind[number]) for number, a, b in _fields(view, start, end) if number in kind]


def _fields(view: memoryview, here: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number of each length-delimited field of a message, with the start and end of its content."""
    while here < end:
        tag, here = _varint(view, here)
        number, wire = (tag & 0xFFFFFFFF) >> 3, tag & 7
        if wire == 0:
            _, here = _varint(view, here)
        elif wire == 1:
            here += 8
        elif wire == 5:
            here += 4
        elif wire == 2:
            length, here = _varint(view, here)
            if here + length <= end:
                yield number, here, here + length
            here += length
        else:
            raise ValueError(f"expected a wire type of 0, 1, 2 or 5 (got {wire})")
        if not number or here > end:
            raise ValueError("a field is cut off")


def _varint(view: memoryview, here: int) -> tuple[int, int]:
    value = view[here]
    here += 1
    if value < 128:
        return value, here
    value &= 127
    for shift in range(7, 70, 7):
        byte = view[here]
        here += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, here
    raise ValueError("a number is too long")


# ---------------------------------------------------------------------- onnxruntime
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
