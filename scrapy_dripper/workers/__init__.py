"""Worker processes, which extract pages from bytes to Markdown and can be killed at any time.

A worker is a fresh interpreter and not a fork, so it inherits no state from the crawl, and it never imports the crawl's
main script. It answers in plain data that cannot execute code.
"""

from collections.abc import Callable

in_worker: Callable[[], None] | None = None
"""Set in a worker process. A worker must not start another worker, so this function ends it."""
