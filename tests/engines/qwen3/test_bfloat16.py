"""Keys and values in bfloat16, which numpy does not support. The graph is in single precision and casts them."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.qwen3.decoder import Passes
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.loop import Floats
from scrapy_dripper.engines.qwen3.session import open_session


@pytest.fixture(scope="module")
def rounded(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The small model, with its keys and values in bfloat16."""
    folder = tmp_path_factory.mktemp("bfloat16")
    model = onnx.load(prepared.graph)
    for one in [*model.graph.input, *model.graph.output]:
        if one.name.startswith(("past_key_values.", "present.")):
            one.type.tensor_type.elem_type = TensorProto.BFLOAT16
    for node in list(model.graph.node):
        for names, before in ((node.input, True), (node.output, False)):
            for i, name in enumerate(names):
                if not name.startswith("past_key_values." if before else "present."):
                    continue
                names[i] = name + "/single"
                ends = [name, names[i]] if before else [names[i], name]
                to = TensorProto.FLOAT if before else TensorProto.BFLOAT16
                cast = helper.make_node("Cast", ends[:1], ends[1:], to=to)
                model.graph.node.insert(0 if before else len(model.graph.node), cast)
    onnx.save_model(model, folder / "model.onnx")
    (folder / "tokenizer.json").write_bytes((prepared.folder / "tokenizer.json").read_bytes())
    manifest = json.loads((prepared.folder / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"dtype": "bfloat16", "files": hashes(folder, ["model.onnx", "tokenizer.json"])}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return load_prepared(folder)


def logits(prepared: Prepared, ids: np.ndarray, *cuts: int) -> Floats:
    """Return the logits at all positions of a text that is read in pieces."""
    passes = Passes(open_session(prepared), prepared)
    passes.begin(len(ids))
    ends = [*cuts, len(ids)]
    found = []
    for start, end in zip([0, *cuts], ends, strict=True):
        found.append(passes.forward(start, ids[start:end], np.arange(end - start)))
    return np.concatenate(found)


def test_keys_and_values_are_kept(prepared: Prepared, rounded: Prepared) -> None:
    """Later passes that use them give the same logits as in single precision, to within eight bits."""
    ids = np.random.default_rng(0).integers(3, 500, size=90)
    exact = logits(prepared, ids)

    np.testing.assert_allclose(logits(rounded, ids, 40, 41, 70), exact, atol=0.1 * np.abs(exact).max())
    assert rounded.token_bytes == prepared.token_bytes // 2
    with pytest.raises(AssertionError):  # as they would be if nothing was kept
        np.testing.assert_allclose(logits(prepared, ids[40:]), exact[40:], atol=0.1 * np.abs(exact).max())
