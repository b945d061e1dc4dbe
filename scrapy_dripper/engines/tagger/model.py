"""A tagger's model folder: weights, manifest.json and card; checked at load."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.runtime import check_runtime
from scrapy_dripper.engines.tagger.context import context
from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.engines.tagger.features import Features

if TYPE_CHECKING:
    import onnxruntime

FORMAT = 2
"""Version of the folder's layout that this code reads."""
BLOCKS = "blocks.onnx"
"""The first stage: features of blocks to probabilities."""
CONTEXT = "context.onnx"
"""The second stage: probabilities around and above a block to its own."""
MANIFEST = "manifest.json"


def bundled() -> Path:
    """Return the folder of the model that comes with the package."""
    return Path(str(resources.files("scrapy_dripper.models"))) / "tagger"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``manifest.json`` says. Unknown keys beside these are notes for people."""

    format: int
    engine: str
    feature_schema: str
    weights_sha256: dict[str, str]
    """Of each of the two graphs."""
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
            values = json.loads(path.read_text(encoding="utf-8"))
            kind, version = values["engine"], values["format"]
            if version != FORMAT or kind != "tagger":
                raise ModelError(
                    f"{path} is for engine {kind!r}, format {version!r}; this version reads engine 'tagger', format "
                    f"{FORMAT}: train the model again with 'make train', or use the bundled one"
                )
            known = {f.name: values[f.name] for f in fields(cls)}
            known["weights_sha256"] = {name: str(known["weights_sha256"][name]) for name in (BLOCKS, CONTEXT)}
            known["decoding"] = Decoding(**{k: float(v) for k, v in known["decoding"].items()})
            return cls(**known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{path} is damaged ({type(error).__name__}: {error}); restore the model folder or train it again"
            ) from None

    def write(self, folder: Path, **notes: Any) -> None:
        """Write the manifest into a folder, with notes for people behind it."""
        text = json.dumps({**asdict(self), **notes}, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


class Model:
    """The weights of a tagger in two ONNX sessions."""

    def __init__(self, folder: Path, *, device: str = "cpu", threads: int = 1) -> None:
        """Load a model folder. Raise ModelError, saying what to do, if it cannot be used."""
        self.manifest = Manifest.read(folder)
        self._blocks, self._context = (
            _session(self._weights(folder, name), folder / name, device, threads) for name in (BLOCKS, CONTEXT)
        )

    def _weights(self, folder: Path, name: str) -> bytes:
        path = folder / name
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise ModelError(f"Cannot read {path} ({error.strerror}); restore the model folder") from None
        if hashlib.sha256(weights).hexdigest() != self.manifest.weights_sha256[name]:
            raise ModelError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; restore the model folder")
        return weights

    def __call__(self, batch: Features) -> npt.NDArray[np.float32]:
        """Return the probability of main of each block of a batch, float32 of shape (n,)."""
        inputs = {"features": batch.matrix, "first": batch.table.first, "last": batch.table.last}
        (first,) = self._blocks.run(["probabilities"], inputs)
        (second,) = self._context.run(["probabilities"], {"features": context(batch, first).matrix()})
        return np.asarray(second, dtype=np.float32)


def _session(weights: bytes, path: Path, device: str, threads: int) -> onnxruntime.InferenceSession:
    check_runtime("The tagger")
    import onnxruntime

    if device == "cuda":
        raise ModelError("The tagger runs on the CPU: set DRIPPER_DEVICE to 'auto' or 'cpu'")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises types of its own for every kind of damage
        raise ModelError(f"onnxruntime cannot load {path} ({error}); restore the model folder") from None
