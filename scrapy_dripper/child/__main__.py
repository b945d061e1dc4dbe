"""The entry point of a worker process. The first line on standard input holds its import path and configuration."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys


def main() -> None:
    """Serve requests on standard input until it ends."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The crawl handles Ctrl-C and then ends this process.
    startup = json.loads(sys.stdin.buffer.readline() or b"{}")
    _limit(startup.get("memory"))
    sys.path[:] = startup.get("path", sys.path)

    from scrapy_dripper.workers import end_with

    end_with(startup.get("life"))
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # keep what libraries print out of the answers

    from scrapy_dripper.child import serve

    serve(sys.stdin.buffer, answers, startup, ready=lambda: os.dup2(nowhere, 2))


def _limit(memory: int | None) -> None:
    """Limit the address space, in bytes, where the platform supports it. Disable core dumps."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(ValueError, OSError):  # macOS does not enforce this limit
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    main()
