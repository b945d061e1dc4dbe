"""Export a Qwen3 checkpoint to a prepared folder. Requires the extra [export]. Crawls never import it."""

from __future__ import annotations

from scrapy_dripper.cli.console import UsageError


class ExportError(UsageError):
    """A checkpoint is missing or cannot be exported. The message is one sentence that says what to do."""
