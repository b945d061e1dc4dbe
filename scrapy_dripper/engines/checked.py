"""Check what an engine answers, which may be code of a user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scrapy_dripper.checks import short
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.page.page import Page


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
        likely, quality = _share(answer.page_type_probability), _share(answer.quality)
    except (TypeError, ValueError, OverflowError):
        wrong = f"{short(answer.page_type_probability)} and {short(answer.quality)}"
        return EngineError(f"page_type_probability and quality must be from 0 to 1, or None (got {wrong})")
    return replace(answer, probabilities=p, main=main, page_type_probability=likely, quality=quality)


def _share(value: float | None) -> float | None:
    """Return a number of any type as a float. Raise ValueError if it is not from 0 to 1."""
    if value is None:
        return None
    number = float(value)
    if not 0 <= number <= 1:  # also rejects NaN
        raise ValueError
    return number
