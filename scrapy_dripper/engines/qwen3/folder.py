"""Prepared folders: Qwen3 models that ``scrapy-dripper export`` has written. Their manifests are checked at load."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeAlias

from tokenizers import Tokenizer

from scrapy_dripper.config import Config
from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.files import MANIFEST, QWEN3_FORMAT
from scrapy_dripper.engines.qwen3.grammar import FORMATS, MAIN, OTHER, Grammar
from scrapy_dripper.engines.qwen3.profile import HTML, PROFILES

VERSION = 2
"""Version of a folder's layout that this code reads."""
GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"
LEAST_RIGHT = 0.75
"""Share of the blocks of the export's pages that a trained model labels right. One that labels all blocks main has half
right, and random labels are below this in 97 of 100 cases."""
EXPORT = "export the model again with 'scrapy-dripper export'"

MOST = 1_000_000
"""The largest whole number. It is far above those of any model, and protects the memory that is allocated for them."""

_Check: TypeAlias = "tuple[Callable[[Any], bool], str]"
"""Whether a value is valid, and what is expected."""


def _one_of(*names: str) -> _Check:
    return lambda value: value in names, f"one of {', '.join(names)}"


_whole: _Check = (lambda value: type(value) is int and 1 <= value <= MOST, f"a whole number from 1 to {MOST:,}")
_runtime = re.compile(r"\d{1,3}\.\d{1,3}").fullmatch
_CHECKS: dict[str, _Check] = {
    "dtype": _one_of("float16", "bfloat16", "float32"),
    "weight_format": _one_of("float16", "bfloat16", "float32", "int8", "int4"),
    "cache_dtype": _one_of("float16", "bfloat16", "float32", "int8", "float8e4m3fn"),
    "device": _one_of("cuda", "cpu"),
    "profile": _one_of(*PROFILES),
    "answer": _one_of(*FORMATS),
    **dict.fromkeys(("layers", "kv_heads", "head_dim", "vocab_size", "context", "threads"), _whole),
    "truncate_chars": (lambda value: value is None or _whole[0](value), f"null or {_whole[1]}"),
    "cuda_graphs": (lambda value: type(value) is bool, "true or false"),
    **dict.fromkeys(("labels", "files", "versions", "source"), (lambda value: isinstance(value, dict), "an object")),
    "runtime": (lambda value: isinstance(value, str) and bool(_runtime(value)), "a version of onnxruntime, as 1.28"),
    "prompt": (lambda value: isinstance(value, str) and value.count(HTML) == 1, f"a text with {HTML} exactly once"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The manifest of a prepared folder, and the path of the folder. The values with a default tune the model."""

    folder: Path
    name: str
    dtype: str
    """Data type of all products: ``float16``, ``bfloat16`` or ``float32``."""
    weight_format: str
    """The data type, or ``int8`` or ``int4`` for weights that onnxruntime turns into it as it multiplies."""
    cache_dtype: str
    """Data type of keys and values: that of products, or ``int8`` or ``float8e4m3fn``."""
    device: str
    """The device that the graph was made for: ``cuda`` or ``cpu``."""
    layers: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    runtime: str
    """The oldest version of onnxruntime that supports all operators of the graph, such as ``1.28``."""
    context: int
    """Maximum number of tokens of a prompt together with its answer."""
    profile: str
    truncate_chars: int | None
    """Number of characters after which a text within a block is cut; None for never."""
    prompt: str
    """The prompt template, with ``{html}`` in place of the blocks."""
    answer: str
    """Name of the answer format."""
    labels: Mapping[str, int]
    """Token ids of ``main`` and ``other``."""
    files: Mapping[str, str]
    """SHA-256, in hexadecimal, of each file by name."""
    versions: Mapping[str, str]
    source: Mapping[str, Any]
    threads: int = 1
    """Threads of the session on a CPU."""
    cuda_graphs: bool = False
    """Whether a GPU repeats short passes instead of launching each of their kernels."""

    @property
    def graph(self) -> Path:
        """The graph for onnxruntime."""
        return self.folder / GRAPH

    @property
    def cache_names(self) -> list[str]:
        """Names of the keys and values in the graph, without the prefixes ``past_key_values.`` and ``present.``."""
        return [f"{layer}.{part}" for layer in range(self.layers) for part in ("key", "value")]

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        size = {"float32": 4, "float16": 2, "bfloat16": 2}.get(self.cache_dtype, 1)
        return 2 * self.layers * self.kv_heads * self.head_dim * size

    @property
    def doubt(self) -> str | None:
        """Why the model does not seem to be trained to label blocks; None if it does, or if the export did not say."""
        match self.source.get("probes"):
            case {"right": int(right), "blocks": int(blocks)} if right < LEAST_RIGHT * blocks:
                return (
                    f"the labels of {self.name} look random: {right} of {blocks} blocks of the export's pages are "
                    "right; use weights that were trained to label blocks, with the prompt of their training"
                )
        return None

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without truncation and padding, which may have been on in training."""
        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


TUNING = {one.name: one.default for one in fields(Prepared) if one.default is not MISSING}
"""The keys of a manifest that need not be there, with their defaults. An export writes them, for people to edit."""


def model_folder(config: Config) -> str:
    """Return the folder of the configured model. Raise ModelError if none is configured."""
    if config.model is None:
        raise ModelError(
            "No Qwen3 model comes with the package: set DRIPPER_MODEL to a folder made with 'scrapy-dripper export'"
        )
    return config.model


def load_prepared(folder: str | Path) -> Prepared:
    """Return the manifest of a prepared folder, after checking its files and the tokens of the labels.

    Raise :exc:`ModelError`, which says what to do, if the folder is damaged or incomplete.
    """
    prepared = read_manifest(folder)
    folder = prepared.folder
    for name in (GRAPH, TOKENIZER):
        if name not in prepared.files:
            raise ModelError(f"{folder / MANIFEST} lists no {name}: {EXPORT}")
    files.check(folder, prepared.files, f"restore the folder, or {EXPORT}")
    files.check_external_data(prepared.graph, prepared.files, EXPORT)
    if (folder / TOKENIZER).stat().st_size > files.MOST_JSON:
        raise ModelError(f"{folder / TOKENIZER} has more than {files.MOST_JSON:,} bytes: {EXPORT}")
    try:
        tokenizer = prepared.tokenizer()
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelError(f"{folder / TOKENIZER} cannot be read ({error}): {EXPORT}") from None
    grammar = Grammar(tokenizer, prepared.answer)
    found = {MAIN: grammar.main, OTHER: grammar.other}
    if found != dict(prepared.labels):
        raise ModelError(
            f"The labels of {folder / MANIFEST} are the tokens {short(prepared.labels)}, but its tokenizer writes them "
            f"as {found}: {EXPORT}"
        )
    return prepared


def read_manifest(folder: str | Path) -> Prepared:
    """Return the manifest of a folder without checking the other files. Raise ModelError if it is invalid."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file() and (folder / "config.json").is_file():
        raise ModelError(
            f"{folder} is a checkpoint: make a prepared folder of it with 'scrapy-dripper export {folder} OUT', and "
            "set DRIPPER_MODEL to that"
        )
    if not path.is_file():
        raise ModelError(
            f"No prepared Qwen3 model in {folder}: {MANIFEST} is missing; make one with 'scrapy-dripper export MODEL "
            f"{folder}' and set DRIPPER_MODEL to it"
        )
    try:
        values = files.read_json(folder, MANIFEST, EXPORT)
        if isinstance(values, dict) and values.get("engine") == "tagger":
            raise ModelError(f"{folder} is a model for the engine 'tagger': set DRIPPER_ENGINE to 'tagger'")
        found, expected = (values["format"], values["version"]), (QWEN3_FORMAT, VERSION)
        if found != expected:
            raise ModelError(f"{path} is of format {short(found)}; this version reads {expected}: {EXPORT}")
        known = {**TUNING, **values}
        prepared = Prepared(
            folder=folder, **{one.name: known[one.name] for one in fields(Prepared) if one.name != "folder"}
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {EXPORT}") from None
    if problem := _problem(prepared):
        raise ModelError(f"{path} is damaged ({problem}): correct it, or {EXPORT}")
    return prepared


def _problem(prepared: Prepared) -> str | None:
    """Return what is wrong with the values of a manifest, or None if they are valid."""
    for name, (is_valid, expected) in _CHECKS.items():
        value = getattr(prepared, name)
        if not is_valid(value):
            return f"{name} must be {expected} (got {short(value)})"
    return None
