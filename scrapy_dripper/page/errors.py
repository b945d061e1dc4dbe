"""The exception for documents that cannot be turned into a page."""

from __future__ import annotations

from scrapy_dripper.extraction import FallbackReason


class PageError(Exception):
    """The document cannot be processed by the model. ``reason`` classifies the error and the message explains it."""

    def __init__(self, reason: FallbackReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
