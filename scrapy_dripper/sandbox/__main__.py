"""The child process: told by the first line where to import from and how much memory to take, it serves requests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys


def main() -> None:
    """Serve requests on standard input until it ends."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawl, which then lets this end.
    terms = json.loads(sys.stdin.buffer.readline() or b"{}")
    _limit(terms.get("memory"))
    sys.path[:] = terms.get("path", sys.path)
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what some library prints is no answer

    from scrapy_dripper.sandbox.child import serve

    serve(sys.stdin.buffer, answers, ready=lambda: os.dup2(nowhere, 2))


def _limit(memory: int | None) -> None:
    """Limit the address space to so many bytes, where the platform knows such limits; leave no core dumps."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(ValueError, OSError):  # macOS has the limit, but not for this
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    main()
