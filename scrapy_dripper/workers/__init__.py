"""Start worker processes, which extract pages from bytes to Markdown, send them requests, and kill them at any time.

A worker is a fresh interpreter and not a fork, so it inherits no state from the crawl, and it never imports the crawl's
main script. It answers in plain data that cannot execute code.

Workers, and the processes of commands, end as soon as the process that needs them is gone, however it ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

in_worker: Callable[[], None] | None = None
"""Set in a worker process. A worker must not start another worker, so this function ends it."""


def end_with(life: int | None) -> None:
    """Make the system end this process when the other end of a pipe is closed, which its owner's death does as well.

    Nothing is ever written to the pipe, and no other process has this end of it. A thread could not watch it, because a
    regular expression that is stuck keeps other threads from running.
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
        if select.select([life], [], [], 0)[0]:  # the owner has already ended
            os._exit(1)
    except (ImportError, AttributeError, OSError, ValueError):  # unsupported here: it ends at its next request
        return


@contextmanager
def spawned(jobs: int, start: Callable[..., object] | None = None, *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of at most ``jobs`` processes for the functions of a command, each of which calls ``start`` first.

    After an exception, such as that of Ctrl-C, the processes are killed, and what they do is lost. They are spawned,
    because the threads of a model's runtime do not survive a fork.
    """
    from concurrent.futures import ProcessPoolExecutor  # the workers of a crawl do without
    from multiprocessing import active_children, get_context

    before = set(active_children())
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (start, arguments))
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - before:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(start: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    from multiprocessing import parent_process

    if parent := parent_process():  # by itself, this process would go on alone, and then wait for more to do for ever
        end_with(parent.sentinel)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C, too
    if start is not None:
        start(*arguments)
