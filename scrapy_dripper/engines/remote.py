"""What a worker and the process that has the model say to each other: numbers there, numbers or errors back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scrapy_dripper.engines.base import EngineError, EngineLostError, OversizeError, PrecisionError

Message = tuple[dict[str, Any], list[bytes]]
Ask = Callable[[dict[str, Any], list[bytes]], Message]
"""Ask the model's process."""
Say = Callable[[dict[str, Any], list[bytes]], None]
"""Answer a worker."""
_ERRORS = {str(kind.reason): kind for kind in (EngineError, OversizeError, EngineLostError, PrecisionError)}


def asked(ask: Ask, parts: Sequence[bytes]) -> Message:
    """Return what the model's process answers. Raise EngineError, or EngineLostError, if it does not."""
    header, answered = ask({"say": "label"}, [*parts])
    if "lost" in header:
        raise EngineLostError(str(header["lost"]))
    if "error" in header:
        raise EngineError(str(header["error"]))
    return header, answered


def packed_error(error: EngineError) -> dict[str, Any]:
    """Return an error as it is sent."""
    return {"error": str(error), "reason": str(error.reason)}


def unpacked_error(row: dict[str, Any]) -> EngineError | None:
    """Return the error that was sent, None if it is none."""
    return _ERRORS[row["reason"]](str(row["error"])) if "error" in row else None
