"""One thread for all passes of a session, whichever thread asks for them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OneThread:
    """Calls functions in a thread of its own, which ends when this is closed or forgotten.

    On a GPU, onnxruntime keeps its handles and the plans of cuDNN's attention for each thread that has run a session,
    and makes them anew, a few tenths of a second each, for a thread that comes after it. The thread is a daemon: one
    that is stuck in a pass does not keep the program from ending.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._calls,), name="scrapy-dripper-model", daemon=True).start()
        self._close = weakref.finalize(self, self._calls.put, None)
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the thread after the calls that it has; closing twice is no error."""
        with self._lock:
            self._close()

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function returns in the thread; raise what it raises, and RuntimeError if this is closed."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:  # behind the end, nobody would answer
            if not self._close.alive:
                raise RuntimeError("the model was closed")
            self._calls.put(call)
        return future.result()


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # a thread that waits keeps nothing alive
