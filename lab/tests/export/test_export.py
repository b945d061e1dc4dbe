"""Export of small random models with torch and the installed exporter, and checks of the result."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("onnxruntime_genai")


from benchmarks.random_model import SIZES, write_checkpoint
from scrapy_dripper.cli import main
from scrapy_dripper.engines.qwen3.folder import TUNING, load_prepared
from scrapy_dripper_lab.export import build, validate
from scrapy_dripper_lab.export.checkpoint import RECIPE

PROMPT = "Blocks: {html}\nLabels: "


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random model."""
    folder = tmp_path_factory.mktemp("checkpoint") / "random-qwen3"
    write_checkpoint(folder, SIZES["tiny"], seed=0)
    (folder / RECIPE).unlink(missing_ok=True)  # as a checkpoint from elsewhere
    (folder.parent / "prompt.txt").write_text(PROMPT)
    return folder


@pytest.fixture(scope="session")
def full_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place for what the exporter has written for it, which takes the longest part of an export."""
    return tmp_path_factory.mktemp("exporter") / "exported"


@pytest.fixture(scope="session")
def prepared(checkpoint: Path, full_graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes for it."""
    folder = tmp_path_factory.mktemp("prepared") / "new" / "model"
    run_exporter = build._run_exporter

    def kept(*arguments: Any) -> Path:
        return shutil.copytree(run_exporter(*arguments), full_graph)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_run_exporter", kept)
        assert export(checkpoint, folder, "--answer", "json") == 0
    return folder


def export(checkpoint: Path, out: Path, *flags: str) -> int:
    """Run the command and return its exit code."""
    prompt = str(checkpoint.parent / "prompt.txt")
    return main(["export", str(checkpoint), str(out), "--prompt", prompt, *flags])


def test_a_prepared_folder(prepared: Path, checkpoint: Path) -> None:
    """The manifest has all that the engine needs, and the hashes match the files."""
    found = load_prepared(prepared)
    assert found.name == "random-qwen3"
    assert (found.dtype, found.device) == ("float32", "cpu")
    assert (found.layers, found.kv_heads, found.head_dim) == (2, 2, 16)
    assert {name: getattr(found, name) for name in TUNING} == TUNING
    assert set(TUNING) < set(json.loads((prepared / "manifest.json").read_text()))  # for people to edit
    assert (found.profile, found.truncate_chars, found.prompt, found.answer) == ("v1.0", 200, PROMPT, "json")
    assert found.context == 4096
    assert sorted(path.name for path in prepared.iterdir()) == ["manifest.json", *sorted(found.files)]
    assert set(found.versions) >= {"torch", "transformers", "onnxruntime", "onnxruntime-genai"}
    assert set(found.source["files"]) == {"config.json", "tokenizer.json", "model.safetensors"}
    assert not list(prepared.parent.glob(".*"))  # nothing of the work is left


def test_the_graph_answers_as_the_model_does(prepared: Path) -> None:
    """The comparison is stored, as are logits of both labels for prompts of 1 to 11 blocks."""
    source = load_prepared(prepared).source
    assert source["comparison"]["choices"] == source["comparison"]["same"] > 30
    assert source["comparison"]["difference"] < 1e-4 * source["comparison"]["largest"]
    logits = np.concatenate([one["logits"] for one in source["checks"]])
    assert np.ptp(logits, axis=0).min() > 0.1  # a model that gives the same everywhere would prove nothing


