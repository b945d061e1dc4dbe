"""Why a document does not become a page."""

from __future__ import annotations

from scrapy_dripper.extraction import FallbackReason


class PageError(Exception):
    """A document cannot go through the model; ``reason`` says why in one word, the message in a sentence."""

    def __init__(self, reason: FallbackReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
