"""The empty extraction."""

from __future__ import annotations

from typing import Literal

from scrapy_dripper.extraction import Extraction, FallbackReason


def nothing(
    url: str, reason: FallbackReason | None, error: str | None, fallback: Literal["none", "empty"] = "none"
) -> Extraction:
    """Return an extraction without content.

    With the fallback ``none``, the fields of the page's items are not set. With ``empty``, they are set to empty texts.
    """
    if fallback == "none":
        return Extraction(url, None, None, None, None, "fallback:none", reason, error)
    return Extraction(url, None, "", "", "", "fallback:empty", reason, error, content=())
