"""Extract batches of documents without a crawl, in worker processes or in this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.sites import Hosts
from scrapy_dripper.workers import Pool, Task, WorkerError, Workers

T = TypeVar("T")
Extract = Callable[[Iterable[tuple[list[Any], list[Document]]]], Iterator[tuple[list[Any], list[Extraction]]]]

AHEAD = 4
"""Batches in flight or finished for each worker. This many can queue behind a slow one, because results are ordered."""


@contextmanager
def extracting(config: Config, processes: int, hosts: Hosts | None = None) -> Iterator[Extract]:
    """Give a function that extracts batches, in order: in worker processes, or in this process if their number is 0.

    ``hosts`` is what is known about sites, which learns here.
    Raises the same errors as :class:`Processes`, and :exc:`~scrapy_dripper.config.ModelError` without processes.
    """
    if processes:
        with closing(Processes(config, processes, hosts)) as workers:
            yield workers.extract
    else:
        with Extractor(config, hosts=hosts) as extractor:
            yield lambda batches: ((things, extractor.extract(documents)) for things, documents in batches)


class Processes:
    """Worker processes for one configuration. A page that stops a worker does not affect other pages."""

    def __init__(self, config: Config, count: int, hosts: Hosts | None = None) -> None:
        """Start the first worker. Raises the same errors as :class:`~scrapy_dripper.workers.Workers`."""
        self._config, self._count, self._hosts = config, count, hosts or Hosts()
        self._workers = Workers(replace(config, processes=count))
        self._threads = ThreadPoolExecutor(count, "scrapy-dripper-corpus")

    def extract(self, batches: Iterable[tuple[list[T], list[Document]]]) -> Iterator[tuple[list[T], list[Extraction]]]:
        """Yield each batch with its extractions, in order. The values beside the documents stay in this process.

        Finished batches are yielded before the next one is read, because reading can take long and be interrupted by
        Ctrl-C. Raise :exc:`~scrapy_dripper.workers.StartError` if there is no worker and none can be started.
        """
        waiting: deque[tuple[list[T], list[Document], Future[list[Extraction]]]] = deque()

        def first() -> tuple[list[T], list[Extraction]]:
            things, documents, future = waiting.popleft()
            for document, extraction in zip(documents, found := future.result(), strict=True):
                self._hosts.learn(document, extraction)
            return things, found

        source = iter(batches)
        while True:
            try:
                for things, documents in islice(source, AHEAD * self._count - len(waiting)):
                    tasks = [Task(self._hosts.informed(one), one.config or self._config) for one in documents]
                    waiting.append((things, documents, self._threads.submit(answers, self._workers.pool, tasks)))
                    if waiting[0][2].done():
                        break
            except KeyboardInterrupt:
                while waiting and waiting[0][2].done():
                    yield first()
                raise
            if not waiting:
                return
            yield first()

    def close(self) -> None:
        """End the workers."""
        self._workers.close()
        self._threads.shutdown(wait=True, cancel_futures=True)


def answers(pool: Pool, tasks: list[Task]) -> list[Extraction]:
    """Return one extraction per task, in order, even if pages stop workers."""
    done: dict[int, Extraction] = {}
    left = list(range(len(tasks)))
    alone = False
    while left:
        batch = left[:1] if alone else left
        try:
            found = pool.extract([tasks[number] for number in batch])
        except WorkerError as error:
            at = 0 if len(batch) == 1 else error.task
            if at is None:  # the page that failed is unknown
                alone = True
                continue
            done[batch[at]] = pool.extract_alone(tasks[batch[at]], error)
            left.remove(batch[at])
        else:
            done.update(zip(batch, found, strict=True))
            left = left[len(batch) :]
    return [done[number] for number in range(len(tasks))]
