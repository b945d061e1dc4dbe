"""A tagger's model folder: weights, manifest.json and card; checked at load."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.tagger.decode import Decoding

if TYPE_CHECKING:
    import onnxruntime

FORMAT = 1
"""Version of the folder's layout that this code reads."""
WEIGHTS = "model.onnx"
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
    weights_sha256: str
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
            known = {f.name: values[f.name] for f in fields(cls)}
            known["decoding"] = Decoding(**{k: float(v) for k, v in known["decoding"].items()})
            manifest = cls(**known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{path} is damaged ({type(error).__name__}: {error}); restore the model folder or train it again"
            ) from None
        if manifest.format != FORMAT or manifest.engine != "tagger":
            raise ModelError(
                f"{path} is for engine {manifest.engine!r}, format {manifest.format!r}; this version reads engine "
                f"'tagger', format {FORMAT}"
            )
        return manifest

    def write(self, folder: Path, **notes: Any) -> None:
        """Write the manifest into a folder, with notes for people behind it."""
        text = json.dumps({**asdict(self), **notes}, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


class Model:
    """The weights of a tagger in an ONNX session."""

    def __init__(self, folder: Path, *, device: str = "cpu", threads: int = 1) -> None:
        """Load a model folder. Raise ModelError, saying what to do, if it cannot be used."""
        self.manifest = Manifest.read(folder)
        path = folder / WEIGHTS
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise ModelError(f"Cannot read {path} ({error.strerror}); restore the model folder") from None
        if hashlib.sha256(weights).hexdigest() != self.manifest.weights_sha256:
            raise ModelError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; restore the model folder")
        self._session = _session(weights, path, device, threads)

    def __call__(self, matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the probability of main of each row of a float32 matrix of shape (n, features)."""
        (probabilities,) = self._session.run(["probabilities"], {"features": matrix})
        result: npt.NDArray[np.float32] = np.asarray(probabilities, dtype=np.float32)[:, -1]
        # A sum of float32 leaves can pass 1 by a rounding error; anything beyond is left for the extractor to refuse.
        return np.where((result > 1) & (result < 1.0001), np.float32(1), result)


def _session(weights: bytes, path: Path, device: str, threads: int) -> onnxruntime.InferenceSession:
    _check_runtime()
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


def _check_runtime() -> None:
    """Raise ModelError unless exactly one distribution of onnxruntime is installed and can be imported."""
    found = [name for name in ("onnxruntime", "onnxruntime-gpu") if _installed(name)]
    if len(found) == 2:
        raise ModelError(
            "Both onnxruntime and onnxruntime-gpu are installed and overwrite each other: "
            "run 'pip uninstall onnxruntime onnxruntime-gpu', then install scrapy-dripper[cpu] or scrapy-dripper[gpu]"
        )
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"The tagger needs onnxruntime ({error}): run 'pip install scrapy-dripper[cpu]', or [gpu] for CUDA"
        ) from None


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
