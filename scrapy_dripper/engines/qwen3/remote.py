"""The engine in several processes: workers read pages and draft labels, and one process has the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, EngineLostError, OversizeError, PrecisionError
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine, drafting_tagger
from scrapy_dripper.engines.qwen3.folder import load_prepared, model_folder, read_manifest
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask

Message = tuple[dict[str, Any], list[bytes]]
Ask = Callable[[dict[str, Any], list[bytes]], Message]
"""Sends a request to the model's process and returns the answer."""
Say = Callable[[dict[str, Any], list[bytes]], None]
"""Sends an answer to a worker."""
_ERRORS = {str(kind.reason): kind for kind in (EngineError, OversizeError, EngineLostError, PrecisionError)}


def load_remote(config: Config, ask: Ask) -> Qwen3Engine:
    """Return the engine of a worker. Raise ModelError if its part of the model cannot be loaded."""
    prepared = read_manifest(model_folder(config))  # the model's process has checked the files
    return Qwen3Engine(prepared, drafting_tagger(config), RemoteDecoder(ask))


class RemoteDecoder:
    """Sends prompts and drafts to the model in another process.

    If that fails, raise :exc:`EngineError`, or :exc:`EngineLostError` while the model does not run.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._limit = 0

    @property
    def limit(self) -> int:
        """Maximum number of tokens of a prompt together with its answer."""
        if not self._limit:
            self.decode([])
        return self._limit

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""
        sent = [part for task in tasks for part in (task.prompt.astype(np.int32).tobytes(), task.draft.tobytes())]
        header, parts = self._ask({"say": "label"}, sent)
        if "lost" in header:
            raise EngineLostError(str(header["lost"]))
        if "error" in header:
            raise EngineError(str(header["error"]))
        self._limit = int(header["limit"])  # it can change, because a new process may have less memory
        return [_unpacked(row, *parts[2 * i : 2 * i + 2]) for i, row in enumerate(header["answers"])]

    def close(self) -> None:
        """Do nothing: the model belongs to the other process."""


class ModelServer:
    """The server in the model's process: prompts and drafts in, labels out."""

    def __init__(self, config: Config, say: Say) -> None:
        self._config, self._say = config, say
        self.missing: str | None = None
        self._decoder: Decoder | None = None

    def load(self) -> None:
        """Load the model. Raise ModelError if it does not run as configured."""
        self._decoder = Decoder(load_prepared(model_folder(self._config)))

    def answer(self, header: dict[str, Any], parts: list[bytes]) -> None:  # noqa: ARG002 (all is in the parts)
        """Answer with the labels of each prompt."""
        decoder = self._decoder
        assert decoder is not None
        rows: list[dict[str, Any]] = []
        answered: list[bytes] = []
        for one in decoder.decode([_task(decoder, *parts[i : i + 2]) for i in range(0, len(parts), 2)]):
            if isinstance(one, EngineError):
                rows.append({"error": str(one), "reason": str(one.reason)})
                answered += [b"", b""]
            else:
                rows.append({name: getattr(one, name) for name in ("passes", "positions", "kept")})
                answered += [one.main.tobytes(), one.margins.tobytes()]
        is_lost = bool(decoder.lost)
        self._say({"say": "labels", "answers": rows, "limit": decoder.limit, "is_lost": is_lost}, answered)


def _task(decoder: Decoder, prompt: bytes, draft: bytes) -> DecodeTask:
    main = np.frombuffer(draft, dtype=np.bool_)
    ids = np.frombuffer(prompt, dtype=np.int32).astype(np.int64)
    return DecodeTask(ids, decoder.grammar.answer(len(main)), main, decoder.grammar.main, decoder.grammar.other)


def _unpacked(row: dict[str, Any], main: bytes, margins: bytes) -> Decoded | EngineError:
    if "error" in row:
        return _ERRORS[row["reason"]](str(row["error"]))
    return Decoded(np.frombuffer(main, dtype=np.bool_), np.frombuffer(margins, dtype=np.float32), **row)
