"""Processes for the functions of a command. They end with it, even if it is killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import Any

from scrapy_dripper.workers.life import end_with


@contextmanager
def spawned(jobs: int, start: Callable[..., object] | None = None, *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of at most ``jobs`` processes, each of which calls ``start`` first.

    After an exception, such as that of Ctrl-C, the processes are killed, and what they do is lost. They are spawned,
    because the threads of a model's runtime do not survive a fork.
    """
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


def end_with_parent() -> None:
    """Make the system end this process, which :mod:`multiprocessing` has started, when its parent ends.

    By itself, it would go on alone, and then wait for more to do for ever.
    """
    if parent := parent_process():
        end_with(parent.sentinel)


def _begin(start: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C, too
    if start is not None:
        start(*arguments)
