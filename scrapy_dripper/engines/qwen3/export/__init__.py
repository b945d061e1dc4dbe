"""A Qwen3 checkpoint to a prepared folder. Needs the extra [export] or [export-optimum], and is never imported in a
crawl."""

from __future__ import annotations


class ExportError(ValueError):
    """There is nothing to export, or it cannot be exported; the message is one sentence that says what to do."""
