"""The engine in two processes: workers read pages and draft their labels, one process has the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, EngineLostError, Labels, Limits, OversizeError, PrecisionError
from scrapy_dripper.engines.qwen3.draft import Draft
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine, letters
from scrapy_dripper.engines.qwen3.prepared import read_manifest
from scrapy_dripper.engines.qwen3.reading import Reader, Reading
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page.page import Page

Message = tuple[dict[str, Any], list[bytes]]
_PLAIN = ("truncated", "page_type", "page_type_probability", "quality")
"""What JSON can hold of labels as it is."""
_ERRORS = {str(kind.reason): kind for kind in (EngineError, OversizeError, EngineLostError, PrecisionError)}
Ask = Callable[[dict[str, Any], list[bytes]], Message]


class RemoteEngine:
    """The engine ``qwen3`` as a worker has it: what it cannot answer itself, it asks the model's process."""

    name = Qwen3Engine.name
    limits = Limits()

    def __init__(self, reader: Reader, profile: str, ask: Ask) -> None:
        self.profile = profile
        self._reader, self._ask = reader, ask

    @classmethod
    def load(cls, config: Config, ask: Ask) -> RemoteEngine:
        """Return the engine of a worker. Raise ModelError if its half of the model cannot be loaded."""
        assert config.model is not None  # the model's process has been started before
        prepared = read_manifest(config.model)
        tagger = Tagger.load(replace(config, engine="tagger", model=None, device="auto"))
        reader = Reader(tagger, prepared.profile, letters(prepared, config.truncate_chars), config.cascade)
        return cls(reader, prepared.profile, ask)

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page. Raise EngineError if the model's process does not answer."""
        readings = self._reader.read(pages)
        asked = [reading for reading in readings if reading.kept is None]
        answers = iter(self._answers(asked) if asked else ())
        return [next(answers) if reading.kept is None else reading.kept for reading in readings]

    def close(self) -> None:
        """Close the tagger."""
        self._reader.tagger.close()

    def _answers(self, readings: Sequence[Reading]) -> list[Labels | EngineError]:
        header, parts = self._ask({"say": "label", "oversize": [one.oversize for one in readings]}, _packed(readings))
        if "lost" in header:
            return [EngineLostError(str(header["lost"]))] * len(readings)
        if "error" in header:
            raise EngineError(str(header["error"]))
        return [_unpacked_answer(row, parts, 2 * i) for i, row in enumerate(header["answers"])]


class ModelServer:
    """The model's process: readings in, labels out."""

    def __init__(self, config: Config, say: Callable[[dict[str, Any], list[bytes]], None]) -> None:
        self._config, self._say = config, say
        self.missing: str | None = None
        self._engine: Qwen3Engine | None = None

    def load(self) -> None:
        """Load the model. Raise ModelError, saying what to do, if it does not run as asked."""
        self._engine = Qwen3Engine.load(self._config)

    def answer(self, header: dict[str, Any], parts: list[bytes]) -> None:
        """Answer with the labels of each reading."""
        assert self._engine is not None
        rows: list[dict[str, Any]] = []
        answered: list[bytes] = []
        for answer in self._engine.answer(_unpacked(header["oversize"], parts)):
            if isinstance(answer, EngineError):
                rows.append({"error": str(answer), "reason": answer.reason})
                answered += [b"", b""]
            else:
                rows.append({name: getattr(answer, name) for name in _PLAIN} | {"work": dict(answer.work)})
                answered += [answer.probabilities.astype(np.float32).tobytes(), answer.main.tobytes()]
        self._say({"say": "labels", "answers": rows, "is_lost": self._engine.is_lost}, answered)


def _packed(readings: Sequence[Reading]) -> list[bytes]:
    parts = []
    for one in readings:
        draft = one.draft.labels
        parts += [
            json.dumps(list(one.blocks)).encode("ascii"),
            draft.probabilities.astype(np.float32).tobytes(),
            draft.main.tobytes(),
        ]
    return parts


def _unpacked(oversize: Sequence[str], parts: Sequence[bytes]) -> list[Reading]:
    return [
        Reading(json.loads(parts[3 * i]), Draft(_labels(parts[3 * i + 1], parts[3 * i + 2]), 0.0), one)
        for i, one in enumerate(oversize)
    ]


def _labels(probabilities: bytes, main: bytes) -> Labels:
    return Labels(np.frombuffer(probabilities, dtype=np.float32), np.frombuffer(main, dtype=np.bool_))


def _unpacked_answer(row: dict[str, Any], parts: Sequence[bytes], i: int) -> Labels | EngineError:
    if "error" in row:
        return _ERRORS[row["reason"]](str(row["error"]))
    labels = _labels(parts[i], parts[i + 1])
    return replace(labels, work=row["work"], **{name: row[name] for name in _PLAIN})
