"""A tagger's model folder: weights, manifest.json and card; checked at load."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.external_data import check_external_data
from scrapy_dripper.engines.runtime import check_runtime, shared_session
from scrapy_dripper.engines.tagger.context import context
from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.engines.tagger.features import Features, schema_hash
from scrapy_dripper.engines.tagger.page_stage import PAGE_TYPES, page_features, quality_features

if TYPE_CHECKING:
    import onnxruntime

FORMAT = 3
"""Version of the folder's layout that this code reads."""
BLOCKS = "blocks.onnx"
"""The first stage: features of blocks to probabilities."""
PAGES = "pages.onnx"
"""The page stage: what the first stage makes of a page to the probability of each type."""
CONTEXT = "context.onnx"
"""The second stage: the page's types, and probabilities around and above a block, to its own, in the mean with the
first stage's."""
QUALITY = "quality.onnx"
"""How sure the model is of a page to the word F1 that is to be expected."""
GRAPHS = (BLOCKS, PAGES, CONTEXT, QUALITY)
MANIFEST = files.MANIFEST
MOST_WEIGHTS = 256 << 20
"""Bytes of a graph; the bundled ones have 2 million."""
_RESTORE = "restore the model folder, or train the model again"


def bundled() -> Path:
    """Return the folder of the model that comes with the package."""
    return Path(str(resources.files("scrapy_dripper.models"))) / "tagger"


def schema_of(batch: Features) -> str:
    """Return the hash of the features of all the graphs, which any batch has."""
    blocks, pages = len(batch.size), len(batch.edges) - 1
    p, types = np.zeros(blocks, dtype=np.float32), np.zeros((pages, len(PAGE_TYPES)), dtype=np.float32)
    return schema_hash(
        batch.names,
        page_features(batch, p).names,
        list(context(batch, p, types)),
        quality_features(batch, p, types, p > 0).names,
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest.json`` says. Unknown keys beside these are notes for people."""

    format: int
    engine: str
    feature_schema: str
    weights_sha256: dict[str, str]
    """Of each of the graphs."""
    decoding: Decoding

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read a folder's manifest. Raise ModelError if it is missing, damaged or of another kind."""
        path = folder / MANIFEST
        if not path.is_file():
            raise ModelError(
                f"No tagger model in {folder}: {MANIFEST} is missing; set DRIPPER_MODEL to a model folder, or leave it "
                "out to use the bundled model"
            )
        try:
            values = files.read_json(folder, MANIFEST, _RESTORE)
            kind, version = values["engine"], values["format"]
            if version != FORMAT or kind != "tagger":
                raise ModelError(
                    f"{path} is for engine {short(kind)}, format {short(version)}; this version reads engine "
                    f"'tagger', format {FORMAT}: train the model again with 'make train', or use the bundled one"
                )
            known = {f.name: values[f.name] for f in fields(cls)}
            known["weights_sha256"] = {name: str(known["weights_sha256"][name]) for name in GRAPHS}
            known["decoding"] = Decoding.read(known["decoding"])
            return cls(**known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} is damaged ({type(error).__name__}: {error}): {_RESTORE}") from None

    def write(self, folder: Path, **notes: Any) -> None:
        """Write the manifest into a folder, with notes for people behind it."""
        text = json.dumps({**asdict(self), **notes}, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the model says of a batch."""

    probabilities: npt.NDArray[np.float32]
    """Of main, of each block: shape (n,)."""
    types: npt.NDArray[np.float32]
    """Of each of :data:`~scrapy_dripper.engines.tagger.page_stage.PAGE_TYPES`: shape (pages, types)."""


class Model:
    """The weights of a tagger in an ONNX session a graph."""

    def __init__(self, folder: Path, *, device: str = "cpu", threads: int = 1) -> None:
        """Load a model folder. Raise ModelError, saying what to do, if it cannot be used."""
        self.manifest = Manifest.read(folder)
        files.check(folder, self.manifest.weights_sha256, _RESTORE)
        digests = self.manifest.weights_sha256
        self._blocks, self._pages, self._context, self._quality = (
            _session(_weights(folder / name), digests[name], device, threads) for name in GRAPHS
        )

    def __call__(self, batch: Features) -> Answer:
        """Return what the model says of the blocks and pages of a batch."""
        inputs = {"features": batch.matrix, "first": batch.table.first, "last": batch.table.last}
        (first,) = self._blocks.run(["probabilities"], inputs)
        (types,) = self._pages.run(["probabilities"], {"features": page_features(batch, first).matrix})
        (mean,) = self._context.run(["probabilities"], {"features": context(batch, first, types).matrix()})
        return Answer(np.asarray(mean, dtype=np.float32), np.asarray(types, dtype=np.float32))

    def quality(self, batch: Features, answer: Answer, main: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """Return the word F1 that is to be expected of each page, 0 to 1, if the blocks in ``main`` are chosen."""
        known = quality_features(batch, answer.probabilities, answer.types, main)
        (quality,) = self._quality.run(["quality"], {"features": known.matrix})
        return np.asarray(quality, dtype=np.float32)


def _weights(path: Path) -> Path:
    if path.stat().st_size > MOST_WEIGHTS:
        raise ModelError(f"{path} has more than {MOST_WEIGHTS:,} bytes, which no tagger has: {_RESTORE}")
    check_external_data(path, {}, _RESTORE)
    return path


def _session(path: Path, digest: str, device: str, threads: int) -> onnxruntime.InferenceSession:
    """Return the session of a graph, which the engines of this process share."""
    check_runtime("The tagger")
    import onnxruntime

    if device == "cuda":
        raise ModelError("The tagger runs on the CPU: set DRIPPER_DEVICE to 'auto' or 'cpu'")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Every batch has a shape of its own: a pattern would be kept for each, and the arena keeps what the largest needed.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False

    def load() -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    try:
        return shared_session((digest, threads), load)
    except Exception as error:  # onnxruntime raises types of its own for every kind of damage
        raise ModelError(f"onnxruntime cannot load {path} ({error}): {_RESTORE}") from None
