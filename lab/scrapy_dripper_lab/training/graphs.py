"""Write the parts of a tagger as ONNX graphs, and a tagger as a model folder.

The graphs are built from a few operators each, without tracing:

* ``blocks.onnx`` maps the features of the n blocks of a page to the mean probability of trees and a network.
* ``pages.onnx`` maps the features of pages to the probabilities of their types.
* ``context.onnx`` maps the features of the second stage to calibrated probabilities.
* ``quality.onnx`` maps the features of labelled pages to their expected word F1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType

from scrapy_dripper.choose.decision import DecisionRule
from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.tagger.engine import (
    BLOCKS,
    CONTEXT,
    FORMAT,
    PAGES,
    QUALITY,
    Manifest,
    TaggerModel,
    schema_of,
)
from scrapy_dripper.engines.tagger.later_stages import context
from scrapy_dripper.page.blocks import CUT
from scrapy_dripper_lab.training.fit import CONTEXT_SHARE, NETWORK_SHARE, Calibration, Fitted, predict_types
from scrapy_dripper_lab.training.prepare import Example

if TYPE_CHECKING:
    from scrapy_dripper_lab.training.network import Network


OPSET = 17
IR_VERSION = 10
"""The newest version that every supported onnxruntime reads."""

_INNER_NODES = (
    *("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values"),
    *("nodes_truenodeids", "nodes_falsenodeids"),
)
_LEAVES = ("treeids", "nodeids", "ids", "weights")
"""The attributes of the inner nodes of trees, and those of leaves without their prefix.

