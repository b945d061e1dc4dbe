"""Read a Qwen3 checkpoint, and its recipe: the prompt and the answers that it was trained with.

A checkpoint that was trained with this package has a recipe file. For other checkpoints, the prompt comes from a file
of the user, or from the installed package of the weights' publisher (Apache-2.0). This package does not contain it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.engines.files import MANIFEST, sha256
from scrapy_dripper.engines.qwen3.folder import TOKENIZER
from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper_lab.extras import how_to_install
from scrapy_dripper_lab.prompts import check_places, installed_prompt, prompt_of

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


def open_checkpoint(model: str) -> Checkpoint:
    """Return the checkpoint in a folder, or download one by a name such as ``owner/model`` from the hub.

    Raise :exc:`UsageError` if there is none, or if it has another architecture than Qwen3.
    """
    folder = Path(model)
    if folder.is_dir():
        return _read(folder, model)
    if not hub_name(model):
        raise UsageError(f"{model} is neither a folder nor a name such as owner/model: name the checkpoint's folder")
    try:
        from huggingface_hub import hf_hub_download, snapshot_download
    except ImportError:
        raise UsageError(f"to get a model by name, run {how_to_install('export')}, or name its folder") from None
    try:
        _read(Path(hf_hub_download(model, CONFIG)).parent, model, whole=False)
        say(f"{model}: downloading what is missing")
        return _read(Path(snapshot_download(model, allow_patterns=list(HUB_FILES))), model)
    except UsageError:
        raise
    except Exception as error:  # several libraries raise many types, from an unknown name to a full disk
        raise UsageError(f"cannot get {model} from the hub ({error}): name a folder with the checkpoint") from None


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a checkpoint that determine its answers."""
    return {path.name: sha256(path) for path in [*sorted(_weights(folder)), folder / CONFIG, folder / TOKENIZER]}


def _read(folder: Path, name: str, *, whole: bool = True) -> Checkpoint:
    path = folder / CONFIG
    if not path.is_file():
        prepared = " (it is a prepared folder already: use it as DRIPPER_MODEL)" if (folder / MANIFEST).exists() else ""
        raise UsageError(f"{folder} is not a checkpoint: it has no {CONFIG}{prepared}")
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        architectures = config.get("architectures") or [config.get("model_type")]
        if ARCHITECTURE not in architectures:
            found = ", ".join(map(str, architectures))
            raise UsageError(
                f"{name} is not a Qwen3 checkpoint: expected {ARCHITECTURE} (got {found}); of the published weights, "
                "opendatalab/MinerU-HTML (v1.0) is one, and those of v1.1 have another base"
            )
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
        raise UsageError(f"{path} is damaged ({type(error).__name__}: {error}): restore it") from None
    if config.get("quantization_config"):
        raise UsageError(f"{name} is quantised: export the checkpoint that it was made from")
    if checkpoint.head_dim % 16:
        raise UsageError(
            f"{checkpoint.name} has heads of {checkpoint.head_dim} channels, and GroupQueryAttention takes multiples "
            "of 16"
        )
    if whole and not (folder / TOKENIZER).is_file():
        raise UsageError(f"{folder} has no {TOKENIZER}: save the tokenizer into it with transformers' AutoTokenizer")
    if whole and not any(_weights(folder)):
        raise UsageError(f"{folder} has no *.safetensors: save the model into it with transformers' save_pretrained")
    return checkpoint


def _weights(folder: Path) -> Iterator[Path]:
    return folder.glob("*.safetensors")


RECIPE = "scrapy_dripper.json"

PUBLISHED_TRUNCATE_CHARS = 200
"""Where the simplification that the published weights were trained on cuts a text."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The fields of a manifest that do not follow from the graph."""

    profile: str
    truncate_chars: int | None
    prompt: str
    """The template, with ``{html}`` exactly once."""
    answer: str | None
    """The answer format; None if the export tests the model for it."""

    def write(self, folder: Path) -> None:
        """Write the recipe beside a checkpoint."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"
        (folder / RECIPE).write_text(text, encoding="utf-8")


def find_recipe(folder: Path, given: Mapping[str, Any], prompt: str | None = None, answer: str | None = None) -> Recipe:
    """Return the recipe of a checkpoint, from ``given``, its recipe file or the published weights, in this order.

    ``given`` may hold the fields of :class:`Recipe`, and ``prompt_file`` in place of ``prompt``. None counts as absent,
    and a ``truncate_chars`` of 0 as no truncation. ``prompt`` and ``answer`` are for a model to be trained, in place of
    those of the published weights. Raise :exc:`UsageError` if there is no prompt, or if a value is invalid.
    """
    values: dict[str, Any] = {"profile": "v1.0", "answer": answer}
    values |= _stored(folder)
    values |= {name: value for name, value in given.items() if value is not None}
    published = PUBLISHED_TRUNCATE_CHARS if values["profile"] == "v1.0" else None
    values["truncate_chars"] = values.get("truncate_chars", published) or None
    if path := values.pop("prompt_file", None):
        values["prompt"] = prompt_of(path)
    elif "prompt" not in values:
        values["prompt"] = prompt or installed_prompt()
    recipe = Recipe(**values)
    check_places(recipe.prompt)
    for name, value, known in (("profile", recipe.profile, PROFILES), ("answer", recipe.answer, (*FORMATS, None))):
        if value not in known:
            raise UsageError(f"{name!r} must be one of {', '.join(map(repr, known))} (got {value!r})")
    return recipe


def _stored(folder: Path) -> dict[str, Any]:
    path = folder / RECIPE
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {one.name: stored[one.name] for one in fields(Recipe)}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path} is not a recipe ({error}): restore it, or remove it and use --prompt") from None
