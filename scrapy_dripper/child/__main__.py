"""The worker process: told by the first line where to import from and what to do, it serves requests."""

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
    _end_with_the_crawl(terms.get("life"))
    _limit(terms.get("memory"))
    sys.path[:] = terms.get("path", sys.path)
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what some library prints is no answer

    from scrapy_dripper.child.server import serve

    serve(sys.stdin.buffer, answers, terms, ready=lambda: os.dup2(nowhere, 2))


def _end_with_the_crawl(life: int | None) -> None:
    """Have the system end this process when the crawl's has ended, whatever this one is doing then.

    No thread could see to that: a regular expression that is stuck lets no other one run. The other end of the pipe
    ``life`` is the crawl's, and nothing is ever written to it.
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
        if select.select([life], [], [], 0)[0]:  # the crawl has ended meanwhile
            os._exit(1)
    except (ImportError, AttributeError, OSError, ValueError):  # not everywhere; see _second_line in the server
        return


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