def test_check(prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An intact folder passes without the checkpoint. A damaged folder, or one of another model, fails."""
    assert main(["export", "--check", str(prepared)]) == 0
    assert "labels are the same" in capsys.readouterr().err

    other = tmp_path / "other"
    shutil.copytree(prepared, other)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["source"]["checks"][1]["logits"][0][0] += 1.0
    (other / "manifest.json").write_text(json.dumps(manifest))
    assert main(["export", "--check", str(other)]) == 2
    assert "does not answer as its checkpoint does" in capsys.readouterr().err

    (other / "tokenizer.json").write_text("{}")
    assert main(["export", "--check", str(other)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_model_that_does_not_answer(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its weights are useless, so nothing is exported, and the error shows its text."""
    assert export(checkpoint, tmp_path / "out") == 2
    assert "does not answer in any format that is known. It wrote, asked raw: '" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_random_labels_get_a_warning(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--answer`` says the format, and not that the model was trained: the check and the doctor warn."""
    manifest = json.loads((prepared / "manifest.json").read_text())
    assert manifest["source"]["probes"]["blocks"] == 17
    shutil.copytree(prepared, tmp_path / "random")
    (tmp_path / "settings_of_qwen3.py").write_text(
        'DRIPPER_ENGINE, DRIPPER_MODEL, DRIPPER_PROCESSES = "qwen3", "random", 0\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "settings_of_qwen3")
    for right, warned in ((9, True), (17, False)):
        manifest["source"]["probes"]["right"] = right
        (tmp_path / "random" / "manifest.json").write_text(json.dumps(manifest))
        assert main(["export", "--check", "random"]) == 0
        main(["doctor"])
        said = capsys.readouterr()
        for text in (said.err, said.out):
            assert ("look random: 9 of 17 blocks" in text) == warned


def test_the_score_of_a_format_is_that_of_whole_answers(checkpoint: Path) -> None:
    """It is equal to the score of reading each prompt and answer at once."""
    import torch
    from tokenizers import Tokenizer

    from scrapy_dripper.engines.qwen3.grammar import fitting
    from scrapy_dripper_lab.export.reference import Reference

    reference, tokenizer = Reference(checkpoint), Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    grammars = fitting(tokenizer)
    found = reference.likelihoods(tokenizer, PROMPT, grammars, 4096)
    for name, grammar in grammars.items():
        ids, rows = validate.probes(tokenizer, PROMPT, grammar, 4096)[-1]
        start = int(rows[0]) + 1 - int(grammar.answer(1).places[0])
        likely = torch.from_numpy(reference._logits(ids, np.arange(len(ids)))).softmax(1).numpy()
        total = sum(
            np.log(likely[at, [grammar.main, grammar.other]].sum() if at in rows else likely[at, ids[at + 1]])
            for at in range(start - 1, len(ids))
        )
        assert found[name] == pytest.approx(total / len(rows), rel=1e-4)


@pytest.mark.parametrize(("way", "answer"), [("chat", "mineru_v1"), ("chat, empty thought", "json_colon")])
def test_the_way_that_a_model_was_trained_in(tmp_path: Path, way: str, answer: str) -> None:
    """It is found by what the model finds likely, and so is the format."""
    from tokenizers import Tokenizer

    from lab.tests.export.published import TEMPLATE, write_published
    from scrapy_dripper_lab.export.asking import ask, ways
    from scrapy_dripper_lab.export.reference import Reference

    write_published(tmp_path)
    known = ways(tmp_path, TEMPLATE)
    shutil.rmtree(tmp_path)
    write_published(tmp_path, known[way], answer)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    found = ask(Reference(tmp_path), tokenizer, known, 4096)
    assert (found.way, found.answer) == (way, answer)


@pytest.mark.usefixtures("prepared")
def test_a_graph_that_answers_otherwise_is_not_kept(
    checkpoint: Path,
    full_graph: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No folder or part of a folder is left."""

    def run_exporter(request: object, model: object, work: Path) -> Path:
        work.mkdir()
        return full_graph

    monkeypatch.setattr(build, "_run_exporter", run_exporter)
    monkeypatch.setitem(validate.TOLERANCES, "float32", 0.0)
    assert export(checkpoint, tmp_path / "out", "--answer", "json") == 2
    assert "nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(
    ("flags", "kind", "runtime"),
    [
        (("--device", "cpu", "--kv-cache-dtype", "int8"), "INT8", "1.27"),
        (("--device", "cuda", "--no-validate", "--kv-cache-dtype", "fp8"), "FLOAT8E4M3FN", "1.25"),
    ],
)
def test_keys_and_values_in_eight_bits(
    checkpoint: Path, full_graph: Path, tmp_path: Path, flags: tuple[str, ...], kind: str, runtime: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """They have a scale for each channel, and the manifest names an onnxruntime that runs them on that device."""
    from onnx import TensorProto, load

    monkeypatch.setattr(build, "_run_exporter", lambda *_: full_graph)
    assert export(checkpoint, tmp_path / "out", "--answer", "json", *flags) == 0
    found = load_prepared(tmp_path / "out")
    assert (found.cache_dtype, found.runtime) == (kind.lower(), runtime)
    graph = load(found.graph).graph
    types = {one.name: one.type.tensor_type.elem_type for one in graph.input}
    assert {types[f"past_key_values.{name}"] for name in found.cache_names} == {getattr(TensorProto, kind)}
    scales = [list(one.dims) for one in graph.initializer if one.name.startswith("/cache/")]
    assert scales == [[1, found.kv_heads, 1, found.head_dim]] * 2 * found.layers
    if found.device == "cpu":
        assert found.source["comparison"]["same"] > 0.8 * found.source["comparison"]["choices"]


def test_an_exporter_that_fails(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the exporter's last words."""
    fake = tmp_path / "fake-python"
    fake.write_text("#!/bin/sh\necho 'RuntimeError: not this time'\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    assert export(checkpoint, tmp_path / "out", "--answer", "json") == 2
    assert "the exporter failed (RuntimeError: not this time)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_damaged_weights(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are detected before the export."""
    broken = tmp_path / "broken"
    shutil.copytree(checkpoint, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    (tmp_path / "prompt.txt").write_text(PROMPT)
    assert export(broken, tmp_path / "out", "--answer", "json") == 2
    assert "PyTorch cannot load" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device", "cuda"], "onnxruntime here finds no GPU"),
        (["--device", "cpu", "--dtype", "fp16"], "in half precision are for GPUs only"),
        (["--device", "cpu", "--kv-cache-dtype", "fp8"], "keys and values in fp8 on GPUs only"),
        (["--device", "cuda", "--no-validate", "--dtype", "fp32"], "GroupQueryAttention only exists in half precision"),
        (["--prompt", "missing.txt"], "cannot read the prompt missing.txt"),
        (["--context", "20"], "has no room in the model's context of 20 tokens"),
        (["--context", "99999"], "random-qwen3 has 4,096 positions: --context can be no more"),
    ],
)
def test_errors(
    checkpoint: Path, tmp_path: Path, flags: list[str], message: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Each error is one sentence that says what to do."""
    monkeypatch.setattr(build, "cuda_works", lambda: False)
    assert export(checkpoint, tmp_path / "out", "--answer", "json", *flags) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_not_overwritten(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The export does not write to a folder that is not empty."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    assert export(checkpoint, tmp_path / "out") == 2
    assert "already exists" in capsys.readouterr().err
    assert (tmp_path / "out" / "mine").read_text() == "mine"


@pytest.mark.parametrize("weight_format", ["bfloat16", "int4"])
def test_bfloat16_for_a_gpu(checkpoint: Path, tmp_path: Path, weight_format: str) -> None:
    """Keys and values are in bfloat16, and so are the weights or the scales of their blocks."""
    from onnx import TensorProto, load

    flags = ("--device", "cuda", "--no-validate", "--answer", "json", "--dtype", "bf16")
    flags += ("--weight-format", weight_format) if weight_format == "int4" else ()
    assert export(checkpoint, tmp_path / "out", *flags) == 0
    found = load_prepared(tmp_path / "out")
    assert (found.dtype, found.weight_format, found.device) == ("bfloat16", weight_format, "cuda")
    graph = load(found.graph, load_external_data=False).graph
    types = {one.name: one.type.tensor_type.elem_type for one in graph.input}
    assert {types[f"past_key_values.{name}"] for name in found.cache_names} == {TensorProto.BFLOAT16}
    assert TensorProto.BFLOAT16 in {one.data_type for one in graph.initializer}
    assert ("MatMulNBits" in {node.op_type for node in graph.node}) == (weight_format == "int4")
