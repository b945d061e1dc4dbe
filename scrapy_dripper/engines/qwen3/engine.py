"""Qwen3 as an engine: pages to prompts, prompts to labels, in batches that fit."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import (
    Engine,
    EngineError,
    EngineLostError,
    Labels,
    Limits,
    ModelError,
    PrecisionError,
)
from scrapy_dripper.engines.qwen3.draft import Draft
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.loop import Decoded, NotFiniteError, Task, decode
from scrapy_dripper.engines.qwen3.one_thread import OneThread
from scrapy_dripper.engines.qwen3.packing import pack
from scrapy_dripper.engines.qwen3.parts import Part, Splitter
from scrapy_dripper.engines.qwen3.passes import open_passes
from scrapy_dripper.engines.qwen3.prepared import Prepared, load_prepared
from scrapy_dripper.engines.qwen3.prompt import Prompt, page_html
from scrapy_dripper.engines.qwen3.reading import Reader, Reading
from scrapy_dripper.engines.qwen3.session import open_session, tokens_that_fit
from scrapy_dripper.engines.qwen3.windows import average
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page.page import Page

logger = logging.getLogger(__name__)

FULL_PASS = {"cuda": 1024, "cpu": 32}
"""Tokens under which a pass is hardly faster: launching its kernels, or reading the weights, takes as long."""
MOST_TOGETHER = 16_384
"""Tokens in a pass over several pages; longer passes are no faster and take more memory."""
LOST_AFTER = 3
"""Pages that fail in a row before the engine asks itself whether it works at all."""
RETRY_SECONDS = 30.0
"""Pause after which a model that was lost is loaded again."""


class Qwen3Engine:
    """Label blocks by a Qwen3 model whose answer can be nothing but labels."""

    name = "qwen3"
    limits = Limits()

    def __init__(
        self,
        prepared: Prepared,
        tagger: Engine,
        *,
        device: str = "auto",
        threads: int = 1,
        max_tokens: int | None = None,
        truncate_chars: int | None = None,
        cascade: float | None = None,
        sdpa_kernel: int | None = None,
    ) -> None:
        """Open a prepared model. Raise :exc:`ModelError`, saying what to do, if it does not run as asked.

        ``tagger`` writes the drafts. ``max_tokens`` bounds prompts; by default they have what the model's context, or
        the device's memory, leaves beside the answer. ``truncate_chars``, 0 for whole texts, is by default what the
        model was trained with. Pages for which the tagger's confidence is at least ``cascade`` keep its labels.
        ``sdpa_kernel`` says which attention kernels a GPU may run.
        """
        self.profile = prepared.profile
        """Name of the profile that pages must be cut by."""
        self._prepared = prepared
        self._reader = Reader(tagger, prepared.profile, letters(prepared, truncate_chars), cascade)
        tokenizer = prepared.tokenizer()
        self._grammar = Grammar(tokenizer, prepared.answer)
        self._prompt = Prompt(tokenizer, prepared.prompt)
        self._open = partial(open_session, prepared, device, threads, sdpa_kernel)
        session = self._open()
        fitting = tokens_that_fit(prepared)
        self._together = min(fitting // 4, MOST_TOGETHER)
        limit = min(prepared.context, fitting)
        self._passes = open_passes(session, prepared, self._prompt.shared, limit)
        self._thread = OneThread()
        self._failures, self._lost, self._again = 0, "", 0.0
        try:
            self._thread(self._smoke)
        except Exception as error:
            raise ModelError(
                f"The model in {prepared.folder} does not run ({self._explained(error)}): see what 'scrapy-dripper "
                "export --check' says, and export it again"
            ) from None
        self._splitter = Splitter(self._prompt, self._grammar, limit, max_tokens)
        if self._splitter.budget <= self._grammar.length(1):
            raise ModelError(
                f"The model in {prepared.folder} has no room for pages: it takes {self._splitter.limit:,} tokens here, "
                f"DRIPPER_MAX_TOKENS is {max_tokens}, and its prompt has {len(self._prompt.encode([''])[0]):,} without "
                "a page"
            )

    @classmethod
    def load(cls, config: Config) -> Qwen3Engine:
        """Return the engine that a configuration asks for. Raise ModelError, saying what to do, if it cannot work."""
        if config.model is None:
            raise ModelError(
                "No Qwen3 model comes with the package: set DRIPPER_MODEL to a folder made with 'scrapy-dripper export'"
            )
        prepared = load_prepared(config.model)
        tagger = Tagger.load(replace(config, engine="tagger", model=None, device="auto"))
        return cls(
            prepared,
            tagger,
            device=config.device,
            threads=config.threads,
            max_tokens=config.max_tokens,
            truncate_chars=config.truncate_chars,
            cascade=config.cascade,
            sdpa_kernel=config.sdpa_kernel,
        )

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page; OversizeError for one that is too long and may not be divided."""
        return self.answer(self._reader.read(pages))

    def answer(self, readings: Sequence[Reading]) -> list[Labels | EngineError]:
        """Return the labels of pages that have been read, perhaps in another process."""
        answers: dict[int, Labels | EngineError] = {
            i: reading.kept for i, reading in enumerate(readings) if reading.kept is not None
        }
        asked = [i for i in range(len(readings)) if i not in answers]
        parts: dict[int, list[Part]] = {}
        prompts = self._prompt.encode([page_html(readings[i].blocks) for i in asked])
        for i, prompt in zip(asked, prompts, strict=True):
            divided = self._divided(readings[i].blocks, prompt, readings[i].oversize)
            if isinstance(divided, EngineError):
                answers[i] = divided
            else:
                parts[i] = divided
        tasks = [self._task(part, readings[i].draft) for i, own in parts.items() for part in own]
        decoded = iter(self.decode(tasks))
        for i, own_parts in parts.items():
            answers[i] = _merged(len(readings[i].blocks), own_parts, [next(decoded) for _ in own_parts])
        return [answers[i] for i in range(len(readings))]

    def decode(self, tasks: Sequence[Task]) -> list[Decoded | EngineError]:
        """Return the labels of each task, or why there are none, in order."""
        answers: dict[int, Decoded | EngineError] = {}
        prefix = len(self._prompt.shared)
        for shares in (True, False):
            some = [i for i, task in enumerate(tasks) if self._prompt.shares(task.prompt) == shares]
            again = prefix if shares and self._prepared.attention == "gqa" else 0
            sizes = [len(tasks[i]) - shares * prefix for i in some]
            for group in pack(sizes, again, FULL_PASS[self._prepared.device], self._together):
                chosen = [some[i] for i in group]
                decoded = self._thread(self._decode, [tasks[i] for i in chosen], shares)
                answers.update(zip(chosen, decoded, strict=True))
        return [answers[i] for i in range(len(tasks))]

    @property
    def is_lost(self) -> bool:
        """True if the model does not run any more, and pages get :exc:`EngineLostError`."""
        return bool(self._lost)

    def close(self) -> None:
        """Let go of the session and its memory; closing twice is no error."""
        if vars(self).pop("_passes", None) is not None:
            self._thread.close()
            self._reader.tagger.close()

    def _divided(self, blocks: Sequence[str], prompt: Ids, oversize: str) -> list[Part] | EngineError:
        try:
            return self._splitter.parts(blocks, prompt, oversize)
        except EngineError as error:
            return error

    def _task(self, part: Part, draft: Draft) -> Task:
        answer = self._grammar.answer(len(part.blocks))
        main = draft.labels.main[part.blocks.start : part.blocks.stop]
        return Task(part.prompt, answer, main, self._grammar.main, self._grammar.other)

    def _decode(self, tasks: Sequence[Task], shares: bool) -> list[Decoded | EngineError]:
        """Decode tasks together; where that fails, for want of memory mostly, in halves, and a single one once more."""
        if self._lost and not self._regain():
            return [EngineLostError(self._lost)] * len(tasks)
        try:
            return [*self._passes_over(tasks, shares)]
        except NotFiniteError as error:
            if len(tasks) == 1:  # another try would give the same
                return [PrecisionError(self._explained(error))]
        except Exception:  # onnxruntime raises types of its own, and none that says that there is no memory
            logger.debug("passes over %d prompts failed, and are tried again", len(tasks), exc_info=True)
        if len(tasks) > 1:
            half = len(tasks) // 2
            return self._decode(tasks[:half], shares) + self._decode(tasks[half:], shares)
        try:
            return [*self._passes_over(tasks, shares)]
        except Exception as error:
            return [self._failed(f"{type(error).__name__}: {error}")]

    def _explained(self, error: Exception) -> str:
        """Return what an error means, where the data type of the model has to do with it."""
        if isinstance(error, NotFiniteError) and self._prepared.dtype == "float16":
            return f"{error}: fp16 ends at 65,504; export the model with '--dtype bf16', which does not"
        return str(error)

    def _failed(self, problem: str) -> EngineError:
        """Return the error of a page; after some in a row, find out whether it is the page's or the engine's."""
        self._failures += 1
        if self._failures < LOST_AFTER:
            return EngineError(problem)
        try:
            self._smoke()
        except Exception as error:
            self._lost = f"the model does not run any more ({type(error).__name__}: {error})"
            self._again = time.monotonic() + RETRY_SECONDS
            self._passes.release()
            return EngineLostError(self._lost)
        self._failures = 0
        return EngineError(problem)

    def _regain(self) -> bool:
        """Load the model again if it was lost long enough ago; return True if it works."""
        if time.monotonic() < self._again:
            return False
        try:
            self._passes.reopen(self._open())
            self._smoke()
        except Exception as error:
            logger.debug("the model is still lost: %(error)s", {"error": error})
            self._again = time.monotonic() + RETRY_SECONDS
            return False
        self._failures, self._lost = 0, ""
        return True

    def _passes_over(self, tasks: Sequence[Task], shares: bool) -> list[Decoded]:
        try:
            found = decode(self._passes, tasks, self._passes.begin([len(task) for task in tasks], shared=shares))
            self._failures = 0
            return found
        except Exception:
            self._passes.release()
            raise

    def _smoke(self) -> None:
        """Decode two blocks, in two passes. Raise what goes wrong."""
        (prompt,) = self._prompt.encode(['<p _item_id="1">a</p><p _item_id="2">b</p>'])
        answer = self._grammar.answer(2)
        task = Task(prompt, answer, np.zeros(2, dtype=np.bool_), self._grammar.main, self._grammar.other)
        decode(self._passes, [task], self._passes.begin([len(task)], shared=self._prompt.shares(prompt)), 0)


def letters(prepared: Prepared, truncate_chars: int | None) -> int | None:
    """Return the characters after which a text is cut: as it is set, else as the model was trained."""
    return prepared.truncate_chars if truncate_chars is None else truncate_chars


def _merged(n: int, parts: Sequence[Part], decoded: Sequence[Decoded | EngineError]) -> Labels | EngineError:
    """Return the labels of a page of n blocks from those of its parts; blocks that are in no part are other."""
    good: list[Decoded] = []
    for one in decoded:
        if isinstance(one, EngineError):
            return one
        good.append(one)
    end = parts[-1].blocks.stop
    p = np.zeros(n)
    p[:end] = average([part.blocks for part in parts], [one.probabilities for one in good], end)
    main = p > 0.5
    if len(parts) == 1:
        main[:end] = good[0].main  # rounding can hide what decided
    work = {
        "passes": sum(one.passes for one in good),
        "positions": sum(one.positions for one in good),
        "draft": sum(len(one.main) for one in good),
        "draft_kept": sum(one.kept for one in good),
        "windows": len(parts),
    }
    return Labels(p.astype(np.float32), main, truncated=end < n, work=work)
