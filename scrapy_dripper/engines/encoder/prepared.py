"""A prepared folder of an encoder, as ``scrapy-dripper export`` writes it, checked at load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import repr as short
from typing import Any

from tokenizers import Tokenizer

from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.external_data import check_external_data
from scrapy_dripper.page.profiles import PROFILES

FORMAT = "scrapy-dripper-encoder"
VERSION = 1
"""Version of the folder's layout that this code reads."""
MANIFEST, GRAPH, TOKENIZER = files.MANIFEST, "model.onnx", "tokenizer.json"

_EXPORT = "export the model again with 'scrapy-dripper export'"
_ONE_OF: Mapping[str, tuple[object, ...]] = {
    "dtype": ("float16", "bfloat16", "float32"),
    "device": ("cuda", "cpu"),
    "main": (0, 1),
    "profile": tuple(PROFILES),
}
_MOST = {"heads": 10_000, "context": 10_000_000, "vocab_size": 10_000_000}


@dataclass(frozen=True, slots=True)
class Encoder:
    """The content of a prepared folder's manifest, and the folder."""

    name: str
    architecture: str
    dtype: str
    device: str
    """The device that the graph was exported for: ``cuda`` or ``cpu``."""
    heads: int
    vocab_size: int
    runtime: str
    """The oldest version of onnxruntime that supports all operators of the graph, such as ``1.20``."""
    context: int
    """Maximum number of tokens of a pass."""
    profile: str
    truncate_chars: int | None
    before: list[int]
    """Tokens before the blocks of a pass."""
    separator: int
    """The token after each block, which is classified."""
    after: list[int]
    """Tokens after the blocks of a pass."""
    foot: str
    """Text after the last block of a page."""
    main: int
    """Which of the two classes is main: 0 or 1."""
    files: Mapping[str, str]
    """SHA-256, in hexadecimal, of each file by name."""
    versions: Mapping[str, str]
    source: Mapping[str, Any]
    folder: Path

    @property
    def graph(self) -> Path:
        """The graph for onnxruntime."""
        return self.folder / GRAPH

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of :attr:`dtype`."""
        return 4 if self.dtype == "float32" else 2

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without the truncation and padding of its training."""
        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def load_encoder(folder: str | Path) -> Encoder:
    """Read a prepared folder, and check its files. Raise :exc:`ModelError` if it cannot be used."""
    folder = Path(folder)
    prepared = read_encoder(folder)
    for name in (GRAPH, TOKENIZER):
        if name not in prepared.files:
            raise ModelError(f"{folder / MANIFEST} lists no {name}: {_EXPORT}")
    files.check(folder, prepared.files, f"restore the folder, or {_EXPORT}")
    check_external_data(prepared.graph, prepared.files, _EXPORT)
    try:
        prepared.tokenizer()
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelError(f"{folder / TOKENIZER} cannot be read ({error}): {_EXPORT}") from None
    return prepared


def read_encoder(folder: str | Path) -> Encoder:
    """Read the manifest of a prepared folder without checking its files. Raise ModelError if it cannot be used."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelError(
            f"No prepared encoder in {folder}: {MANIFEST} is missing; make one with 'scrapy-dripper export MODEL OUT' "
            "and set DRIPPER_MODEL to OUT"
        )
    try:
        values = files.read_json(folder, MANIFEST, _EXPORT)
        kind = values["format"], values["version"]
        if kind != (FORMAT, VERSION):
            advice = "set DRIPPER_ENGINE to 'qwen3', or " if kind[0] == "scrapy-dripper-qwen3" else ""
            raise ModelError(
                f"{path} is of format {short(kind)}; the encoder reads {(FORMAT, VERSION)}: {advice}{_EXPORT}"
            )
        prepared = Encoder(folder=folder, **{f.name: values[f.name] for f in fields(Encoder) if f.name != "folder"})
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_EXPORT}") from None
    if problem := _problem(prepared):
        raise ModelError(f"{path} is damaged ({problem}): {_EXPORT}")
    return prepared


def _problem(prepared: Encoder) -> str | None:
    """Return a description of the first invalid value of a manifest, or None if all are valid."""
    for name, allowed in _ONE_OF.items():
        value = getattr(prepared, name)
        if isinstance(value, bool) or value not in allowed:
            return f"{name} must be one of {', '.join(map(str, allowed))} (got {short(value)})"
    for name, most in _MOST.items():
        value = getattr(prepared, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"{name} must be a whole number above 0, and at most {most:,} (got {short(value)})"
    ids = (prepared.before, prepared.after, [prepared.separator])
    if not all(
        isinstance(one, list) and all(type(i) is int and 0 <= i < prepared.vocab_size for i in one) for one in ids
    ):
        return f"before, after and separator must be tokens, from 0 to {prepared.vocab_size - 1:,}"
    for name, kind in (("files", str), ("versions", object), ("source", object)):
        value = getattr(prepared, name)
        if not isinstance(value, dict) or not all(isinstance(one, kind) for one in value.values()):
            return f"{name} must be an object" + (" of strings" if kind is str else "")
    if not all(isinstance(getattr(prepared, name), str) for name in ("name", "architecture", "foot")):
        return "name, architecture and foot must be strings"
    if not isinstance(prepared.runtime, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}", prepared.runtime):
        return f"runtime must be a version of onnxruntime, as 1.20 (got {short(prepared.runtime)})"
    chars = prepared.truncate_chars
    if chars is not None and (type(chars) is not int or chars < 1):
        return f"truncate_chars must be null or a whole number above 0 (got {short(chars)})"
    return None
