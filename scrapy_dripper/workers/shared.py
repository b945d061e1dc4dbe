"""The workers, and the process of a large model, that the crawls of one process share."""

from __future__ import annotations

import threading

from scrapy_dripper.config import OUT_OF_PROCESS, Config
from scrapy_dripper.fallback import dotted_path
from scrapy_dripper.workers.model import Model
from scrapy_dripper.workers.pool import Pool, processes

_SHARED_BY = (
    *("engine", "model", "cascade", "device", "threads", "sdpa_kernel", "max_tokens"),
    *("truncate_chars", "guess_language", "worker_memory", "processes"),
)
"""Options that are fixed for a worker. All others are sent with each page."""
_shared: dict[tuple[object, ...], Shared] = {}
_lock = threading.Lock()


class Shared:
    """A pool that crawls of this process share, with the process of their model if that is a large one."""

    def __init__(self, key: tuple[object, ...], config: Config) -> None:
        self._key, self._crawls = key, 0
        self._model = Model(config) if config.engine in OUT_OF_PROCESS else None
        relay = None if self._model is None else self._model.label
        self.pool = Pool(config, processes(config), relay=relay, spare=True)

    def start(self) -> None:
        """Start the first worker of each kind. Raise the same errors as :meth:`Pool.start`."""
        if self._model is not None:
            self._model.start()
        self.pool.start()

    def open(self) -> None:
        """Register a crawl."""
        self._crawls += 1

    def close(self) -> None:
        """Unregister a crawl. The processes end with the last crawl."""
        with _lock:
            self._crawls -= 1
            if self._crawls:
                return
            del _shared[self._key]
        self.pool.close()
        if self._model is not None:
            self._model.close()


def shared_pool(config: Config) -> Shared:
    """Return the workers of this process for a configuration, with the first one started. Each caller closes them once.

    Raise :exc:`ConfigError` if the fallback is a callable that a worker cannot import, and the same errors as
    :meth:`Pool.start`.
    """
    key = (*(getattr(config, name) for name in _SHARED_BY), dotted_path(config.fallback))
    with _lock:
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = Shared(key, config)
        shared.open()
    try:
        shared.start()
    except BaseException:
        shared.close()
        raise
    return shared
