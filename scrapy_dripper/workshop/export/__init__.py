"""Export a Qwen3 checkpoint to a prepared folder. Requires the extra [export]. Crawls never import it."""

from __future__ import annotations


class ExportError(ValueError):
    """A checkpoint is missing or cannot be exported. The message is one sentence that says what to do."""
