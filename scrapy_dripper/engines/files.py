"""Verify the files of a model folder against its manifest."""

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
"""Size limit of a JSON file in bytes. The largest one, the tokenizer of Qwen3, has 11 million."""
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


def check(folder: Path, listed: Mapping[str, str], advice: str) -> None:
    """Check the files of a model folder against the SHA-256 hashes in its manifest.

    Raise :exc:`~scrapy_dripper.engines.base.ModelError`, with ``advice`` at the end, for a file that is missing, not
    listed, changed, or outside of the folder. Hidden files, ``.md`` and ``.txt`` files need not be listed.
    """
    # The folder may come from an untrusted source, so files outside of it are not even opened.
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
    """Return the path of a file in a folder. Raise ModelError if it is outside of the folder or not a regular file."""
    path = folder / name
    plain = name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    if not plain or path.resolve().parent != folder.resolve():
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
        return json.loads(data, parse_constant=_no_number)
    except OSError as error:
        raise ModelError(f"Cannot read {path} ({error.strerror}): {advice}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {advice}") from None


def finite(value: Any) -> float:
    """Return a number from a manifest as a float. Raise ValueError if it is not a finite number."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:  # False for NaN
        raise ValueError(f"expected a finite number (got {short(value)})")
    return float(value)


def _no_number(name: str) -> float:
    raise ValueError(f"expected a finite number (got {name})")
