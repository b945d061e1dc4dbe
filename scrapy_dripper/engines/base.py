"""The engine interface: pages in, probabilities for their blocks out, or an error for each page that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from scrapy_dripper.checks import number, short
from scrapy_dripper.choose.scored import Labels as Labels
from scrapy_dripper.config import ModelError as ModelError
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.page.page import Bools, Page


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
        """Return the answer for each page, or the error, in order."""
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
    p = np.asarray(answer.probabilities)
    main = None if answer.main is None else np.asarray(answer.main)
    sizes = None if answer.sizes is None else np.asarray(answer.sizes)
    shapes = [column.shape for column in (p, main, sizes) if column is not None]
    if any(shape != (n,) for shape in shapes):
        return EngineError(f"expected {n} labels (got {' and '.join(f'shape {shape}' for shape in shapes)})")
    if p.dtype.kind != "f" or (main is not None and main.dtype != np.bool_):
        return EngineError(
            f"expected floats and booleans (got {p.dtype}{'' if main is None else f' and {main.dtype}'})"
        )
    if not ((p >= 0) & (p <= 1)).all():  # False for NaN too
        return EngineError(f"expected probabilities from 0 to 1 (got {p.min()} to {p.max()})")
    types, quality = answer.page_types, answer.quality
    try:
        if not all(isinstance(name, str) and name for name in types):
            raise ValueError("a name")
        types = {name: _share(likely) for name, likely in types.items()}
        quality = quality if quality is None or callable(quality) else _share(quality)
    except (ValueError, TypeError, AttributeError):
        wrong = f"{short(types)} and {short(quality)}"
        return EngineError(
            f"page_types must be names with numbers from 0 to 1, and quality such a number (got {wrong})"
        )
    return replace(answer, probabilities=p, main=main, sizes=sizes, page_types=types, quality=quality)


def quality_of(answer: Labels, main: Bools) -> float | None:
    """Return the expected word F1 of an answer's page if these blocks are main, or None. Raise :exc:`EngineError` if
    the engine cannot predict it.
    """
    if not callable(answer.quality):
        return answer.quality
    try:
        return _share(answer.quality(main)) if main.any() else None
    except Exception as error:
        raise EngineError(f"no quality: {type(error).__name__}: {error}") from error
