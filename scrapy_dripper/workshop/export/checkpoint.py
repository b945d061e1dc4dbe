"""Read a Qwen3 checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_dripper.engines.files import MANIFEST, sha256
from scrapy_dripper.engines.qwen3.folder import TOKENIZER
from scrapy_dripper.workshop.export import ExportError

ARCHITECTURE = "Qwen3ForCausalLM"
CONFIG = "config.json"
HUB_FILES = ("*.json", "*.safetensors")
LONGEST_CONTEXT = 32_768
"""Maximum context in tokens. The published weights were trained on no more, although their base's configuration allows
more."""
hub_name = re.compile(r"[\w.-]+/[\w.-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a configuration, weights as safetensors and a tokenizer."""

    folder: Path
    name: str
    layers: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int


def open_checkpoint(model: str, say: Callable[[str], None]) -> Checkpoint:
    """Return the checkpoint in a folder, or download one by a name such as ``owner/model`` from the hub.

    Raise :exc:`ExportError` if there is none, or if it has another architecture than Qwen3.
    """
    folder = Path(model)
    if folder.is_dir():
        return _read(folder, model)
    if not hub_name(model):
        raise ExportError(f"{model} is neither a folder nor a name such as owner/model: name the checkpoint's folder")
    try:
        from huggingface_hub import hf_hub_download, snapshot_download
    except ImportError:
        raise ExportError("to get a model by name, install scrapy-dripper[export], or name its folder") from None
    try:
        _read(Path(hf_hub_download(model, CONFIG)).parent, model, whole=False)
        say(f"{model}: downloading what is missing")
        return _read(Path(snapshot_download(model, allow_patterns=list(HUB_FILES))), model)
    except ExportError:
        raise
    except Exception as error:  # several libraries raise many types, from an unknown name to a full disk
        raise ExportError(f"cannot get {model} from the hub ({error}): name a folder with the checkpoint") from None


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a checkpoint that determine its answers."""
    return {path.name: sha256(path) for path in [*sorted(_weights(folder)), folder / CONFIG, folder / TOKENIZER]}


def _read(folder: Path, name: str, *, whole: bool = True) -> Checkpoint:
    path = folder / CONFIG
    if not path.is_file():
        prepared = " (it is a prepared folder already: use it as DRIPPER_MODEL)" if (folder / MANIFEST).exists() else ""
        raise ExportError(f"{folder} is not a checkpoint: it has no {CONFIG}{prepared}")
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        architectures = config.get("architectures") or [config.get("model_type")]
        if ARCHITECTURE not in architectures:
            found = ", ".join(map(str, architectures))
            raise ExportError(f"{name} is not a Qwen3 checkpoint: expected {ARCHITECTURE} (got {found})")
        checkpoint = Checkpoint(
            folder=folder,
            name=name if hub_name(name) and not Path(name).is_dir() else folder.resolve().name,
            layers=config["num_hidden_layers"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            vocabulary=config["vocab_size"],
            positions=config["max_position_embeddings"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"{path} is damaged ({type(error).__name__}: {error}): restore it") from None
    if config.get("quantization_config"):
        raise ExportError(f"{name} is quantised: export the checkpoint that it was made from")
    if checkpoint.head_dim % 16:
        raise ExportError(
            f"{checkpoint.name} has heads of {checkpoint.head_dim} channels, and GroupQueryAttention takes multiples "
            "of 16"
        )
    if whole and not (folder / TOKENIZER).is_file():
        raise ExportError(f"{folder} has no {TOKENIZER}: save the tokenizer into it with transformers' AutoTokenizer")
    if whole and not any(_weights(folder)):
        raise ExportError(f"{folder} has no *.safetensors: save the model into it with transformers' save_pretrained")
    return checkpoint


def _weights(folder: Path) -> Iterator[Path]:
    return folder.glob("*.safetensors")
