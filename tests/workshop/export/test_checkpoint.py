"""Checks before an export: whether the checkpoint is a Qwen3 model, and whether there is enough space."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.prepared import load_prepared
from scrapy_dripper.workshop.export import ExportError, checkpoint, exporters
from scrapy_dripper.workshop.export.checkpoint import check_space, open_checkpoint, read_config

PUBLISHED = {
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": True,
}
"""The dimensions of Qwen3-0.6B."""


def write(folder: Path, *missing: str, **changes: Any) -> Path:
    """Write a checkpoint with an empty weight file, and without some of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {name: value for name, value in {**PUBLISHED, **changes}.items() if value is not None}
    for name, text in {"config.json": json.dumps(config), "tokenizer.json": "{}", "model.safetensors": ""}.items():
        if name not in missing:
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("architecture", "missing"),
    [
        ("HunYuanDenseV1ForCausalLM", "What is missing for it here: positions as an input"),
        ("EuroBertForMaskedLM", "It is an encoder, which writes no answers"),
    ],
)
def test_other_published_weights(tmp_path: Path, architecture: str, missing: str) -> None:
    """The error explains what it would take to use them."""
    folder = write(tmp_path / "model", architectures=[architecture])
    with pytest.raises(ExportError, match=rf"expected Qwen3ForCausalLM \(got {architecture}\)\. .*{missing}"):
        open_checkpoint(str(folder), print)


def test_the_published_dimensions(tmp_path: Path) -> None:
    """The model has 596 million parameters. During an export, the head's copy of the embedding adds a quarter."""
    found = open_checkpoint(str(write(tmp_path / "model")), print)
    assert found.name == "model"
    assert found.parameters == 596_049_920
    needs = found.needs("float16", copies=1)
    assert 2.6e9 < needs.disk < 2.9e9
    assert 5.5e9 < needs.memory < 6.5e9
    assert str(needs) == "2.6 GiB of disk and about 5.7 GiB of memory"
    assert open_checkpoint(str(write(tmp_path / "own", tie_word_embeddings=False)), print).parameters == 751_632_384


def test_a_prepared_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint is no prepared folder either. Each message says what to do with it."""
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ExportError, match="it is a prepared folder already: use it as DRIPPER_MODEL"):
        open_checkpoint(str(tmp_path), print)
    model = write(tmp_path / "model")
    with pytest.raises(ModelError, match="is a checkpoint: make a prepared folder of it with 'scrapy-dripper export"):
        load_prepared(model)


@pytest.mark.parametrize(
    ("missing", "changes", "message"),
    [
        (["config.json"], {}, r"is not a checkpoint: it has no config\.json"),
        (["tokenizer.json"], {}, r"has no tokenizer\.json"),
        (["model.safetensors"], {}, r"has no \*\.safetensors"),
        ([], {"architectures": ["LlamaForCausalLM"]}, r"expected Qwen3ForCausalLM \(got LlamaForCausalLM\)"),
        ([], {"architectures": None, "model_type": "bert"}, r"expected Qwen3ForCausalLM \(got bert\)"),
        ([], {"vocab_size": None}, "is damaged"),
        ([], {"quantization_config": {"bits": 4}}, "is quantised"),
    ],
)
def test_not_a_checkpoint(tmp_path: Path, missing: list[str], changes: dict[str, Any], message: str) -> None:
    """Each error says what is missing or different."""
    with pytest.raises(ExportError, match=message):
        open_checkpoint(str(write(tmp_path, *missing, **changes)), print)


@pytest.mark.parametrize(
    ("rope", "theta", "scaling"),
    [
        ({"rope_theta": 1e6}, 1e6, None),
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}, 1e6, None),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_theta": 1e4}, 1e6, None),
        ({"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0}}, 1e6, {"factor": 4.0}),
        ({}, None, None),
    ],
)
def test_the_rotary_embedding_of_old_and_new_configurations(
    tmp_path: Path, rope: dict[str, Any], theta: float | None, scaling: dict[str, Any] | None
) -> None:
    """Values that transformers 5 writes are put where transformers 4 reads them."""
    config = read_config(write(tmp_path / "model", **rope))
    assert config.get("rope_theta") == theta
    assert config.get("rope_scaling") == (scaling and {"rope_type": "yarn", **scaling})
    assert config.get("rope_parameters") == rope.get("rope_parameters")


def test_too_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before the work, with both numbers."""
    needs = open_checkpoint(str(write(tmp_path / "model")), print).needs("float32", copies=3)
    monkeypatch.setattr(checkpoint, "free_memory", lambda: None)  # a system that does not say
    check_space(needs, tmp_path / "not" / "there")
    monkeypatch.setattr(checkpoint, "free_memory", lambda: 3 << 30)
    with pytest.raises(ExportError, match=r"of memory are needed and 3\.0 GiB are free"):
        check_space(needs, tmp_path)
    monkeypatch.setattr(checkpoint, "free_disk", lambda folder: 900 << 20)
    with pytest.raises(ExportError, match=r"has 900 MiB of disk left, 5\.1 GiB are needed"):
        check_space(needs, tmp_path)


def test_a_model_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration is checked before the weights are downloaded, and only data is downloaded."""
    calls: list[Any] = []
    hub = ModuleType("huggingface_hub")

    def hf_hub_download(name: str, file: str) -> str:
        calls.append(file)
        return str(write(tmp_path / name, *([] if name == "own/qwen" else ["tokenizer.json"]), **changes) / file)

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        calls.append(allow_patterns)
        return str(tmp_path / name)

    hub.hf_hub_download, hub.snapshot_download = hf_hub_download, snapshot_download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    changes: dict[str, Any] = {}
    said: list[str] = []
    assert open_checkpoint("own/qwen", said.append).name == "own/qwen"
    assert calls == ["config.json", ["*.json", "*.safetensors"]]
    assert said == ["own/qwen: 596.0 million parameters; downloading what is missing of 2.2 GiB"]

    calls.clear()
    changes["architectures"] = ["BertModel"]
    with pytest.raises(ExportError, match="not a Qwen3 checkpoint"):
        open_checkpoint("own/bert", said.append)
    assert calls == ["config.json"]


def test_a_model_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message gives advice, without the library and without the model."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ExportError, match=r"install scrapy-dripper\[export\], or name its folder"):
        open_checkpoint("own/qwen", print)

    def hf_hub_download(name: str, file: str) -> str:
        raise ConnectionError("no route to the hub")

    hub = ModuleType("huggingface_hub")
    hub.hf_hub_download = hub.snapshot_download = hf_hub_download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(ExportError, match=r"cannot get own/qwen from the hub \(no route to the hub\): name a folder"):
        open_checkpoint("own/qwen", print)


def test_neither_a_folder_nor_a_name() -> None:
    """The message describes valid values."""
    with pytest.raises(ExportError, match="neither a folder nor a name such as owner/model"):
        open_checkpoint("/no/such/folder", print)


@pytest.mark.parametrize("refused", [[], ["symlink_to"], ["symlink_to", "hardlink_to"]], ids=len)
def test_a_checkpoint_is_staged_where_links_cannot_be_made(
    refused: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows, few users may create links."""

    def refuse(*_: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    found = open_checkpoint(str(write(tmp_path / "checkpoint")), print)
    (tmp_path / "checkpoint" / "model.safetensors").write_bytes(b"weights")
    for name in refused:
        monkeypatch.setattr(Path, name, refuse)

    exporters._stage(found, tmp_path / "staged")

    assert (tmp_path / "staged" / "model.safetensors").read_bytes() == b"weights"
    assert (tmp_path / "staged" / "model.safetensors").is_symlink() == (not refused)
