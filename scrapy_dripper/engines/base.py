"""What every engine is: pages in, one probability of main per block out, or a typed error per page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.extraction import FallbackReason
from scrapy_dripper.page.page import Page


class EngineError(Exception):
    """The engine could not label one page; the other pages of the batch are not touched."""

    reason: ClassVar[FallbackReason] = FallbackReason.ENGINE_ERROR
    """What the page falls back with."""


class OversizeError(EngineError):
    """The page is longer than the engine can read."""

    reason = FallbackReason.OVERSIZE


class PrecisionError(EngineError):
    """The engine's numbers are not finite: they left the range of its data type."""

    reason = FallbackReason.OVERFLOW


class EngineLostError(EngineError):
    """The engine labels no page at all for now: its device is gone, say."""

    reason = FallbackReason.ENGINE_LOST


class ModelError(RuntimeError):
    """The engine cannot be loaded at all. The message is one sentence that says what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """An engine's answer for one page of n blocks.

    ``probabilities`` is float32 of shape (n,), each the probability of main; ``main`` is bool of shape (n,), the
    engine's decision, made for the page as a whole and so not always a threshold on ``probabilities``.
    """

    probabilities: npt.NDArray[np.float32]
    main: npt.NDArray[np.bool_]
    source: str | None = None
    """Name of the engine that decided, where it is not the one that was asked."""
    truncated: bool = False
    """True if only the first blocks were looked at."""
    work: Mapping[str, int] = field(default_factory=dict)
    """What the engine did for this page, counted: passes, say. Of its own choosing, to be summed up."""
    page_type: str | None = None
    """What kind of page it is: ``article``, ``listing``, ``forum``, ... None where the engine does not say."""
    page_type_probability: float | None = None
    """Probability that it is of this kind, 0 to 1."""
    quality: float | None = None
    """Expected word F1 of what these labels select, calibrated, 0 to 1; None where the engine does not say."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine can take; None is no limit."""

    max_blocks: int | None = None


class Engine(Protocol):
    """Label the blocks of pages. One engine serves one thread."""

    name: str
    profile: str
    """Name of the profile that the engine's pages are cut by."""
    limits: Limits

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels, or the error, of each page, in order."""
        ...

    def close(self) -> None:
        """Give back the memory and threads of the model."""
        ...
