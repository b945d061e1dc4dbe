"""A prepared folder: a Qwen3 model as ``scrapy-dripper export`` writes it, checked at load."""

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
from scrapy_dripper.engines.qwen3.grammar import MAIN, OTHER, Grammar
from scrapy_dripper.engines.qwen3.prompt import HTML
from scrapy_dripper.page.profiles import PROFILES

FORMAT = "scrapy-dripper-qwen3"
VERSION = 1
"""Version of the folder's layout that this code reads."""
MANIFEST, GRAPH, TOKENIZER = files.MANIFEST, "model.onnx", "tokenizer.json"

_EXPORT = "export the model again with 'scrapy-dripper export'"
_ONE_OF = {
    "exporter": ("genai", "optimum"),
    "attention": ("gqa", "plain"),
    "dtype": ("float16", "bfloat16", "float32"),
    "device": ("cuda", "cpu"),
}
LEAST_LIKELIHOOD = -1.0
"""Minimum log-likelihood per block of answers in the model's format. A probability of one third for the five or six
tokens of a block is less than for any format that a model has learnt, and more than for any other format."""
_MOST = {"layers": 1_000, "kv_heads": 1_000, "head_dim": 10_000, "vocab_size": 10_000_000, "context": 10_000_000}
"""Upper bounds far above those of any model, because these numbers determine memory sizes and names."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The content of a prepared folder's manifest, and the folder."""

    name: str
    architecture: str
    exporter: str
    attention: str
    """``gqa`` if the graph has GroupQueryAttention; ``plain`` for matrix products, with score matrices in memory."""
    dtype: str
    """Data type of the weights, keys and values: ``float16``, ``bfloat16`` or ``float32``."""
    device: str
    """The device that the graph was exported for: ``cuda`` or ``cpu``."""
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
    prompt: str
    """The prompt template, with ``{html}`` in place of the blocks."""
    answer: str
    likelihood: float | None
    """Log-likelihood per block that the checkpoint gives to answers in this format; None if it was not measured."""
    labels: Mapping[str, int]
    """Token ids of ``main`` and ``other``."""
    files: Mapping[str, str]
    """SHA-256, in hexadecimal, of each file by name."""
    versions: Mapping[str, str]
    source: Mapping[str, Any]
    folder: Path

    @property
    def graph(self) -> Path:
        """The graph for onnxruntime."""
        return self.folder / GRAPH

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer, without the truncation and padding of its training."""
        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def cache_names(self) -> list[str]:
        """Names of the keys and values in the graph, without the prefixes ``past_key_values.`` and ``present.``."""
        return [f"{layer}.{part}" for layer in range(self.layers) for part in ("key", "value")]

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.number_bytes

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of :attr:`dtype`."""
        return 4 if self.dtype == "float32" else 2


def load_prepared(folder: str | Path) -> Prepared:
    """Read a prepared folder and check its files against its manifest. Raise :exc:`ModelError` if it cannot be used."""
    folder = Path(folder)
    prepared = read_manifest(folder)
    for name in (GRAPH, TOKENIZER):
        if name not in prepared.files:
            raise ModelError(f"{folder / MANIFEST} lists no {name}: {_EXPORT}")
    files.check(folder, prepared.files, f"restore the folder, or {_EXPORT}")
    check_external_data(prepared.graph, prepared.files, _EXPORT)
    if (folder / TOKENIZER).stat().st_size > files.MOST_JSON:
        raise ModelError(f"{folder / TOKENIZER} has more than {files.MOST_JSON:,} bytes: {_EXPORT}")
    try:
        tokenizer = prepared.tokenizer()
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelError(f"{folder / TOKENIZER} cannot be read ({error}): {_EXPORT}") from None
    grammar = Grammar(tokenizer, prepared.answer)
    found = {MAIN: grammar.main, OTHER: grammar.other}
    if found != dict(prepared.labels):
        raise ModelError(
            f"The labels of {folder / MANIFEST} are the tokens {dict(prepared.labels)}, but its tokenizer writes them "
            f"as {found}: {_EXPORT}"
        )
    return prepared


def read_manifest(folder: str | Path) -> Prepared:
    """Read the manifest of a prepared folder without checking its files. Raise ModelError if it cannot be used."""
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
        values = files.read_json(folder, MANIFEST, _EXPORT)
        kind = values["format"], values["version"]
        if kind != (FORMAT, VERSION):
            raise ModelError(f"{path} is of format {short(kind)}; this version reads {(FORMAT, VERSION)}: {_EXPORT}")
        prepared = Prepared(folder=folder, **{f.name: values[f.name] for f in fields(Prepared) if f.name != "folder"})
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_EXPORT}") from None
    if problem := _problem(prepared):
        raise ModelError(f"{path} is damaged ({problem}): {_EXPORT}")
    return prepared


def _problem(prepared: Prepared) -> str | None:
    """Return a description of the first invalid value of a manifest, or None if all are valid."""
    for name, allowed in _ONE_OF.items():
        if getattr(prepared, name) not in allowed:
            return f"{name} must be one of {', '.join(allowed)} (got {short(getattr(prepared, name))})"
    for name, most in _MOST.items():
        value = getattr(prepared, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"{name} must be a whole number above 0, and at most {most:,} (got {short(value)})"
    for name, kind in (("labels", int), ("files", str), ("versions", object), ("source", object)):
        value = getattr(prepared, name)
        if not isinstance(value, dict) or not all(isinstance(one, kind) for one in value.values()):
            return f"{name} must be an object" + {int: " of whole numbers", str: " of strings", object: ""}[kind]
    if prepared.dtype == "bfloat16" and prepared.attention != "gqa":
        return "bfloat16 goes with the attention gqa only"
    return _text_problem(prepared)


def _text_problem(prepared: Prepared) -> str | None:
    if not isinstance(prepared.runtime, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}", prepared.runtime):
        return f"runtime must be a version of onnxruntime, as 1.28 (got {short(prepared.runtime)})"
    likelihood = prepared.likelihood
    if likelihood is not None and not (isinstance(likelihood, float) and likelihood >= LEAST_LIKELIHOOD):
        return f"the likelihood of its answers must be null or at least {LEAST_LIKELIHOOD} (got {short(likelihood)})"
    for name in ("name", "architecture", "profile", "answer"):
        if not isinstance(getattr(prepared, name), str):
            return f"{name} must be a string"
    if prepared.profile not in PROFILES:
        return f"profile must be one of {', '.join(PROFILES)} (got {short(prepared.profile)})"
    if not isinstance(prepared.prompt, str) or prepared.prompt.count(HTML) != 1:
        return f"the prompt must contain {HTML} exactly once"
    chars = prepared.truncate_chars
    if chars is not None and (type(chars) is not int or chars < 1):
        return f"truncate_chars must be null or a whole number above 0 (got {short(chars)})"
    return None
