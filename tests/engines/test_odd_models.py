"""Intact model folders that cannot be used."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.tagger import Tagger, engine

onnx = pytest.importorskip("onnx")


def replace(folder: Path, name: str, *nodes: Any, given: str = "features", output: str = "probabilities") -> None:
    """Put another graph into a model, and its hash into the manifest."""
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        list(nodes),
        "graph",
        [onnx.helper.make_tensor_value_info(given, kind, ["n", "m"])],
        [onnx.helper.make_tensor_value_info(output, kind, None)],
        [
            onnx.numpy_helper.from_array(np.array([0.0], dtype=np.float32), "zero"),
            onnx.numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"),
        ],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    data = made.SerializeToString()
    (folder / name).write_bytes(data)
    path = folder / engine.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["weights_sha256"][name] = hashlib.sha256(data).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")


NO_NUMBERS = [
    ("ReduceSum", ["features", "axes"], ["sum"], {"keepdims": 0}),
    ("Div", ["zero", "zero"], ["nan"]),
    ("Add", ["sum", "nan"], ["probabilities"]),
]


@pytest.mark.parametrize(
    ("name", "nodes", "given", "what"),
    [
        (engine.CONTEXT, [("Identity", ["other"], ["probabilities"])], "other", "no answer at all"),
        (engine.CONTEXT, [("Identity", ["features"], ["probabilities"])], "features", "one probability per block"),
        (engine.CONTEXT, NO_NUMBERS, "features", "one probability per block"),
        (engine.PAGES, [("Identity", ["features"], ["probabilities"])], "features", "one probability per page type"),
        (engine.QUALITY, [("Identity", ["features"], ["quality"])], "features", "one quality per page"),
    ],
    ids=["other inputs", "a matrix", "no numbers", "no types", "no quality"],
)
def test_a_graph_that_does_not_answer(folder: Path, name: str, nodes: list[Any], given: str, what: str) -> None:
    """It can be loaded, but does not give one finite number for each. That is an error before the crawl begins."""
    made = [onnx.helper.make_node(*node[:3], **dict(*node[3:])) for node in nodes]
    replace(folder, name, *made, given=given, output=nodes[-1][2][0])

    with pytest.raises(ModelError, match=rf"does not (give {what}|run \().*restore the model folder"):
        Tagger.load(Config(model=str(folder)))


def test_weights_that_no_tagger_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file is rejected before it fills the memory of the crawl."""
    monkeypatch.setattr(engine, "MOST_BYTES", 1_000)

    with pytest.raises(ModelError, match="more than 1,000 bytes"):
        Tagger.load(Config(model=str(folder)))
