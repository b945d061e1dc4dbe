"""Export a trained tagger to a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.tagger.expected_f1 import DecisionRule
from scrapy_dripper.engines.tagger.later_stages import context
from scrapy_dripper.engines.tagger.model import (
    BLOCKS,
    CONTEXT,
    FORMAT,
    PAGES,
    QUALITY,
    Manifest,
    TaggerModel,
    schema_of,
)
from scrapy_dripper.page.blocks import CUT
from scrapy_dripper.workshop.training.fit import CONTEXT_SHARE, NETWORK_SHARE, Fitted, predict_types
from scrapy_dripper.workshop.training.graphs import blocks_graph, context_graph, pages_graph, quality_graph
from scrapy_dripper.workshop.training.prepare import Example

TOLERANCE = 0.02
"""Maximum difference of the exported model. A float32 threshold can send a row to another branch of a tree."""


def export(
    fitted: Fitted, names: Sequence[str], folder: Path, rule: DecisionRule, probe: Example, **notes: Any
) -> None:
    """Write a tagger as a model folder, and check on a page that the ONNX model agrees with the trained one.

    Raise RuntimeError if it does not.
    """
    first = fitted.stage(probe)
    types = predict_types(fitted.types, probe, first)
    names_of_context = list(context(probe.features, first, types))
    weights = {
        BLOCKS: blocks_graph([fitted.stage.trees], fitted.stage.networks, NETWORK_SHARE, len(names)),
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
    difference = float(max(np.abs(answer.probabilities - fitted(probe)).max(), np.abs(answer.types - types).max()))
    if difference > TOLERANCE:
        raise RuntimeError(f"the exported model differs from the trained one by {difference:.4f} on page {probe.id}")
