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
    _end_with_the_crawl(startup.get("life"))
    _limit(startup.get("memory"))
    sys.path[:] = startup.get("path", sys.path)
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # keep what libraries print out of the answers

    from scrapy_dripper.child.server import serve

    serve(sys.stdin.buffer, answers, startup, ready=lambda: os.dup2(nowhere, 2))


def _end_with_the_crawl(life: int | None) -> None:
    """Make the system end this process when the crawl's process ends.

    ``life`` is a pipe whose other end the crawl holds open; nothing is ever written to it. A thread could not watch it,
    because a regular expression that is stuck keeps other threads from running.
    """
    if life is None:
        return
    try:
        import fcntl
        import select

        os.set_inheritable(life, False)
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        signal.signal(signal.SIGIO, signal.SIG_DFL)  # ends the process
        if select.select([life], [], [], 0)[0]:  # the crawl has already ended
            os._exit(1)
    except (ImportError, AttributeError, OSError, ValueError):  # unsupported here: it ends at its next request
        return


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
