"""Run the model: turn prompts into labels, in passes that fit the device, and handle passes that fail."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from scrapy_dripper.engines.base import EngineError, ModelError, PrecisionError
from scrapy_dripper.engines.health import Health
from scrapy_dripper.engines.one_thread import OneThread
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.loop import Decoded, NotFiniteError, Task, decode
from scrapy_dripper.engines.qwen3.packing import pack
from scrapy_dripper.engines.qwen3.passes import open_passes
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.engines.qwen3.session import open_session, tokens_that_fit
from scrapy_dripper.engines.session import is_no_memory, no_room

logger = logging.getLogger(__name__)

FULL_PASS = {"cuda": 1024, "cpu": 32}
"""Number of tokens below which a pass is hardly faster, because launching kernels or reading weights dominates."""
MOST_TOGETHER = 16_384
"""Maximum number of tokens in a pass over several pages. Longer passes are no faster and take more memory."""


class Decoder:
    """Labels the blocks of prompts. It needs neither pages nor the tagger, so it can run in a separate process."""

    def __init__(
        self, prepared: Prepared, *, device: str = "auto", threads: int = 1, sdpa_kernel: int | None = None
    ) -> None:
        """Open a prepared model. Raise :exc:`ModelError` if it does not run as configured.

        ``sdpa_kernel`` selects the attention kernels that a GPU may run.
        """
        self.prepared = prepared
        tokenizer = prepared.tokenizer()
        self.grammar = Grammar(tokenizer, prepared.answer)
        self.prompt = Prompt(tokenizer, prepared.prompt)
        session = open_session(prepared, device, threads, sdpa_kernel)
        fitting = tokens_that_fit(prepared)
        self._together = min(fitting // 4, MOST_TOGETHER)
        self.limit = min(prepared.context, fitting)
        """Maximum number of tokens of a prompt together with its answer."""
        self.passes = open_passes(session, prepared, self.prompt.shared, self.limit)
        self._thread = OneThread()
        self.health = Health(self.smoke)
        try:
            self._thread(self.smoke)
        except Exception as error:
            if is_no_memory(error):
                raise no_room(prepared, error) from None
            raise ModelError(
                f"The model in {prepared.folder} does not run ({self._explained(error)}): see what 'scrapy-dripper "
                "export --check' says, and export it again"
            ) from None

    @property
    def is_lost(self) -> bool:
        """True if the model no longer runs, so that prompts get :exc:`EngineLostError`."""
        return bool(self.health.lost)

    def decode(self, tasks: Sequence[Task]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""
        answers: dict[int, Decoded | EngineError] = {}
        prefix = len(self.prompt.shared)
        for shares in (True, False):
            some = [i for i, task in enumerate(tasks) if self.prompt.shares(task.prompt) == shares]
            again = prefix if shares and self.prepared.attention == "gqa" else 0
            sizes = [len(tasks[i]) - shares * prefix for i in some]
            for group in pack(sizes, again, FULL_PASS[self.prepared.device], self._together):
                chosen = [some[i] for i in group]
                decoded = self._thread(self._decode, [tasks[i] for i in chosen], shares)
                answers.update(zip(chosen, decoded, strict=True))
        return [answers[i] for i in range(len(tasks))]

    def close(self) -> bool:
        """Release the session and its memory. Return False if that has been done before."""
        if vars(self).pop("passes", None) is None:
            return False
        self._thread.close()
        return True

    def _decode(self, tasks: Sequence[Task], shares: bool) -> list[Decoded | EngineError]:
        """Decode tasks together. If that fails, mostly for lack of memory, halve them, and retry a single one once."""
        if (lost := self.health.error()) is not None:
            return [lost] * len(tasks)
        try:
            return [*self._passes_over(tasks, shares)]
        except NotFiniteError as error:
            if len(tasks) == 1:  # a retry would give the same result
                return [PrecisionError(self._explained(error))]
        except Exception:  # onnxruntime has its own exception types, but none for a lack of memory
            logger.debug("passes over %d prompts failed, and are tried again", len(tasks), exc_info=True)
        if len(tasks) > 1:
            half = len(tasks) // 2
            return self._decode(tasks[:half], shares) + self._decode(tasks[half:], shares)
        try:
            return [*self._passes_over(tasks, shares)]
        except Exception as error:
            return [self.health.failed(f"{type(error).__name__}: {error}")]

    def _passes_over(self, tasks: Sequence[Task], shares: bool) -> list[Decoded]:
        try:
            found = decode(self.passes, tasks, self.passes.begin([len(task) for task in tasks], shared=shares))
        except Exception:
            self.passes.release()
            raise
        self.health.worked()
        return found

    def smoke(self) -> None:
        """Decode two blocks, in two passes. Raise any exception if that fails."""
        (prompt,) = self.prompt.encode(['<p _item_id="1">a</p><p _item_id="2">b</p>'])
        answer = self.grammar.answer(2)
        task = Task(prompt, answer, np.zeros(2, dtype=np.bool_), self.grammar.main, self.grammar.other)
        try:
            decode(self.passes, [task], self.passes.begin([len(task)], shared=self.prompt.shares(prompt)), 0)
        except Exception:
            self.passes.release()
            raise

    def _explained(self, error: Exception) -> str:
        """Return the message of an error, with advice if the data type of the model caused it."""
        if isinstance(error, NotFiniteError) and self.prepared.dtype == "float16":
            return f"{error}: fp16 ends at 65,504; export the model with '--dtype bf16', which does not"
        return str(error)
