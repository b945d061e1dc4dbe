"""The engine ``qwen3``: turn pages into prompts with drafts, and decoded answers back into labels.

In a crawl, workers do that, and one process has the model (:class:`ModelServer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from scrapy_dripper.choose import ScoredPage, choose
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import (
    Engine,
    EngineError,
    EngineLostError,
    Labels,
    Limits,
    OversizeError,
    PrecisionError,
)
from scrapy_dripper.engines.qwen3.decoder import Bools, Decoded, Decoder, DecodeTask
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared, model_folder, read_manifest
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids, Prompt
from scrapy_dripper.engines.qwen3.profile import simplify
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page import NATIVE
from scrapy_dripper.page.page import Page

Message = tuple[dict[str, Any], list[bytes]]
Ask = Callable[[dict[str, Any], list[bytes]], Message]
"""Sends a request to the model's process and returns the answer."""
Say = Callable[[dict[str, Any], list[bytes]], None]
"""Sends an answer to a worker."""
_COUNTS = ("passes", "positions", "kept", "prefill", "rest")
_ERRORS = {str(kind.reason): kind for kind in (EngineError, OversizeError, EngineLostError, PrecisionError)}


class Decodes(Protocol):
    """Runs the model, in this process or in another one."""

    @property
    def limit(self) -> int:
        """Maximum number of tokens of a prompt together with its answer."""

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""

    def close(self) -> None:
        """Release the model."""


