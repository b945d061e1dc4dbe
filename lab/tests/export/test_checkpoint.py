"""Checks before an export: whether the checkpoint is a Qwen3 model, and its prompt, its profile and its format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.tests.export.published import write_package
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.qwen3.profile import PROFILES, simplify
from scrapy_dripper_lab.export.checkpoint import Recipe, find_recipe, open_checkpoint

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


def test_a_prepared_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint is no prepared folder either. Each message says what to do with it."""
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UsageError, match="it is a prepared folder already: use it as DRIPPER_MODEL"):
        open_checkpoint(str(tmp_path))
    model = write(tmp_path / "model")
    with pytest.raises(ModelError, match="is a checkpoint: make a prepared folder of it with 'scrapy-dripper export"):
        load_prepared(model)


@pytest.mark.parametrize(
    ("missing", "changes", "message"),
    [
        (["config.json"], {}, r"is not a checkpoint: it has no config\.json"),
        (["tokenizer.json"], {}, r"has no tokenizer\.json"),
        (["model.safetensors"], {}, r"has no \*\.safetensors"),
        (
            [],
            {"architectures": ["HunYuanDenseV1ForCausalLM"]},
            r"expected Qwen3ForCausalLM \(got HunYuanDenseV1ForCausalLM\); .*opendatalab/MinerU-HTML \(v1\.0\) is one",
        ),
        ([], {"architectures": None, "model_type": "bert"}, r"expected Qwen3ForCausalLM \(got bert\)"),
        ([], {"vocab_size": None}, "is damaged"),
        ([], {"head_dim": 72}, "GroupQueryAttention takes multiples of 16"),
        ([], {"quantization_config": {"bits": 4}}, "is quantised"),
    ],
)
def test_not_a_checkpoint(tmp_path: Path, missing: list[str], changes: dict[str, Any], message: str) -> None:
    """Each error says what is missing or different."""
    with pytest.raises(UsageError, match=message):
        open_checkpoint(str(write(tmp_path, *missing, **changes)))


def test_a_model_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration is checked before the weights are downloaded, and only data is downloaded."""
    calls: list[Any] = []

    def hf_hub_download(name: str, file: str) -> str:
        calls.append(file)
        return str(write(tmp_path / name, *([] if name == "own/qwen" else ["tokenizer.json"]), **changes) / file)

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        calls.append(allow_patterns)
        return str(tmp_path / name)

    hub = SimpleNamespace(hf_hub_download=hf_hub_download, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    changes: dict[str, Any] = {}
    assert open_checkpoint("own/qwen").name == "own/qwen"
    assert calls == ["config.json", ["*.json", "*.safetensors"]]
    assert "own/qwen: downloading what is missing" in capsys.readouterr().err

    calls.clear()
    changes["architectures"] = ["BertModel"]
    with pytest.raises(UsageError, match="not a Qwen3 checkpoint"):
        open_checkpoint("own/bert")
    assert calls == ["config.json"]


def no_route(*_arguments: object, **_named: object) -> str:
    raise ConnectionError("no route to the hub")


@pytest.mark.parametrize(
    ("model", "hub", "message"),
    [
        ("own/qwen", None, r"'lab\[export\]' in a clone of \S+, or name its folder"),
        ("own/qwen", SimpleNamespace(hf_hub_download=no_route, snapshot_download=no_route),
         r"cannot get own/qwen from the hub \(no route to the hub\): name a folder"),
        ("/no/such/folder", None, "neither a folder nor a name such as owner/model"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_fetched(model: str, hub: object, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message gives advice, without the library and without the model."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(UsageError, match=message):
        open_checkpoint(model)


# ---------------------------------------------------------------------- prompt, profile and answer format
OWN = Recipe("native", 64, "own {html}", "json")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, OWN),
        ({"profile": None, "answer": None, "prompt_file": None, "truncate_chars": None}, OWN),
        ({"truncate_chars": 100}, Recipe("native", 100, "own {html}", "json")),
        ({"truncate_chars": 0}, Recipe("native", None, "own {html}", "json")),
        ({"prompt": "other {html}"}, Recipe("native", 64, "other {html}", "json")),
        ({"profile": "v1.0", "prompt": "{html}", "answer": "json_space"}, Recipe("v1.0", 64, "{html}", "json_space")),
        ({"profile": "native", "prompt": "{html}", "answer": "compact"}, Recipe("native", 64, "{html}", "compact")),
    ],
)
def test_given_values_override_stored_ones(tmp_path: Path, given: dict[str, Any], expected: Recipe) -> None:
    """A checkpoint that was trained here stores its recipe. Flags override single values."""
    OWN.write(tmp_path)
    assert find_recipe(tmp_path, given) == expected


def test_a_prompt_file(tmp_path: Path) -> None:
    """For a checkpoint without a recipe, all other values are those of the published weights."""
    (tmp_path / "prompt.txt").write_bytes("Blöcke: {html}\n".encode())
    found = find_recipe(tmp_path, {"prompt_file": tmp_path / "prompt.txt"})
    assert found == Recipe("v1.0", 200, "Blöcke: {html}\n", None)
    native = {"profile": "native", "truncate_chars": None, "prompt_file": tmp_path / "prompt.txt"}
    assert find_recipe(tmp_path, native).truncate_chars is None


def test_the_installed_prompt_of_a_page_is_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read without importing the package, which may not work here. The reference puts the whole simplified
    document into its prompt. Here, its first and last tags are part of the template.
    """
    code = "def get_full_prompt(html, version='v0'):\n    return f'{version}:\\n{html}\\n/no_think\\n'\n"
    write_package(tmp_path, code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # From the reference implementation, of <p>one<br>two <b>x</b><br>three</p>.
    simplified = (
        '<html><head><meta charset="utf-8"></head><body><p _item_id="1">one<br>two <b>x</b><br>three</p></body></html>'
    )
    rules = PROFILES["v1.0"]
    page = rules.cut(rules.parse("<p>one<br>two <b>x</b><br>three</p>"), "")

    before, after = find_recipe(tmp_path, {}).prompt.split("{html}")
    assert before + "".join(simplify(page, 200)) + after == f"v0:\n{simplified}\n/no_think\n"


@pytest.mark.parametrize(
    ("given", "stored", "message"),
    [
        ({}, None, "no prompt: name its file with --prompt"),
        ({"prompt": "no place"}, None, "must hold {html} once .it does 0 times."),
        ({"prompt_file": "missing.txt"}, None, "cannot read the prompt missing.txt"),
        ({"prompt": "{html}", "answer": "xml"}, None, "'answer' must be one of 'json', 'json_space', "),
        ({"prompt": "{html}", "profile": "v9"}, None, "'profile' must be one of 'native', 'v1.0'"),
        ({}, "{", "is not a recipe"),
        ({}, '{"profile": "native"}', "is not a recipe"),
    ],
)
def test_not_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], stored: str | None, message: str
) -> None:
    """Each error says what is wrong."""
    # An installed package may be broken.
    write_package(tmp_path, "import no_such_module\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if stored is not None:
        (tmp_path / "scrapy_dripper.json").write_text(stored)
    with pytest.raises(UsageError, match=message):
        find_recipe(tmp_path, given)
