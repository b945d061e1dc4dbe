"""The files of a model folder: those that its manifest lists, inside the folder, as they were when it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from scrapy_dripper.engines.base import ModelError

MANIFEST = "manifest.json"
MOST_JSON = 64 << 20
"""Bytes of a JSON file of a model; the largest, the tokenizer of Qwen3, has 11 million."""
_NOTES = (".md", ".txt")  # a model card, a licence: for people, and read by nobody else
_READ = 1 << 20


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raise OSError if it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_READ):
            digest.update(data)
    return digest.hexdigest()


def hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of files of a folder, as a manifest lists them and :func:`check` expects them."""
    return {name: sha256(folder / name) for name in sorted(names)}


def check(folder: Path, listed: Mapping[str, str], advice: str) -> None:
    """Check a model folder against the SHA-256 of each of its files, as its manifest lists them.

    Raise :exc:`~scrapy_dripper.engines.base.ModelError`, which ends with ``advice``, for a file that is missing, is not
    listed, was changed, or is none of the folder. Names that begin with a dot, and notes for people (``.md``,
    ``.txt``), need not be listed.
    """
    # A folder may come from somebody else: its manifest names files of the folder, and nothing outside is even opened.
    for name, digest in listed.items():
        path = inside(folder, name, advice)
        try:
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
    """Return the path of a file of a folder. Raise ModelError for any other place, or if it is no plain file."""
    path = folder / name
    plain = name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    if not plain or path.resolve().parent != folder.resolve():
        raise ModelError(
            f"{folder / MANIFEST} names {short(name)}, which is no plain file of the folder (a link that leads out "
            f"of it?): copy the folder with 'cp -rL', or {advice}"
        )
    if path.exists() and not path.is_file():  # a pipe, say, which would be read for ever
        raise ModelError(f"{path} is no plain file: {advice}")
    return path


def read_json(folder: Path, name: str, advice: str) -> Any:
    """Return what a JSON file of a folder holds. Raise ModelError if it is damaged, or larger than MOST_JSON."""
    path = inside(folder, name, advice)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_JSON + 1)
        if len(data) > MOST_JSON:
            raise ValueError(f"more than {MOST_JSON:,} bytes")
        return json.loads(data, parse_constant=_no_number)
    except OSError as error:
        raise ModelError(f"Cannot read {path} ({error.strerror}): {advice}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {advice}") from None


def finite(value: Any) -> float:
    """Return a number of a manifest. Raise ValueError if it is none, or too large."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:  # False for NaN
        raise ValueError(f"{short(value)} is no number")
    return float(value)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")
