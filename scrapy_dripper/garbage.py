"""Pause Python's garbage collector while many objects are made that it could not free."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Pause the cyclic garbage collector of this process, unless it is already off.

    The collector runs after each 700 new containers and walks over all young ones. The elements of a page are thousands
    of containers that live until its output is written, and reference counts free them then. Only short work may be
    done with the collector paused, because cycles that other threads drop meanwhile stay in memory.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
