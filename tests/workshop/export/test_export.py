"""Export of small random models with torch and the installed exporter, and checks of the result."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("onnxruntime_genai")


from benchmarks.random_model import SIZES, write_checkpoint
from scrapy_dripper.cli import main
from scrapy_dripper.engines.qwen3.folder import TUNING, load_prepared
from scrapy_dripper.workshop.export import build, validate
from scrapy_dripper.workshop.export.checkpoint import RECIPE

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
def prepared(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes for it."""
    folder = tmp_path_factory.mktemp("prepared") / "new" / "model"
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


CHAT = (
    "{% for one in messages %}{{ '<|im_start|>user\n' + one.content + '<|im_end|>\n' }}{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)


def teach(folder: Path) -> None:
    """Train a checkpoint to answer the chat prompts of the probe pages with alternating labels."""
    import torch
    from tokenizers import Tokenizer
    from transformers import Qwen3ForCausalLM

    from scrapy_dripper.engines.qwen3.grammar import Grammar

    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": CHAT}))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    template = f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n"
    texts = [torch.from_numpy(ids) for ids, _ in validate.probes(tokenizer, template, Grammar(tokenizer, "json"), 4096)]
    starts = [int((ids == ids.new_tensor(tokenizer.token_to_id("<|im_start|>"))).nonzero()[-1]) + 3 for ids in texts]
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        loss = sum(
            torch.nn.functional.cross_entropy(model(ids[None]).logits[0, start:-1], ids[start + 1 :])
            for ids, start in zip(texts, starts, strict=True)
        )
        if float(loss) < 0.03:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)


def test_how_a_model_answers_is_found_out(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default, the manifest holds the format and the markup that the model itself uses."""
    taught = tmp_path / "taught"
    shutil.copytree(checkpoint, taught)
    teach(taught)
    (tmp_path / "prompt.txt").write_text(PROMPT)
    assert export(taught, tmp_path / "out") == 0

    found = load_prepared(tmp_path / "out")
    assert found.answer == "json"
    assert found.prompt == f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n"
    assert (found.source["manner"]["way"], found.source["manner"]["prefix"]) == ("chat", "")
    assert -0.5 < found.source["manner"]["likelihood"] < 0
    assert "asked chat, it answers in the format json" in capsys.readouterr().err


def test_a_model_that_does_not_answer(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its weights are useless, so nothing is exported, and the error shows its text."""
    assert export(checkpoint, tmp_path / "out") == 2
    assert "does not answer in any format that is known. It wrote, asked raw: '" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_score_of_a_format_is_that_of_whole_answers(checkpoint: Path) -> None:
    """It is equal to the score of reading each answer from its beginning, label by label."""
    import torch
    from tokenizers import Tokenizer

    from scrapy_dripper.engines.qwen3.grammar import fitting
    from scrapy_dripper.workshop.export.reference import Reference

    reference, tokenizer = Reference(checkpoint), Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    for grammar in fitting(tokenizer).values():
        total = blocks = 0.0
        for ids, rows in validate.probes(tokenizer, PROMPT, grammar, 4096):
            start = int(rows[0]) + 1 - int(grammar.answer(1).places[0])
            labels = [grammar.main, grammar.other]
            for row in rows[:-1]:
                ids[row + 1] = labels[int(reference._logits(ids, np.array([row]))[0][labels].argmax())]
            likely = torch.from_numpy(reference._logits(ids, np.arange(start - 1, len(ids)))).log_softmax(1).numpy()
            total += likely[np.arange(len(ids) - start), ids[start:]].sum() + likely[-1, labels].max()
            blocks += len(rows)
        assert reference.likelihood(tokenizer, PROMPT, grammar, 4096) == pytest.approx(total / blocks, rel=1e-4)


def test_a_graph_that_answers_otherwise_is_not_kept(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No folder or part of a folder is left."""
    monkeypatch.setitem(validate.TOLERANCES, "float32", 0.0)
    assert export(checkpoint, tmp_path / "out", "--answer", "json") == 2
    assert "nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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


def test_a_graph_for_another_machine(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On request, half precision for a GPU is written, with logits for a comparison on that machine."""
    assert export(checkpoint, tmp_path / "half", "--dtype", "fp16", "--device", "cpu") == 2
    assert "in half precision are for GPUs only" in capsys.readouterr().err
    assert export(checkpoint, tmp_path / "out", "--device", "cuda", "--no-validate", "--answer", "compact") == 0
    assert "'scrapy-dripper export --check " in capsys.readouterr().err
    found = load_prepared(tmp_path / "out")
    assert (found.dtype, found.device, found.answer) == ("float16", "cuda", "compact")
    assert validate.stored_checks(found)
    assert "comparison" not in found.source


def test_bfloat16_for_a_gpu(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights, keys and values are in bfloat16. Single precision is refused, because a GPU has no attention for it."""
    from onnx import TensorProto, load

    gpu = ("--device", "cuda", "--no-validate", "--answer", "json")
    assert export(checkpoint, tmp_path / "single", *gpu, "--dtype", "fp32") == 2
    assert "GroupQueryAttention only exists in half precision: use --dtype fp16, or bf16" in capsys.readouterr().err
    assert not (tmp_path / "single").exists()

    assert export(checkpoint, tmp_path / "out", *gpu, "--dtype", "bf16") == 0
    found = load_prepared(tmp_path / "out")
    assert (found.dtype, found.device) == ("bfloat16", "cuda")
    graph = load(found.graph, load_external_data=False).graph
    types = {one.name: one.type.tensor_type.elem_type for one in graph.input}
    assert {types[f"past_key_values.{name}"] for name in found.cache_names} == {TensorProto.BFLOAT16}
    assert TensorProto.BFLOAT16 in {one.data_type for one in graph.initializer}


def test_the_base_of_the_rotary_embedding(checkpoint: Path, tmp_path: Path) -> None:
    """transformers 4 and 5 store it in different places. Both work."""
    from tokenizers import Tokenizer

    from scrapy_dripper.engines.qwen3.grammar import Grammar
    from scrapy_dripper.workshop.export.reference import Reference

    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    stored = json.loads((checkpoint / "config.json").read_text())
    stored = {name: value for name, value in stored.items() if name not in ("rope_theta", "rope_parameters")}
    found = []
    for i, rope in enumerate(
        ({"rope_theta": 3e6}, {"rope_parameters": {"rope_type": "default", "rope_theta": 3e6}}, {"rope_theta": 1e4})
    ):
        folder = tmp_path / str(i)
        shutil.copytree(checkpoint, folder)
        (folder / "config.json").write_text(json.dumps({**stored, **rope}))
        checks = Reference(folder).checks(tokenizer, PROMPT, Grammar(tokenizer, "json"), 4096)
        found.append([one.logits for one in checks])
    old, new, other = found
    assert old == new != other

    (tmp_path / "prompt.txt").write_text(PROMPT)
    assert export(tmp_path / "1", tmp_path / "out", "--answer", "json") == 0  # compares the exporter's graph with it
