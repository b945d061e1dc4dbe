"""Run all passes of a session in the same thread, whichever thread calls."""

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
    """Calls functions in a thread of its own, which ends when this object is closed or garbage-collected.

    On a GPU, onnxruntime keeps its handles and the plans of cuDNN's attention separately for each thread that runs a
    session. Creating them for a new thread takes a few tenths of a second. The thread is a daemon, so that a pass that
    hangs does not keep the program from ending.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._calls,), name="scrapy-dripper-model", daemon=True).start()
        self._close = weakref.finalize(self, self._calls.put, None)
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the thread after the pending calls. Further calls of this method have no effect."""
        with self._lock:
            self._close()

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the thread. Return its result or raise its exception; raise RuntimeError if closed."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        with self._lock:  # a call after the end would never be answered
            if not self._close.alive:
                raise RuntimeError("the model was closed")
            self._calls.put(call)
        return future.result()


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # so that the waiting thread keeps no result alive
