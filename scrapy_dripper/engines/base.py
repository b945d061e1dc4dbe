"""The engine interface: pages in, labels for their blocks out, or an error for each page that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_dripper.checks import number, short
from scrapy_dripper.config import ModelError as ModelError
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page.page import Page


class EngineError(Exception):
    """The engine could not label a page. Other pages of the batch are not affected."""

    reason: ClassVar[FallbackReason] = FallbackReason.ENGINE_ERROR
    """The fallback reason of the page."""


class OversizeError(EngineError):
    """The page is too long for the engine."""

    reason = FallbackReason.OVERSIZE


class PrecisionError(EngineError):
    """The engine's numbers are not finite: they left the range of its data type."""

    reason = FallbackReason.OVERFLOW


class EngineLostError(EngineError):
    """The engine currently cannot label any page, for example because its device is lost."""

    reason = FallbackReason.ENGINE_LOST


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """An engine's answer for a page of n blocks.

    ``probabilities`` is float32 of shape (n,): the probability of each block to be main content. ``main`` is bool of
    shape (n,): the labels. The engine chooses them for the page as a whole, so they need not follow from a threshold.
    """

    probabilities: npt.NDArray[np.float32]
    main: npt.NDArray[np.bool_]
    source: str | None = None
    """Name of the engine that chose the labels, if it is not the one that was called."""
    truncated: bool = False
    """True if only the first blocks were processed."""
    work: Mapping[str, int] = field(default_factory=dict)
    """The engine's own counters for this page, such as the number of passes. The stats sum them over all pages."""
    page_type: str | None = None
    """The type of the page: ``article``, ``listing``, ``forum``, ... None if the engine does not predict it."""
    page_type_probability: float | None = None
    """Probability of ``page_type``, 0 to 1."""
    quality: float | None = None
    """Expected word F1 of these labels, calibrated, 0 to 1; None if the engine does not predict it."""
    overruled: tuple[str, ...] = ()
    """Names of the steps that changed nothing, because they would have taken away what the model is sure of."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest page that an engine accepts. None means no limit."""

    max_blocks: int | None = None


class Engine(Protocol):
    """Labels the blocks of pages. An engine is used by one thread at a time.

    It is created by a callable that takes the :class:`~scrapy_dripper.config.Config`, such as a class or its method
    ``load``. ``DRIPPER_OVERSIZE`` determines what happens to pages that exceed ``limits``.
    """

    name: str
    profile: str
    """Name of the profile by which pages are cut for the engine."""
    limits: Limits

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page, or the error, in order."""
        ...

    def close(self) -> None:
        """Release the memory and threads of the model."""
        ...


_share = number(0, 1)


def checked(answer: Labels | EngineError, page: Page) -> Labels | EngineError:
    """Return a valid answer as it is, and an :exc:`EngineError` for an invalid one."""
    if isinstance(answer, EngineError):
        return answer
    if not isinstance(answer, Labels):
        return EngineError(f"expected Labels (got {type(answer).__name__})")
    n = len(page.blocks)
    p, main = np.asarray(answer.probabilities), np.asarray(answer.main)
    if p.shape != (n,) or main.shape != (n,):
        return EngineError(f"expected {n} labels (got shapes {p.shape} and {main.shape})")
    if p.dtype.kind != "f" or main.dtype != np.bool_:
        return EngineError(f"expected floats and booleans (got {p.dtype} and {main.dtype})")
    if not ((p >= 0) & (p <= 1)).all():  # False for NaN too
        return EngineError(f"expected probabilities from 0 to 1 (got {p.min()} to {p.max()})")
    if answer.page_type is not None and not (isinstance(answer.page_type, str) and answer.page_type):
        return EngineError(f"expected the name of a page type, or None (got {short(answer.page_type)})")
    try:
        likely, quality = (
            None if one is None else _share(one) for one in (answer.page_type_probability, answer.quality)
        )
    except ValueError:
        wrong = f"{short(answer.page_type_probability)} and {short(answer.quality)}"
        return EngineError(f"page_type_probability and quality must be from 0 to 1, or None (got {wrong})")
    return replace(answer, probabilities=p, main=main, page_type_probability=likely, quality=quality)
