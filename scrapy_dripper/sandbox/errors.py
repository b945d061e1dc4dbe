"""What goes wrong with the child process."""

from __future__ import annotations

from scrapy_dripper.page.errors import PageError


class SandboxError(PageError):
    """The child process gave no answer about a page; its reason is ``timeout``, ``oversize`` or ``sandbox_error``."""


class StartError(OSError):
    """The child process does not start; the message says why."""
