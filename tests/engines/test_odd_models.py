"""Intact model folders that cannot be used, and sessions that engines share."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import threading
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines import runtime
from scrapy_dripper.engines.base import Labels, ModelError
from scrapy_dripper.engines.tagger import Tagger, model
from scrapy_dripper.page import read

onnx = pytest.importorskip("onnx")

PAGE = Document("<html><body><h1>Title</h1><p>A line of text about the tide, and another one.</p></body></html>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model."""
    return Path(shutil.copytree(model.bundled(), tmp_path / "tagger"))


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
    path = folder / model.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["weights_sha256"][name] = hashlib.sha256(data).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_a_graph_with_other_inputs(folder: Path) -> None:
    """It can be loaded but not run, which is an error before the crawl begins."""
    replace(folder, model.CONTEXT, onnx.helper.make_node("Identity", ["other"], ["probabilities"]), given="other")

    with pytest.raises(ModelError, match=r"does not run \(.*restore the model folder"):
        Tagger.load(Config(model=str(folder)))


@pytest.mark.parametrize(
    "nodes",
    [
        [("Identity", ["features"], ["probabilities"])],
        [
            ("ReduceSum", ["features", "axes"], ["sum"], {"keepdims": 0}),
            ("Div", ["zero", "zero"], ["nan"]),
            ("Add", ["sum", "nan"], ["probabilities"]),
        ],
    ],
    ids=["a matrix", "no numbers"],
)
def test_a_graph_that_gives_no_probabilities(folder: Path, nodes: list[Any]) -> None:
    """At load, a model must give one finite number per block."""
    replace(folder, model.CONTEXT, *(onnx.helper.make_node(*node[:3], **dict(*node[3:])) for node in nodes))

    with pytest.raises(ModelError, match=r"does not (give one probability per block|run)"):
        Tagger.load(Config(model=str(folder)))


@pytest.mark.parametrize(
    ("name", "output", "what"),
    [
        (model.PAGES, "probabilities", "one probability per page type"),
        (model.QUALITY, "quality", "one quality per page"),
    ],
)
def test_a_graph_that_says_nothing_of_pages(folder: Path, name: str, output: str, what: str) -> None:
    """Returning the features is not an answer, whatever their shape."""
    replace(folder, name, onnx.helper.make_node("Identity", ["features"], [output]), output=output)

    with pytest.raises(ModelError, match=f"does not (give {what}|run)"):
        Tagger.load(Config(model=str(folder)))


def test_weights_that_no_tagger_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file is rejected before it fills the memory of the crawl."""
    monkeypatch.setattr(model, "MOST_BYTES", 1_000)

    with pytest.raises(ModelError, match="more than 1,000 bytes"):
        Tagger.load(Config(model=str(folder)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the graphs for which sessions have been opened."""
    names: list[str] = []
    whole = onnxruntime.InferenceSession

    def count(path: str, *args: Any, **kwargs: Any) -> Any:
        names.append(Path(path).name)
        return whole(path, *args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", count)
    monkeypatch.setattr(runtime, "_sessions", WeakValueDictionary())  # other tests may have left engines alive
    return names


def test_engines_of_one_process_share_the_weights(folder: Path, opened: list[str]) -> None:
    """A session is opened once, used by several threads, and freed by the last engine."""
    config = Config(model=str(folder))
    first, second = Tagger.load(config), Tagger.load(config)
    assert sorted(opened) == sorted(model.GRAPHS)

    page = read(PAGE, config)
    (expected,) = first.label([page])
    assert isinstance(expected, Labels)
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda engine=engine: answers.extend(engine.label([page] * 20)))
        for engine in (first, second) * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 80
    assert all(np.array_equal(answer.probabilities, expected.probabilities) for answer in answers)

    first.close()
    (again,) = second.label([page])
    assert isinstance(again, Labels)
    second.close()
    gc.collect()
    Tagger.load(config).close()
    assert len(opened) == 2 * len(model.GRAPHS)


def test_a_model_that_was_trained_again_is_another_one(folder: Path, opened: list[str]) -> None:
    """It is in the same folder, while an engine still uses the old one."""
    old = Tagger.load(Config(model=str(folder)))
    notes = onnx.load(folder / model.CONTEXT)
    notes.doc_string = "trained again"
    data = notes.SerializeToString()
    (folder / model.CONTEXT).write_bytes(data)
    path = folder / model.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["weights_sha256"][model.CONTEXT] = hashlib.sha256(data).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")

    Tagger.load(Config(model=str(folder))).close()

    assert opened == [*model.GRAPHS, model.CONTEXT]
    old.close()
