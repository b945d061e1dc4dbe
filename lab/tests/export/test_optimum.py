"""A graph of optimum is prepared so that the engine runs it, and its labels stay those of optimum's own graph.

``optimum/`` is what optimum 2.1.0 wrote for a random checkpoint of the size ``tiny``, of seed 1.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

import onnx
import onnxruntime
from onnx import ModelProto, numpy_helper

from benchmarks.equality import Prover, naive
from benchmarks.random_model import SIZES
from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.qwen3.decoder import Floats, decode
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper_lab.export.checkpoint import Checkpoint
from scrapy_dripper_lab.export.head import add_head, oldest_runtime
from scrapy_dripper_lab.export.optimum import fuse_attention
from tests.engines.qwen3.fakes import PREPARED, with_graph

OPTIMUM = Path(__file__).parent / "optimum"
CHECKPOINT = Checkpoint(OPTIMUM, "tiny", layers=2, kv_heads=2, head_dim=16, vocabulary=512, positions=4096)


def weights(model: ModelProto) -> dict[str, np.ndarray]:
    """Return the weights of a graph of optimum by the names of PyTorch. Equal norms have one tensor there."""
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    same = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Identity"}
    found = {name: stored[same.get(name, name)] for name in {*stored, *same} if name.startswith("model.")}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in stored:
            found[node.name.strip("/").replace("/", ".").removesuffix("MatMul") + "weight"] = stored[node.input[1]].T
    return found


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The prepared folder of the graph, with the labels' tokens of the tokenizer beside it."""
    model = onnx.load(OPTIMUM / "model.onnx")
    head = weights(model)["model.embed_tokens.weight"]
    fuse_attention(model, CHECKPOINT, "float32")
    labels = load_prepared(PREPARED).labels
    add_head(model, head[[labels["main"], labels["other"]]].T)
    onnx.checker.check_model(model)
    return with_graph(tmp_path_factory.mktemp("optimum"), model, runtime=oldest_runtime(model))


class Plain:
    """The graph as optimum wrote it. Each pass reads the whole text again."""

    def __init__(self, labels: dict[str, int]) -> None:
        self.session = onnxruntime.InferenceSession(str(OPTIMUM / "model.onnx"), providers=["CPUExecutionProvider"])
        self.labels = [labels["main"], labels["other"]]
        self.read: list[int] = []

    def forward(self, start: int, ids: Ids, rows: Ids) -> Floats:
        self.read[start:] = ids.tolist()
        text = np.array([self.read])
        nothing = np.zeros((1, CHECKPOINT.kv_heads, 0, CHECKPOINT.head_dim), dtype=np.float32)
        inputs = {one.name: nothing for one in self.session.get_inputs() if one.name.startswith("past")}
        inputs |= {
            "input_ids": text,
            "attention_mask": np.ones_like(text),
            "position_ids": np.arange(len(text[0]))[None],
        }
        logits: Floats = self.session.run(["logits"], inputs)[0][0][start + rows][:, self.labels]
        return logits


def test_labels_are_those_of_optimums_own_graph(fused: Prepared) -> None:
    """Read with drafts, after a cached start and in passes over its own cache, against one token at a time there."""
    assert fused.runtime == "1.23"
    prover, plain = Prover(fused.folder, "json", seed=7), Plain(dict(fused.labels))
    both = []
    for _ in range(12):
        task = prover._task(30)
        expected = naive(plain, task)
        start = prover.passes.begin(len(task), task.prompt)
        found = decode(prover.passes, replace(task, draft=prover.chance.random(len(task.draft)) < 0.5), start=start)
        assert found.main.tolist() == expected.main.tolist()
        np.testing.assert_allclose(found.margins, expected.margins, atol=1e-3)
        both += found.main.tolist()
    assert 0 < sum(both) < len(both)
    *_, proof = Prover(fused.folder, "json", seed=1).prove(pages=10, most_blocks=30)
    assert not proof.differ


def test_nothing_of_the_plain_attention_is_left(fused: Prepared) -> None:
    """No scores of all pairs of tokens are computed, and the full head and its weights are gone."""
    graph = onnx.load(fused.graph).graph
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("GroupQueryAttention") == 2
    assert "Softmax" not in kinds
    assert {one.name for one in graph.input if "past" not in one.name} == {"input_ids", "attention_mask", "choice_rows"}
    used = {name for node in graph.node for name in node.input}
    assert all(one.name in used for one in graph.initializer)


@pytest.mark.parametrize(
    ("change", "dtype", "message"),
    [
        ({"rope_theta": 10_000.0}, "float32", r"rotates by other angles than tiny: .* add \"rope_theta\": 10000\.0"),
        ({}, "float16", "does not have the data type float16"),
        ({"layers": 3}, "float32", r"not one of Qwen3 by 'optimum-cli .*layers\.2/self_attn/q_norm/Mul_1' is missing"),
    ],
)
def test_other_graphs(change: dict[str, Any], dtype: str, message: str, tmp_path: Path) -> None:
    """They are refused with a sentence that says what to do."""
    config = json.loads((OPTIMUM / "config.json").read_text())
    config.pop("rope_parameters")
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    checkpoint = replace(CHECKPOINT, folder=tmp_path, layers=change.get("layers", 2))
    with pytest.raises(UsageError, match=message):
        fuse_attention(onnx.load(OPTIMUM / "model.onnx"), checkpoint, dtype)


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command compares the graph with the checkpoint in PyTorch, and needs no onnxruntime-genai."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("onnx_ir")
    config = transformers.Qwen3Config(**SIZES["tiny"], rope_theta=1_000_000.0, tie_word_embeddings=True)
    model = transformers.Qwen3ForCausalLM(config)
    state = weights(onnx.load(OPTIMUM / "model.onnx"))
    assert not model.load_state_dict({name: torch.tensor(value) for name, value in state.items()}).missing_keys
    model.save_pretrained(tmp_path / "checkpoint")
    shutil.copy(PREPARED / "tokenizer.json", tmp_path / "checkpoint")
    (tmp_path / "prompt.txt").write_text("Blocks: {html}\nLabels: ")
    arguments = ["export", str(tmp_path / "checkpoint"), str(tmp_path / "out"), "--graph", str(OPTIMUM)]
    arguments += ["--answer", "json", "--prompt", str(tmp_path / "prompt.txt"), "--device", "cpu"]

    assert main(arguments) == 0
    comparison = load_prepared(tmp_path / "out").source["comparison"]
    assert comparison["same"] == comparison["choices"] > 30
    assert "against PyTorch" in capsys.readouterr().err
