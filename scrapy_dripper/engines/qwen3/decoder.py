"""Run the model: turn prompts into labels, and handle passes that fail."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from scrapy_dripper.engines.base import EngineError, EngineLostError, ModelError, PrecisionError
from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask, NotFiniteError, decode
from scrapy_dripper.engines.qwen3.passes import Passes
from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.engines.qwen3.session import is_no_memory, no_room, open_session, tokens_that_fit
from scrapy_dripper.engines.qwen3.windows import Splitter

logger = logging.getLogger(__name__)

LOST_AFTER = 3
"""Number of failures in a row after which the model is tested on a page that it must be able to process."""


class Decoder:
    """Labels the blocks of prompts. It needs neither pages nor the tagger, so it can run in a separate process."""

    def __init__(self, prepared: Prepared, device: str = "auto") -> None:
        """Open a prepared model. Raise :exc:`ModelError` if it does not run as configured."""
        self.prepared = prepared
        tokenizer = prepared.tokenizer()
        self.grammar = Grammar(tokenizer, prepared.answer)
        self.prompt = Prompt(tokenizer, prepared.prompt)
        session = open_session(prepared, device)
        self.limit = min(prepared.context, tokens_that_fit(prepared))
        """Maximum number of tokens of a prompt together with its answer."""
        splitter = Splitter(self.prompt, self.grammar, self.limit, prepared.window_tokens)
        if splitter.room <= self.grammar.length(1):
            raise ModelError(
                f"The model in {prepared.folder} has no room for pages: it takes {self.limit:,} tokens here, "
                f"window_tokens is {prepared.window_tokens}, and its prompt has {len(self.prompt.encode([''])[0]):,} "
                "without a page"
            )
        self.passes: Passes | None = Passes(session, prepared, self.prompt.shared, self.limit)
        self.lost = ""
        """Why the model no longer runs, so that prompts get :exc:`EngineLostError`; empty while it runs.

        The process of a lost model is ended. A model in the program's own process is tested again with each prompt,
        because another program may have used the memory of the device.
        """
        self._failures = 0
        try:
            self._smoke()
        except Exception as error:
            if is_no_memory(error):
                raise no_room(prepared, error) from None
            raise ModelError(
                f"The model in {prepared.folder} does not run ({self._explained(error)}): see what 'scrapy-dripper "
                "export --check' says, and export it again"
            ) from None

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""
        return [self._decode(task) for task in tasks]

    def close(self) -> None:
        """Release the session and its memory. Further calls have no effect."""
        self.passes = None

    def _decode(self, task: DecodeTask) -> Decoded | EngineError:
        """Decode a task. If that fails, mostly for lack of memory, retry it once."""
        if self.lost and not self._runs():
            return EngineLostError(self.lost)
        found = self._tried(task)
        if isinstance(found, EngineError) and not isinstance(found, PrecisionError):  # which a retry would repeat
            found = self._tried(task)
            self._failures += isinstance(found, EngineError)
            if self._failures >= LOST_AFTER and isinstance(found, EngineError) and not self._runs():
                return EngineLostError(self.lost)
        if not isinstance(found, EngineError):
            self._failures = 0
        return found

    def _tried(self, task: DecodeTask) -> Decoded | EngineError:
        try:
            return self._passes_over(task)
        except NotFiniteError as error:
            return PrecisionError(self._explained(error))
        except Exception as error:  # onnxruntime has its own exception types, but none for a lack of memory
            logger.debug("passes over a prompt failed", exc_info=True)
            return EngineError(f"{type(error).__name__}: {error}")

    def _passes_over(self, task: DecodeTask, lookahead: int | None = None) -> Decoded:
        passes = self.passes
        if passes is None:
            raise RuntimeError("the model was closed")
        try:
            start = passes.begin(len(task), shared=self.prompt.shares(task.prompt))
            return decode(passes, task, start, lookahead)
        except Exception:
            passes.release()
            raise

    def _runs(self) -> bool:
        """Return True if the model still labels two blocks. Otherwise, it is lost."""
        try:
            self._smoke()
        except Exception as error:
            self.lost = f"the model no longer runs ({type(error).__name__}: {error})"
            return False
        self._failures, self.lost = 0, ""
        return True

    def _smoke(self) -> None:
        """Decode two blocks, in two passes. Raise any exception if that fails."""
        (prompt,) = self.prompt.encode(['<p _item_id="1">a</p><p _item_id="2">b</p>'])
        draft = np.zeros(2, dtype=np.bool_)
        self._passes_over(DecodeTask(prompt, self.grammar.answer(2), draft, self.grammar.main, self.grammar.other), 0)

    def _explained(self, error: Exception) -> str:
        """Return the message of an error, with advice if the data type of the model caused it."""
        if isinstance(error, NotFiniteError) and self.prepared.dtype == "float16":
            return f"{error}: fp16 ends at 65,504; export the model with '--dtype bf16', which does not"
        return str(error)
