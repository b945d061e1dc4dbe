"""The exception for documents that cannot be turned into a page."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_dripper.data import FallbackReason


class Over(NamedTuple):
    """A limit that a page exceeds."""

    problem: str
    """What the page has, and the limit, in words."""
    setting: str | None = None
    """The setting with the limit, as it is written in settings; None for a limit that no setting changes."""


class PageError(Exception):
    """The document cannot be processed by the model. ``reason`` classifies the error and the message explains it.

    ``limit`` is the setting whose limit the document exceeds, if there is one.
    """

    def __init__(self, reason: FallbackReason, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.reason, self.limit = reason, limit