class Qwen3Engine:
    """Label blocks with a Qwen3 model whose answers are restricted to labels."""

    name = "qwen3"
    limits = Limits()

    def __init__(self, prepared: Prepared, tagger: Engine, decoder: Decodes | None = None) -> None:
        """``tagger`` writes the drafts. Without a ``decoder``, the model is opened in this process, which can raise
        :exc:`ModelError`.
        """
        self.profile = prepared.profile
        """Name of the profile by which pages must be cut."""
        self.decoder: Decodes = decoder or Decoder(prepared)
        self._prepared, self._tagger = prepared, tagger
        tokenizer = prepared.tokenizer()
        self._grammar, self._prompt = Grammar(tokenizer, prepared.answer), Prompt(tokenizer, prepared.prompt)

    @classmethod
    def load(cls, config: Config) -> Qwen3Engine:
        """Return the configured engine. Raise ModelError if it cannot work."""
        prepared = load_prepared(model_folder(config))
        return cls(prepared, drafting_tagger(config), Decoder(prepared, config.device))

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels or the error of each page. It is OversizeError for a page that is too long."""
        try:
            return self._label(pages)
        except EngineLostError as error:
            return [error] * len(pages)

    def close(self) -> None:
        """Release the model and the tagger."""
        self.decoder.close()
        self._tagger.close()

    def _label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        blocks = [simplify(page, self._prepared.truncate_chars) for page in pages]
        whole = self._prompt.encode(["".join(one) for one in blocks])
        prompts = [self._fitting(*one) for one in zip(pages, blocks, whole, strict=True)]
        tasks = [
            DecodeTask(one[0], self._grammar.answer(one[1]), draft[: one[1]])
            for one, draft in zip(prompts, drafts(self._tagger, pages), strict=True)
            if not isinstance(one, EngineError)
        ]
        decoded = iter(self.decoder.decode(tasks) if tasks else ())
        return [
            one if isinstance(one, EngineError) else _labels(len(page.blocks), next(decoded))
            for page, one in zip(pages, prompts, strict=True)
        ]

    def _fitting(self, page: Page, blocks: Sequence[str], prompt: Ids) -> tuple[Ids, int] | OversizeError:
        """Return the prompt of a page and the number of blocks in it, so that both fit with any answer.

        If the prompt of all blocks does not, the page's option decides whether that of its first blocks is taken.
        """
        n, limit = len(blocks), self.decoder.limit
        length = len(prompt) + self._grammar.length(n)
        error = OversizeError(f"{len(prompt):,} tokens, and {self._grammar.length(n):,} of the answer, over {limit:,}")
        while length > limit:
            # Blocks are left out in proportion to what is too much, until the rest fits.
            n = min(n - max(1, n // 16), n * limit // length)
            if n < 1 or page.config.oversize == "fallback":
                return error
            (prompt,) = self._prompt.encode(["".join(blocks[:n])])
            length = len(prompt) + self._grammar.length(n)
        return prompt, n


def drafting_tagger(config: Config) -> Tagger:
    """Return the bundled tagger, which writes the drafts."""
    return Tagger.load(replace(config, engine="tagger", model=None))


def drafts(tagger: Engine, pages: Sequence[Page]) -> list[Bools]:
    """Return the tagger's labels of the blocks of pages in any profile: other for a page that it cannot label.

    The tagger reads native blocks, so a page of another profile is cut again. A block has the label of the native block
    with the first text in the same element. Labels need not be exact, because a draft only affects the number of
    passes.
    """
    copies = [_native_copy(page) for page in pages]
    found = []
    for page, (copy, number), labels in zip(pages, copies, tagger.label([copy for copy, _ in copies]), strict=True):
        draft = np.zeros(len(page.blocks), dtype=np.bool_)
        if isinstance(labels, Labels):
            main = choose(ScoredPage(copy, labels)).by_page
            for block, leaf in enumerate(page.blocks.leaf.tolist()):
                owner = int(copy.tree.text_owner[number[leaf]]) if leaf in number else -1
                draft[block] = owner >= 0 and main[owner]
        found.append(draft)
    return found


def _native_copy(page: Page) -> tuple[Page, dict[int, int]]:
    """Return a page in the native profile, and the number there of each element of the page.

    The tree of the page is not changed: a native page is returned as it is, and another one is copied.
    """
    if type(page) is Page:
        return page, {i: i for i in page.blocks.leaf.tolist()}
    root = deepcopy(page.tree.nodes[0])
    number = dict(zip(root.iter(), range(len(page.tree.nodes)), strict=False))
    copy = replace(NATIVE.cut(root, page.url, page.declared), config=page.config)
    numbers = {number[node]: i for i, node in enumerate(copy.tree.nodes) if node in number}
    while number:  # inner elements first: otherwise, lxml takes quadratic time to free those that cut() removed
        number.popitem()
    return copy, numbers


def _labels(n: int, decoded: Decoded | EngineError) -> Labels | EngineError:
    """Return the labels of a page of n blocks, of which the first ones were decoded. The others are other."""
    if isinstance(decoded, EngineError):
        return decoded
    end = len(decoded.main)
    p, main = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.bool_)
    # Labels are not derived from probabilities, because rounding can change the label.
    p[:end], main[:end] = decoded.probabilities, decoded.main
    work = {"passes": decoded.passes, "positions": decoded.positions, "draft": end, "draft_kept": decoded.kept}
    work |= {"prefill_ms": round(1000 * decoded.prefill), "decode_ms": round(1000 * decoded.rest)}
    return Labels(p, main, truncated=end < n, work=work)


# ---------------------------------------------------------------------- the model in another process
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
        self._decoder = Decoder(load_prepared(model_folder(self._config)), self._config.device)

    def answer(self, header: dict[str, Any], parts: list[bytes]) -> None:  # noqa: ARG002 (all is in the parts)
        """Answer with the labels of each prompt."""
        decoder = self._decoder
        assert decoder is not None
        rows: list[dict[str, Any]] = []
        answered: list[bytes] = []
        decoded = decoder.decode([_task(decoder, *parts[i : i + 2]) for i in range(0, len(parts), 2)])
        for one in decoded:
            if isinstance(one, EngineError):
                rows.append({"error": str(one), "reason": str(one.reason)})
                answered += [b"", b""]
            else:
                rows.append({name: getattr(one, name) for name in _COUNTS})
                answered += [one.main.tobytes(), one.margins.tobytes()]
        # Memory may have run out for one page and been there again for the next one.
        is_lost = bool(decoded) and isinstance(decoded[-1], EngineLostError)
        self._say({"say": "labels", "answers": rows, "limit": decoder.limit, "is_lost": is_lost}, answered)


def _task(decoder: Decoder, prompt: bytes, draft: bytes) -> DecodeTask:
    main = np.frombuffer(draft, dtype=np.bool_)
    ids = np.frombuffer(prompt, dtype=np.int32).astype(np.int64)
    return DecodeTask(ids, decoder.grammar.answer(len(main)), main)


def _unpacked(row: dict[str, Any], main: bytes, margins: bytes) -> Decoded | EngineError:
    if "error" in row:
        return _ERRORS[row["reason"]](str(row["error"]))
    return Decoded(np.frombuffer(main, dtype=np.bool_), np.frombuffer(margins, dtype=np.float32), **row)
