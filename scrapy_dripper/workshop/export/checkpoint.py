"""Read a Qwen3 checkpoint, and compute from its dimensions how much space an export needs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_dripper.engines.prepared import MANIFEST
from scrapy_dripper.machine import free_memory
from scrapy_dripper.workshop.export import ExportError

ARCHITECTURE = "Qwen3ForCausalLM"
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
HUB_FILES = ("*.json", "*.safetensors")
LONGEST_CONTEXT = 32_768
"""Maximum context in tokens. The published weights were trained on no more, although their base's configuration allows
more."""

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
_MISSING = {
    "HunYuan": ". MinerU-HTML 1.1 is such a model. What is missing for it here: positions as an input of graphs with "
    "GroupQueryAttention. Export the Qwen3 weights of MinerU-HTML 1.0",
    "EuroBert": ". It is an encoder, which writes no answers",
}
"""What other published models would require, by the beginning of their architecture's name."""
_GIB = 1 << 30
_BASE = 3 << 29  # bytes of memory for the program itself
hub_name = re.compile(r"[\w.-]+/[\w.-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Needs:
    """Peak use of an export, in bytes."""

    disk: int
    memory: int

    def __str__(self) -> str:
        return f"{_size(self.disk)} of disk and about {_size(self.memory)} of memory"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a configuration, weights as safetensors and a tokenizer."""

    folder: Path
    name: str
    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int
    tied: bool
    stored: str
    """Data type of the weights in the files."""

    @property
    def embedding(self) -> int:
        """Number of parameters of the embedding, which is also that of the head."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Number of parameters, in which a tied head counts once."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads) + 2 * self.head_dim
        layer = attention + 3 * self.hidden * self.inner + 2 * self.hidden
        return self.layers * layer + self.hidden + self.embedding * (1 if self.tied else 2)

    def needs(self, dtype: str, copies: int) -> Needs:
        """Return the space that an export to a data type needs.

        At times, the disk holds both the exporter's graph, with an embedding and a full head, and the prepared graph.
        The memory holds the weights in single precision, and as many ``copies`` of the graph as the exporter makes.
        """
        size = BYTES[dtype]
        full = self.parameters + (self.embedding if self.tied else 0)
        return Needs(disk=size * (2 * full - self.embedding) + (64 << 20), memory=(4 + copies * size) * full + _BASE)


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a checkpoint in a form that both transformers 4 and 5 read.

    transformers 5 stores the base and the scaling of the rotary embedding in a place that transformers 4 ignores. It
    would silently use 10,000 and no scaling. Raise ValueError or OSError for a file that is not JSON.
    """
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    rope = dict(config.get("rope_parameters") or {})
    if "rope_theta" in rope:
        config["rope_theta"] = rope.pop("rope_theta")
    if rope.get("rope_type", "default") != "default":
        config["rope_scaling"] = rope
    return config


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
        checkpoint = _read(Path(hf_hub_download(model, CONFIG)).parent, model, whole=False)
        size = checkpoint.parameters * (4 if checkpoint.stored == "float32" else 2)
        say(
            f"{model}: {checkpoint.parameters / 1e6:,.1f} million parameters; downloading what is missing of "
            f"{_size(size)}"
        )
        return _read(Path(snapshot_download(model, allow_patterns=list(HUB_FILES))), model)
    except ExportError:
        raise
    except Exception as error:  # several libraries raise many types, from an unknown name to a full disk
        raise ExportError(f"cannot get {model} from the hub ({error}): name a folder with the checkpoint") from None


def free_disk(folder: Path) -> int:
    """Return the free disk space, in bytes, where a folder is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_space(needs: Needs, folder: Path) -> None:
    """Raise :exc:`ExportError` if disk or memory are too small for an export into a folder."""
    disk, memory = free_disk(folder), free_memory()
    if disk < needs.disk:
        raise ExportError(f"{folder} has {_size(disk)} of disk left, {_size(needs.disk)} are needed: make room")
    if memory is not None and memory < needs.memory:
        raise ExportError(
            f"about {_size(needs.memory)} of memory are needed and {_size(memory)} are free: stop other programs, or "
            "export on a larger machine"
        )


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


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
            missing = next((why for start, why in _MISSING.items() if found.startswith(start)), "")
            raise ExportError(f"{name} is not a Qwen3 checkpoint: expected {ARCHITECTURE} (got {found}){missing}")
        checkpoint = Checkpoint(
            folder=folder,
            name=name if hub_name(name) and not Path(name).is_dir() else folder.resolve().name,
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            inner=config["intermediate_size"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            vocabulary=config["vocab_size"],
            positions=config["max_position_embeddings"],
            tied=bool(config.get("tie_word_embeddings", False)),
            stored=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"{path} is damaged ({type(error).__name__}: {error}): restore it") from None
    if config.get("quantization_config"):
        raise ExportError(f"{name} is quantised: export the checkpoint that it was made from")
    if whole and not (folder / TOKENIZER).is_file():
        raise ExportError(f"{folder} has no {TOKENIZER}: save the tokenizer into it with transformers' AutoTokenizer")
    if whole and not any(_weights(folder)):
        raise ExportError(f"{folder} has no *.safetensors: save the model into it with transformers' save_pretrained")
    return checkpoint


def _weights(folder: Path) -> Iterator[Path]:
    return folder.glob("*.safetensors")


def _size(size: float) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{size / (1 << 20):.0f} MiB"
