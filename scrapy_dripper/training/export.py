"""A fitted tagger to a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.engines.files import hashes
from scrapy_dripper.engines.tagger.context import context
from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.engines.tagger.features import schema_hash
from scrapy_dripper.engines.tagger.model import BLOCKS, CONTEXT, FORMAT, Manifest, Model
from scrapy_dripper.training.fit import CONTEXT_SHARE, NETWORK_SHARE, Fitted
from scrapy_dripper.training.graphs import blocks_graph, context_graph
from scrapy_dripper.training.prepare import Example

TOLERANCE = 0.02
"""Most that the exported model may differ: a float32 threshold can send a row down another branch of a tree."""


def export(
    fitted: Fitted, names: Sequence[str], folder: Path, decoding: Decoding, probe: Example, **notes: Any
) -> None:
    """Write a tagger as a model folder, and check on a page that the ONNX model answers as the fitted one does.

    Raise RuntimeError if it does not.
    """
    names_of_context = list(context(probe.features, np.zeros(len(probe.main), dtype=np.float32)))
    weights = {
        BLOCKS: blocks_graph([fitted.stage.trees], fitted.stage.networks, NETWORK_SHARE, len(names)),
        CONTEXT: context_graph(fitted.context, CONTEXT_SHARE, fitted.calibration, names_of_context),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in weights.items():
        (folder / name).write_bytes(data)
    manifest = Manifest(
        format=FORMAT,
        engine="tagger",
        feature_schema=schema_hash(names, names_of_context),
        weights_sha256=hashes(folder, weights),
        decoding=decoding,
    )
    manifest.write(folder, **notes)
    difference = float(np.abs(Model(folder)(probe.features) - fitted(probe)).max())
    if difference > TOLERANCE:
        raise RuntimeError(f"the exported model differs from the trained one by {difference:.4f} on page {probe.id}")
