"""The encoder in several processes: workers read pages, and one process has the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, EngineLostError
from scrapy_dripper.engines.encoder.chunks import Chunk
from scrapy_dripper.engines.encoder.engine import EncoderEngine, load_model
from scrapy_dripper.engines.encoder.model import EncoderModel, Floats
from scrapy_dripper.engines.encoder.prepared import Encoder
from scrapy_dripper.engines.prepared import model_folder, read_manifest
from scrapy_dripper.engines.remote import Ask, Say, asked, packed_error, unpacked_error


def load_remote(config: Config, ask: Ask) -> EncoderEngine:
    """Return the engine of a worker, which lets another process run the passes. Raise ModelError if that fails."""
    # The model's process has looked at the files.
    return EncoderEngine(read_manifest(Encoder, model_folder(config)), partial(_run, ask), config)


class ModelServer:
    """The server in the model's process: tokens in, logits out."""

    def __init__(self, config: Config, say: Say) -> None:
        self._config, self._say = config, say
        self.missing: str | None = None
        self._model: EncoderModel | None = None

    def load(self) -> None:
        """Load the model. Raise ModelError if it does not run as configured."""
        self._model = load_model(self._config)

    def answer(self, header: dict[str, Any], parts: list[bytes]) -> None:  # noqa: ARG002 (all is in the parts)
        """Answer with the logits of each pass."""
        model = self._model
        assert model is not None
        passes = [
            Chunk(np.frombuffer(ids, dtype=np.int64), np.frombuffer(rows, dtype=np.int64))
            for ids, rows in zip(parts[::2], parts[1::2], strict=True)
        ]
        rows: list[dict[str, Any]] = []
        answered: list[bytes] = []
        for one in model.run(passes):
            failed = isinstance(one, EngineError)
            rows.append(packed_error(one) if isinstance(one, EngineError) else {})
            answered.append(b"" if failed else np.ascontiguousarray(one).tobytes())
        self._say({"say": "labels", "answers": rows, "is_lost": bool(model.health.lost)}, answered)


def _run(ask: Ask, passes: Sequence[Chunk]) -> list[Floats | EngineError]:
    try:
        header, answered = asked(ask, [part.tobytes() for one in passes for part in (one.ids, one.rows)])
    except EngineLostError as error:
        return [error] * len(passes)
    return [
        unpacked_error(row) or np.frombuffer(logits, dtype=np.float32).reshape(-1, 2)
        for row, logits in zip(header["answers"], answered, strict=True)
    ]
