"""Messages between a worker and the model's process: numbers in requests, numbers or errors in answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scrapy_dripper.engines.base import EngineError, EngineLostError, OversizeError, PrecisionError

Message = tuple[dict[str, Any], list[bytes]]
Ask = Callable[[dict[str, Any], list[bytes]], Message]
"""Sends a request to the model's process and returns the answer."""
Say = Callable[[dict[str, Any], list[bytes]], None]
"""Sends an answer to a worker."""
_ERRORS = {str(kind.reason): kind for kind in (EngineError, OversizeError, EngineLostError, PrecisionError)}


def asked(ask: Ask, parts: Sequence[bytes]) -> Message:
    """Return the answer of the model's process. Raise EngineError, or EngineLostError, if it failed."""
    header, answered = ask({"say": "label"}, [*parts])
    if "lost" in header:
        raise EngineLostError(str(header["lost"]))
    if "error" in header:
        raise EngineError(str(header["error"]))
    return header, answered


def packed_error(error: EngineError) -> dict[str, Any]:
    """Return an error as part of a message."""
    return {"error": str(error), "reason": str(error.reason)}


def unpacked_error(row: dict[str, Any]) -> EngineError | None:
    """Return the error in a part of a message, or None if there is none."""
    return _ERRORS[row["reason"]](str(row["error"])) if "error" in row else None
