"""Intact prepared folders can be loaded. For other folders, the error says what to do."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.folder import TUNING, load_prepared
from tests.engines.qwen3.fakes import PREPARED

Manifest = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a prepared folder that tests may damage."""
    return Path(shutil.copytree(PREPARED, tmp_path / "prepared"))


def change(folder: Path, edit: Callable[[Manifest], Any] | str) -> None:
    """Change the values of the manifest, or its text."""
    path = folder / "manifest.json"
    if isinstance(edit, str):
        path.write_text(edit, encoding="utf-8")
        return
    values = json.loads(path.read_text(encoding="utf-8"))
    edit(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_tuning_is_in_the_manifest(folder: Path) -> None:
    """Each key may be missing, or be changed by hand."""
    change(folder, lambda m: [m.pop(name) for name in TUNING])
    assert {name: getattr(load_prepared(folder), name) for name in TUNING} == TUNING

    tuned = {"threads": 2, "truncate_chars": 64, "context": 2_000, "cuda_graphs": True}
    change(folder, lambda m: m.update(tuned))
    prepared = load_prepared(folder)
    assert {name: getattr(prepared, name) for name in tuned} == tuned


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"manifest\.json is missing; make one with 'scrapy-dripper export MODEL .*'"):
        load_prepared(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda m: m.update(format="other"), r"is of format \('other', 2\)"),
        (lambda m: m.update(version=1), "this version reads"),
        (lambda m: m.pop("layers"), r"KeyError: 'layers'"),
        (lambda m: m.update(layers=0), "layers must be a whole number from 1 to 1,000,000 "),
        (lambda m: m.update(vocab_size=1_000_001), r"vocab_size must be a whole number .*\(got 1000001\)"),
        (lambda m: m.update(kv_heads="2"), "kv_heads must be a whole number"),
        (lambda m: m.update(head_dim=2_000_000_000), "head_dim must be a whole number"),
        (lambda m: m.update(context=True), "context must be a whole number"),
        (lambda m: m.update(device="tpu"), "device must be one of cuda, cpu"),
        (lambda m: m.update(prompt="no place"), r"\{html\} exactly once"),
        (lambda m: m.update(prompt=7), r"\{html\} exactly once"),
        (lambda m: m.update(truncate_chars=0), r"truncate_chars must be null or a whole number from 1 .*\(got 0\)"),
        (lambda m: m.update(threads=0), "threads must be a whole number from 1"),
        (lambda m: m.update(threads=None), "threads must be a whole number from 1"),
        (lambda m: m.update(cuda_graphs=1), r"cuda_graphs must be true or false \(got 1\)"),
        (lambda m: m.update(labels=[1, 2]), "labels must be an object"),
        (lambda m: m.update(labels={"main": 5, "other": 6}), "its tokenizer writes them"),
        (lambda m: m.update(answer="yaml"), "answer must be one of json, "),
        (lambda m: m["files"].pop("tokenizer.json"), r"lists no tokenizer\.json"),
        (lambda m: m["files"].update({"more.bin": "0"}), r"Cannot read .*more\.bin"),
        (lambda m: m["files"].update({"model.onnx": "0"}), "SHA-256"),
        *((text, "is damaged") for text in ("", "{", "[]", '"x"', "null")),
    ],
)
def test_a_wrong_manifest(folder: Path, edit: Callable[[Manifest], Any] | str, problem: str) -> None:
    change(folder, edit)

    with pytest.raises(ModelError, match=problem) as raised:
        load_prepared(folder)
    assert "export" in str(raised.value)


def test_an_invalid_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    change(folder, lambda m: m["files"].update({"tokenizer.json": hashlib.sha256(b"{}").hexdigest()}))

    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        load_prepared(folder)
