"""Run the encoder: passes over tokens give the logits of both classes. Passes that fail are handled."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scrapy_dripper.engines.base import EngineError, ModelError, PrecisionError
from scrapy_dripper.engines.encoder.chunks import Chunk, chunks
from scrapy_dripper.engines.encoder.prepared import Encoder
from scrapy_dripper.engines.health import Health
from scrapy_dripper.engines.one_thread import OneThread
from scrapy_dripper.engines.prepared import MANIFEST
from scrapy_dripper.engines.session import is_no_memory, no_room, open_graph, usable_memory

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float32]
SCORES = 6
"""Number of score matrices [heads, S, S] that a pass holds at a time, with a margin: 5.3 were measured."""


class EncoderModel:
    """Runs the graph of a prepared encoder, one pass for each chunk."""

    def __init__(self, prepared: Encoder, *, device: str = "auto", threads: int = 1, most: int | None = None) -> None:
        """Open a prepared encoder for passes of at most ``most`` tokens, by default its context.

        Raise :exc:`ModelError` if it does not run as configured.
        """
        self.prepared = prepared
        self._session = open_graph(prepared, device, threads, "The encoder")
        inputs = {one.name for one in self._session.get_inputs()}
        if inputs != {"input_ids", "rows"} or [one.name for one in self._session.get_outputs()] != ["logits"]:
            raise ModelError(f"{prepared.graph} is not what {prepared.folder / MANIFEST} says: export the model again")
        self._check_room(min(prepared.context, most or prepared.context))
        self._thread = OneThread()
        self.health = Health(self.smoke)
        try:
            self._thread(self.smoke)
        except Exception as error:
            self.close()
            if is_no_memory(error):
                raise no_room(prepared, error) from None
            raise ModelError(
                f"The encoder in {prepared.folder} does not run ({error}): see what 'scrapy-dripper export --check' "
                "says, and export it again"
            ) from None

    def run(self, passes: Sequence[Chunk]) -> list[Floats | EngineError]:
        """Return the logits [blocks, 2] of other and main, or the error, of each pass, in order."""
        return [self._thread(self._run, one) for one in passes]

    def smoke(self) -> None:
        """Label two blocks. Raise any exception if that fails."""
        (one,) = chunks([[self.prepared.separator]] * 2, self.prepared, self.prepared.context)
        self._pass(one)

    def close(self) -> None:
        """Release the session and its memory. Further calls have no effect."""
        self._thread.close()
        vars(self).pop("_session", None)

    def _run(self, one: Chunk) -> Floats | EngineError:
        """Run a pass. Retry it once if it fails, because another program may have used the memory for a moment."""
        if (lost := self.health.error()) is not None:
            return lost
        try:
            try:
                logits = self._pass(one)
            except PrecisionError as error:  # a retry would give the same result
                return error
            except Exception:  # onnxruntime has its own exception types
                logger.debug("a pass failed, and is tried again", exc_info=True)
                logits = self._pass(one)
        except Exception as error:
            return self.health.failed(f"{type(error).__name__}: {error}")
        self.health.worked()
        return logits

    def _pass(self, one: Chunk) -> Floats:
        (logits,) = self._session.run(["logits"], {"input_ids": one.ids[None], "rows": one.rows})
        if not np.isfinite(logits).all():
            advice = ": export the model with '--dtype bf16'" if self.prepared.dtype == "float16" else ""
            raise PrecisionError(f"the encoder's logits are not finite{advice}")
        found: Floats = logits if self.prepared.main else logits[:, ::-1]
        return found

    def _check_room(self, tokens: int) -> None:
        """Raise ModelError if the longest pass does not fit into memory, because long pages would fail later."""
        square = SCORES * self.prepared.heads * self.prepared.number_bytes
        room = int((usable_memory(self.prepared.device) / square) ** 0.5)
        least = len(chunks([[0]], self.prepared, self.prepared.context)[0].ids)
        if room < tokens or tokens < least:
            raise ModelError(
                f"The encoder in {self.prepared.folder} reads {tokens:,} tokens in a pass, and {room:,} fit into the "
                f"memory here: set DRIPPER_MAX_TOKENS to a number from {least} to {room:,}"
            )