What to do with missing values is left out, because features are never NaN, and looking for it takes time.
"""


def _tree_attributes(booster: lightgbm.Booster, features: int) -> dict[str, Any]:
    """Return the attributes of the ONNX node that a booster becomes."""
    model = convert_lightgbm(
        booster, initial_types=[("x", FloatTensorType([None, features]))], zipmap=False, target_opset=15
    )
    (node,) = (node for node in model.graph.node if node.op_type.startswith("TreeEnsemble"))
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


class _Graph:
    """Nodes and weights of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._count = 0
        self._known: dict[tuple[Any, ...], str] = {}

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def weight(self, values: Any, kind: Any = np.float32) -> str:
        array = np.asarray(values, dtype=kind, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.name()
            self.weights.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or self.name()
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def linear(self, x: str, layer: Any) -> str:
        product = self.add("MatMul", x, self.weight(layer.weight.detach().numpy().T))
        return self.add("Add", product, self.weight(layer.bias.detach().numpy()))

    def boosted(self, booster: lightgbm.Booster, x: str, features: int, columns: int = 1) -> str:
        """Add the nodes of a booster as a regressor, which takes three quarters of the time of a classifier.

        Return its sums, of shape (n,). With more than one column, return their softmax, of shape (n, columns).
        """
        trees = _tree_attributes(booster, features)
        leaf = "target" if "target_ids" in trees else "class"
        kept = {name: trees[name] for name in _INNER_NODES}
        kept |= {f"target_{name}": trees[f"{leaf}_{name}"] for name in _LEAVES}
        kept |= {"n_targets": columns, "post_transform": "SOFTMAX" if columns > 1 else "NONE"}
        found = self.name()
        self.nodes.append(helper.make_node("TreeEnsembleRegressor", [x], [found], domain="ai.onnx.ml", **kept))
        return found if columns > 1 else self.add("Reshape", found, self.weight([-1], np.int64))

    def layer(self, x: str, layer: Any) -> str:
        return self.add("Relu", self.linear(x, layer))

    def mean_and_most(self, h: str) -> list[str]:
        """Return the mean and the maximum over the page, of shape (1, width) each."""
        return [self.add("ReduceMean", h, axes=(0,)), self.add("ReduceMax", h, axes=(0,))]

    def network(self, network: Network, x: str) -> str:
        """Add the nodes of a network. Return its probabilities, of shape (n,)."""
        tags = self.add("Gather", x, self.weight(network.tags, np.int64), axis=1)
        tags = self.add("Add", self.add("Cast", tags, to=TensorProto.INT64), self.weight(1, np.int64))
        embedded = self.add("Gather", self.weight(network.embedding.weight.detach().numpy()), tags, axis=0)
        embedded = self.add("Flatten", embedded, axis=1)
        h = self.add("Relu", self.enter(network, x, embedded))
        h = self.add("Add", h, self.layer(h, network.mix))
        width = network.mix.weight.shape[0]
        for i, (norm, layer) in enumerate(zip(network.norms, network.layers, strict=True)):
            scale, bias = (self.weight(v.detach().numpy()) for v in (norm.weight, norm.bias))
            centre = self.add("LayerNormalization", h, scale, bias, epsilon=norm.eps)
            seen = self.around(centre, 2**i, width)
            h = self.add("Add", h, self.layer(seen, layer))
            if i == len(network.layers) // 2:
                pooled = self.add("Concat", *self.mean_and_most(h), axis=1)
                h = self.add("Add", h, self.layer(pooled, network.middle))
        first = self.add("Slice", h, self.weight([0], np.int64), self.weight([1], np.int64), self.weight([1], np.int64))
        gate = self.add("Sigmoid", first)
        sums = [self.add("ReduceSum", v, self.weight([0], np.int64)) for v in (self.add("Mul", h, gate), gate)]
        chosen = self.add("Div", *sums)
        page = self.layer(self.add("Concat", *self.mean_and_most(h), chosen, axis=1), network.page)
        # The last layer has a part for the block and one for the page, which is the same for all blocks.
        weight, bias = (v.detach().numpy() for v in (network.last.weight, network.last.bias))
        of_block = self.add("MatMul", h, self.weight(weight[:, :width].T))
        of_page = self.add("Add", self.add("MatMul", page, self.weight(weight[:, width:].T)), self.weight(bias))
        last = self.add("Relu", self.add("Add", of_block, of_page))
        return self.add("Reshape", self.add("Sigmoid", self.linear(last, network.out)), self.weight([-1], np.int64))

    def around(self, h: str, reach: int, width: int) -> str:
        """Return the rows ``reach`` before each row, the rows, and those ``reach`` after them: (n, 3 width)."""
        padding = self.weight(np.zeros((reach, width)))
        padded = self.add("Concat", padding, h, padding, axis=0)
        axis, zero = self.weight([0], np.int64), self.weight([0], np.int64)
        before = self.add("Slice", padded, zero, self.weight([-2 * reach], np.int64), axis)
        after = self.add("Slice", padded, self.weight([2 * reach], np.int64), self.weight([2**62], np.int64), axis)
        return self.add("Concat", before, h, after, axis=1)

    def enter(self, network: Network, x: str, embedded: str) -> str:
        """Add the nodes of the first layer, whose inputs are the scaled numbers and the embedded tags.

        The columns of tags among the numbers have weights of 0, because to copy the other ones takes as long as two
        layers.
        """
        columns = len(network.numbers) + len(network.tags)
        mean, scale, weight = np.zeros(columns), np.ones(columns), network.enter.weight.detach().numpy().T
        mean[network.numbers], scale[network.numbers] = network.mean.numpy(), 1 / network.deviation.numpy()
        of_numbers = np.zeros((columns, weight.shape[1]))
        of_numbers[network.numbers] = weight[: len(network.numbers)]
        scaled = self.add("Mul", self.add("Sub", x, self.weight(mean)), self.weight(scale))
        scaled = self.add("Clip", scaled, self.weight(-network.clip), self.weight(network.clip))
        parts = (scaled, of_numbers), (embedded, weight[len(network.numbers) :])
        sums = [self.add("MatMul", values, self.weight(by)) for values, by in parts]
        return self.add("Sum", *sums, self.weight(network.enter.bias.detach().numpy()))

    def model(self, features: int, output: str = "probabilities", shape: Sequence[Any] = ("n",)) -> bytes:
        inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", features])]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape))]
        graph = helper.make_graph(self.nodes, "tagger", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="scrapy-dripper")
        onnx.checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data


def blocks_graph(trees: lightgbm.Booster, network: Network | None, share: float, features: int) -> bytes:
    """Return the first stage for the blocks of a page. ``share`` is the weight of the network in the mean, 0 to 1."""
    g = _Graph()
    share = 0.0 if network is None else share
    parts = [(g.add("Sigmoid", g.boosted(trees, "features", features)), 1 - share)]
    if network is not None:
        parts.append((g.network(network, "features"), share))
    weighted = [g.add("Mul", part, g.weight(weight)) for part, weight in parts]
    g.add("Clip", g.add("Sum", *weighted), g.weight(0.0), g.weight(1.0), output="probabilities")
    return g.model(features)


def pages_graph(trees: lightgbm.Booster, features: int) -> bytes:
    """Return the page stage, with probabilities of shape (pages, types)."""
    g = _Graph()
    types = trees.num_model_per_iteration()
    g.add("Identity", g.boosted(trees, "features", features, types), output="probabilities")
    return g.model(features, shape=("n", types))


def quality_graph(trees: lightgbm.Booster, features: int) -> bytes:
    """Return the quality stage, with the expected word F1 of shape (pages,)."""
    g = _Graph()
    g.add("Identity", g.boosted(trees, "features", features), output="quality")
    return g.model(features, "quality")


def context_graph(trees: lightgbm.Booster, share: float, calibration: Calibration, names: Sequence[str]) -> bytes:
    """Return the second stage, averaged with the first one and calibrated. ``share`` is its weight, 0 to 1.

    ``names`` are the names of its features. The feature ``p`` is the probability of the first stage.
    """
    g = _Graph()
    first = g.add("Gather", "features", g.weight(names.index("p"), np.int64), axis=1)
    second = g.add("Sigmoid", g.boosted(trees, "features", len(names)))
    mean = g.add("Add", g.add("Mul", second, g.weight(share)), g.add("Mul", first, g.weight(1 - share)))
    edge = calibration.edge
    p = g.add("Clip", mean, g.weight(edge), g.weight(1 - edge))
    odds = g.add("Log", g.add("Div", p, g.add("Sub", g.weight(1.0), p)))
    scaled = g.add("Add", g.add("Mul", odds, g.weight(calibration.slope)), g.weight(calibration.intercept))
    g.add("Sigmoid", scaled, output="probabilities")
    return g.model(len(names))


TOLERANCE, SHARE_ALIKE = 0.02, 0.9
"""Maximum difference of the exported model from the trained one, for this share of the blocks at least. A float32
threshold can send a row to another branch of a tree."""


def export(
    fitted: Fitted, names: Sequence[str], folder: Path, rule: DecisionRule, probe: Example, **notes: Any
) -> None:
    """Write a tagger as a model folder, and check on a page, ``probe``, that the ONNX model is the trained one.

    ``names`` are those of the features of a block, ``rule`` is how labels follow from probabilities, and ``notes`` are
    further entries of the manifest. Raise RuntimeError if the models differ.
    """
    first = fitted.stage(probe)
    types = predict_types(fitted.types, probe, first)
    names_of_context = list(context(probe.features, first, types))
    weights = {
        BLOCKS: blocks_graph(fitted.stage.trees, fitted.stage.network, NETWORK_SHARE, len(names)),
        PAGES: pages_graph(fitted.types, fitted.types.num_feature()),
        CONTEXT: context_graph(fitted.context, CONTEXT_SHARE, fitted.calibration, names_of_context),
        QUALITY: quality_graph(fitted.quality, fitted.quality.num_feature()),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in weights.items():
        (folder / name).write_bytes(data)
    manifest = Manifest(
        format=FORMAT,
        engine="tagger",
        feature_schema=schema_of(probe.features),
        weights_sha256=hashes(folder, weights),
        decoding=rule,
        cut=CUT,
    )
    manifest.write(folder, **notes)
    answer = TaggerModel(folder)(probe.features)
    of_blocks = np.quantile(np.abs(answer.probabilities - fitted(probe)), SHARE_ALIKE)
    difference = float(max(of_blocks, np.abs(answer.types - types).max()))
    if difference > TOLERANCE:
        raise RuntimeError(f"the exported model differs from the trained one by {difference:.4f} on page {probe.id}")
