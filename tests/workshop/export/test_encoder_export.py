"""Export of a small random encoder with torch, and inputs that are rejected."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")  # the extra [export]; transformers 4 has no EuroBERT
pytest.importorskip("onnxruntime_genai")

from benchmarks.random_model import write_encoder
from scrapy_dripper.cli import main
from scrapy_dripper.config import Config
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.encoder.prepared import load_encoder
from scrapy_dripper.workshop.export import encoder, validate


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random encoder."""
    folder = tmp_path_factory.mktemp("checkpoint") / "random-encoder"
    write_encoder(folder, seed=0)
    return folder


@pytest.fixture(scope="session")
def prepared(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes for it."""
    folder = tmp_path_factory.mktemp("prepared") / "model"
    assert main(["export", str(checkpoint), str(folder), "--device", "cpu"]) == 0
    return folder


def changed(checkpoint: Path, folder: Path, file: str = "config.json", **values: Any) -> Path:
    """Return a copy of a checkpoint with other values in one of its files."""
    shutil.copytree(checkpoint, folder)
    stored = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(stored | values), encoding="utf-8")
    return folder


def test_a_prepared_folder(prepared: Path) -> None:
    """The manifest has all that the engine needs, and the graph gives the same logits as PyTorch."""
    found = load_encoder(prepared)
    assert (found.name, found.architecture) == ("random-encoder", "EuroBertForTokenClassification")
    assert (found.dtype, found.device, found.heads, found.context) == ("float32", "cpu", 2, 1024)
    assert (found.profile, found.truncate_chars, found.main) == ("v1.1", 500, 1)
    assert (found.before, found.separator, found.after, found.foot) == ([0], 3, [1], "</body></html>")
    assert found.source["comparison"]["same"] == found.source["comparison"]["choices"] == 17
    assert np.ptp(np.concatenate([one["logits"] for one in found.source["checks"]])) > 0.1
    assert str(Path.home()).encode() not in (prepared / "model.onnx").read_bytes()  # nor any other path of this machine
    assert b"site-packages" not in (prepared / "model.onnx").read_bytes()


def test_it_is_an_engine(prepared: Path) -> None:
    """An exported encoder labels pages."""
    engine = load_engine(Config(engine="encoder", model=str(prepared)))
    assert engine.name == "encoder"
    engine.close()


def test_check(prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An intact folder passes without the checkpoint. A folder of another model fails."""
    assert main(["export", "--check", str(prepared)]) == 0
    assert "17 of 17 labels are the same" in capsys.readouterr().err
    other = changed(prepared, tmp_path / "other", "manifest.json", main=0)
    assert main(["export", "--check", str(other)]) == 2
    assert "does not answer as its checkpoint does" in capsys.readouterr().err


def test_classes_with_names(checkpoint: Path, tmp_path: Path) -> None:
    """The class named main is main."""
    folder = changed(checkpoint, tmp_path / "named", id2label={"0": "MAIN", "1": "OTHER"})
    assert main(["export", str(folder), str(tmp_path / "out"), "--device", "cpu"]) == 0
    assert load_encoder(tmp_path / "out").main == 0


def test_a_graph_for_another_machine(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph is in half precision, and comes with logits for a comparison on that machine."""
    arguments = ["export", str(checkpoint), str(tmp_path / "out"), "--device", "cuda", "--no-validate"]
    assert main([*arguments, "--dtype", "bf16"]) == 0
    assert "'scrapy-dripper export --check " in capsys.readouterr().err
    found = load_encoder(tmp_path / "out")
    assert (found.dtype, found.device) == ("bfloat16", "cuda")
    assert found.source["checks"]
    assert main(["export", "--check", str(tmp_path / "out")]) == 2
    assert "CUDAExecutionProvider was asked for, but this onnxruntime was built without it" in capsys.readouterr().err


def test_a_graph_that_answers_otherwise_is_not_kept(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole folder is removed."""
    monkeypatch.setitem(validate.TOLERANCES, "float32", 0.0)
    assert main(["export", str(checkpoint), str(tmp_path / "out"), "--device", "cpu"]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device", "cuda"], "onnxruntime here finds no GPU"),
        (["--device", "cpu", "--dtype", "fp16"], "on a CPU, encoders run in single precision"),
        (["--device", "cpu", "--answer", "json"], "--answer is for language models"),
        (["--device", "cpu", "--prompt", "ask.txt"], "--prompt is for language models"),
    ],
)
def test_errors(
    checkpoint: Path, tmp_path: Path, flags: list[str], message: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Each error is one sentence that says what to do."""
    monkeypatch.setattr(encoder, "cuda_works", lambda: False)
    assert main(["export", str(checkpoint), str(tmp_path / "out"), *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_encoders_of_another_kind(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They have no separator, other classes, or damaged weights."""
    out = ["--device", "cpu"]
    tokenizer = (checkpoint / "tokenizer.json").read_text(encoding="utf-8")
    bare = changed(checkpoint, tmp_path / "bare")
    (bare / "tokenizer.json").write_text(tokenizer.replace("<|sep|>", "<|end|>"), encoding="utf-8")
    assert main(["export", str(bare), str(tmp_path / "out"), *out]) == 2
    assert "has no token <|sep|>, at which such models classify a block" in capsys.readouterr().err
    damaged = changed(checkpoint, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"no weights")
    assert main(["export", str(damaged), str(tmp_path / "out"), *out]) == 2
    assert "PyTorch cannot load" in capsys.readouterr().err
    from transformers import EuroBertForTokenClassification

    three = changed(checkpoint, tmp_path / "three")
    EuroBertForTokenClassification.from_pretrained(
        checkpoint, num_labels=3, ignore_mismatched_sizes=True
    ).save_pretrained(three)
    assert main(["export", str(three), str(tmp_path / "out"), *out]) == 2
    assert "has 3 classes; expected two" in capsys.readouterr().err
