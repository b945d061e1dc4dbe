"""The engine in several processes: workers read pages and draft labels, and one process has the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, EngineLostError, Labels, Limits
from scrapy_dripper.engines.prepared import model_folder, read_manifest
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine
from scrapy_dripper.engines.qwen3.front import Front, check_context
from scrapy_dripper.engines.qwen3.loop import Decoded, Task
from scrapy_dripper.engines.qwen3.prepared import Prepared, load_prepared
from scrapy_dripper.engines.remote import Ask, Message, Say, asked, packed_error, unpacked_error
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page.page import Page


class RemoteEngine:
    """The engine ``qwen3`` in a worker. It sends requests to the model in another process."""

    name = Qwen3Engine.name
    limits = Limits()

    def __init__(self, front: Front, profile: str, ask: Ask) -> None:
        self.profile = profile
        self._front, self._ask = front, ask
        self._limit = 0

    @classmethod
    def load(cls, config: Config, ask: Ask) -> RemoteEngine:
        """Return the engine of a worker. Raise ModelError if its part of the model cannot be loaded."""
        prepared = read_manifest(Prepared, model_folder(config))  # the model's process has checked the files
        tagger = Tagger.load(replace(config, engine="tagger", model=None, device="auto"))
        front = Front(
            prepared,
            tagger,
            max_tokens=config.max_tokens,
            truncate_chars=config.truncate_chars,
            cascade=config.cascade,
        )
        return cls(front, prepared.profile, ask)

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page. Raise EngineError if the model's process does not answer."""
        try:
            if not self._limit:
                self._answered([])
            return self._front.label(pages, self._decode, self._limit)
        except EngineLostError as error:
            return [error] * len(pages)

    def close(self) -> None:
        """Close the tagger."""
        self._front.tagger.close()

    def _decode(self, tasks: Sequence[Task]) -> list[Decoded | EngineError]:
        header, parts = self._answered(tasks)
        return [_unpacked(row, *parts[2 * i : 2 * i + 2]) for i, row in enumerate(header["answers"])]

    def _answered(self, tasks: Sequence[Task]) -> Message:
        parts = [part for task in tasks for part in (task.prompt.astype(np.int32).tobytes(), task.draft.tobytes())]
        header, answered = asked(self._ask, parts)
        self._limit = int(header["limit"])  # it can change, because a new process may have less memory
        return header, answered


load_remote = RemoteEngine.load


class ModelServer:
    """The server in the model's process: prompts and drafts in, labels out."""

    def __init__(self, config: Config, say: Say) -> None:
        self._config, self._say = config, say
        self.missing: str | None = None
        self._decoder: Decoder | None = None

    def load(self) -> None:
        """Load the model. Raise ModelError if it does not run as configured."""
        config = self._config
        prepared = load_prepared(model_folder(config))
        decoder = Decoder(prepared, device=config.device, threads=config.threads, sdpa_kernel=config.sdpa_kernel)
        check_context(decoder, config.max_tokens)
        self._decoder = decoder

    def answer(self, header: dict[str, Any], parts: list[bytes]) -> None:  # noqa: ARG002 (all is in the parts)
        """Answer with the labels of each prompt."""
        decoder = self._decoder
        assert decoder is not None
        rows: list[dict[str, Any]] = []
        answered: list[bytes] = []
        for one in decoder.decode([_task(decoder, *parts[i : i + 2]) for i in range(0, len(parts), 2)]):
            if isinstance(one, EngineError):
                rows.append(packed_error(one))
                answered += [b"", b""]
            else:
                rows.append({name: getattr(one, name) for name in ("passes", "positions", "kept")})
                answered += [one.main.tobytes(), one.margins.tobytes()]
        self._say({"say": "labels", "answers": rows, "limit": decoder.limit, "is_lost": decoder.is_lost}, answered)


def _task(decoder: Decoder, prompt: bytes, draft: bytes) -> Task:
    main = np.frombuffer(draft, dtype=np.bool_)
    ids = np.frombuffer(prompt, dtype=np.int32).astype(np.int64)
    return Task(ids, decoder.grammar.answer(len(main)), main, decoder.grammar.main, decoder.grammar.other)


def _unpacked(row: dict[str, Any], main: bytes, margins: bytes) -> Decoded | EngineError:
    if (error := unpacked_error(row)) is not None:
        return error
    return Decoded(np.frombuffer(main, dtype=np.bool_), np.frombuffer(margins, dtype=np.float32), **row)
