"""The one extraction that holds nothing."""

from __future__ import annotations

from typing import Literal

from scrapy_dripper.extraction import Extraction, FallbackReason


def nothing(
    url: str, reason: FallbackReason | None, error: str | None, fallback: Literal["none", "empty"] = "none"
) -> Extraction:
    """Return the extraction of a page of which there is none.

    The fallback ``none`` leaves the page's items as they are; ``empty`` puts empty texts on them.
    """
    if fallback == "none":
        return Extraction(url, None, None, None, None, "fallback:none", reason, error)
    return Extraction(url, None, "", "", "", "fallback:empty", reason, error, content=())
