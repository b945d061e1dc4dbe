"""A response of the website."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """One HTTP response. If ``content_type`` is None, the header is not sent."""

    body: bytes
    content_type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
