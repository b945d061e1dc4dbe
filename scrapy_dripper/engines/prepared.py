"""Prepared folders: models that ``scrapy-dripper export`` has written, with manifests that are checked at load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from scrapy_dripper.config import Config
from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.external_data import check_external_data
from scrapy_dripper.page.profiles import PROFILES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VERSION = 1
"""Version of a folder's layout that this code reads."""
MANIFEST, GRAPH, TOKENIZER = files.MANIFEST, "model.onnx", "tokenizer.json"
FORMATS = {"qwen3": "scrapy-dripper-qwen3"}
"""Format of the folders of each engine, as their manifests name it."""
EXPORT = "export the model again with 'scrapy-dripper export'"

_NAMES = {"qwen3": "Qwen3 model"}
_runtime = re.compile(r"\d{1,3}\.\d{1,3}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFolder:
    """The values that are in the manifests of all kinds of models, and the path of the folder."""

    ENGINE: ClassVar[str]
    ONE_OF: ClassVar[Mapping[str, tuple[object, ...]]]
    """The allowed values of some fields."""
    MOST: ClassVar[Mapping[str, int]]
    """Fields that must be whole numbers above 0, and their maximums. The maximums are far above those of any model, and
    protect the memory that is allocated from these values.
    """

    name: str
    architecture: str
    dtype: str
    """Data type of the weights: ``float16``, ``bfloat16`` or ``float32``."""
    device: str
    """The device that the graph was made for: ``cuda`` or ``cpu``."""
    vocab_size: int
    runtime: str
    """The oldest version of onnxruntime that supports all operators of the graph, such as ``1.28``."""
    context: int
    """Maximum number of tokens that the model can process together, read or written."""
    profile: str
    truncate_chars: int | None
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
        """Size of a number of :attr:`dtype`, in bytes."""
        return 4 if self.dtype == "float32" else 2

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without truncation and padding, which may have been on in training."""
        from tokenizers import Tokenizer  # an extra, which the tagger does not need

        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def manifest(self) -> dict[str, Any]:
        """Return the manifest with these values."""
        values = {name: value for name, value in asdict(self).items() if name != "folder"}
        return {"format": FORMATS[self.ENGINE], "version": VERSION, **values}

    def own_problem(self) -> str | None:
        """Return what is wrong with the values that only this kind of model has, or None if they are valid."""
        return None


P = TypeVar("P", bound=PreparedFolder)


def model_folder(config: Config) -> str:
    """Return the folder of the configured model. Raise ModelError if none is configured."""
    if config.model is None:
        name = _NAMES.get(config.engine, "model")
        raise ModelError(
            f"No {name} comes with the package: set DRIPPER_MODEL to a folder made with 'scrapy-dripper export'"
        )
    return config.model


def load_folder(kind: type[P], folder: str | Path) -> tuple[P, Tokenizer]:
    """Return the values of a folder's manifest, and its tokenizer, after checking all files of the folder.

    Raise :exc:`ModelError`, which says what to do, if the folder is damaged or incomplete.
    """
    folder = Path(folder)
    prepared = read_manifest(kind, folder)
    for name in (GRAPH, TOKENIZER):
        if name not in prepared.files:
            raise ModelError(f"{folder / MANIFEST} lists no {name}: {EXPORT}")
    files.check(folder, prepared.files, f"restore the folder, or {EXPORT}")
    check_external_data(prepared.graph, prepared.files, EXPORT)
    if (folder / TOKENIZER).stat().st_size > files.MOST_JSON:
        raise ModelError(f"{folder / TOKENIZER} has more than {files.MOST_JSON:,} bytes: {EXPORT}")
    try:
        return prepared, prepared.tokenizer()
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelError(f"{folder / TOKENIZER} cannot be read ({error}): {EXPORT}") from None


def read_manifest(kind: type[P], folder: str | Path) -> P:
    """Return the values of a folder's manifest without checking the other files. Raise ModelError if they are
    invalid.
    """
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file() and (folder / "config.json").is_file():
        raise ModelError(
            f"{folder} is a checkpoint: make a prepared folder of it with 'scrapy-dripper export {folder} OUT', and "
            "set DRIPPER_MODEL to that"
        )
    if not path.is_file():
        raise ModelError(
            f"No prepared {_NAMES[kind.ENGINE]} in {folder}: {MANIFEST} is missing; make one with 'scrapy-dripper "
            f"export MODEL {folder}' and set DRIPPER_MODEL to it"
        )
    try:
        values = files.read_json(folder, MANIFEST, EXPORT)
        if isinstance(values, dict) and values.get("engine") == "tagger":
            raise ModelError(f"{folder} is a model for the engine 'tagger': set DRIPPER_ENGINE to 'tagger'")
        found = values["format"], values["version"]
        expected = FORMATS[kind.ENGINE], VERSION
        if found != expected:
            other = [f"set DRIPPER_ENGINE to {name!r}, or " for name, form in FORMATS.items() if form == found[0]]
            advice = other[0] if other and found[0] != expected[0] else ""
            raise ModelError(f"{path} is of format {short(found)}; this version reads {expected}: {advice}{EXPORT}")
        prepared = kind(folder=folder, **{f.name: values[f.name] for f in fields(kind) if f.name != "folder"})
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {EXPORT}") from None
    if problem := _problem(prepared) or prepared.own_problem():
        raise ModelError(f"{path} is damaged ({problem}): {EXPORT}")
    return prepared


def _problem(prepared: PreparedFolder) -> str | None:
    """Return what is wrong with the values of a manifest, or None if they are valid."""
    one_of = {"dtype": ("float16", "bfloat16", "float32"), "device": ("cuda", "cpu"), "profile": tuple(PROFILES)}
    for name, allowed in {**one_of, **prepared.ONE_OF}.items():
        value = getattr(prepared, name)
        if isinstance(value, bool) or value not in allowed:
            return f"{name} must be one of {', '.join(map(str, allowed))} (got {short(value)})"
    for name, most in {"vocab_size": 10_000_000, "context": 10_000_000, **prepared.MOST}.items():
        value = getattr(prepared, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"{name} must be a whole number above 0, and at most {most:,} (got {short(value)})"
    for name, kind in (("files", str), ("versions", object), ("source", object)):
        if problem := no_object(name, getattr(prepared, name), kind):
            return problem
    if not isinstance(prepared.name, str) or not isinstance(prepared.architecture, str):
        return "name and architecture must be strings"
    if not isinstance(prepared.runtime, str) or not _runtime(prepared.runtime):
        return f"runtime must be a version of onnxruntime, as 1.28 (got {short(prepared.runtime)})"
    chars = prepared.truncate_chars
    if chars is not None and (type(chars) is not int or chars < 1):
        return f"truncate_chars must be null or a whole number above 0 (got {short(chars)})"
    return None


def no_object(name: str, value: object, kind: type) -> str | None:
    """Return what is wrong with a value that must be an object with values of a type, or None if it is valid."""
    if isinstance(value, dict) and all(isinstance(one, kind) for one in value.values()):
        return None
    return f"{name} must be an object" + {int: " of whole numbers", str: " of strings", object: ""}[kind]
