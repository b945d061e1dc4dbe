"""Extract batches of documents without a crawl, in worker processes or in this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.sites import Hosts
from scrapy_dripper.workers.pool import Pool, Workers
from scrapy_dripper.workers.process import WorkerError
from scrapy_dripper.workers.wire import Task

Batches = Iterable[tuple[list[Any], list[Document]]]
"""Documents, and as many things that belong to them, which stay in this process."""
Answered = Iterator[tuple[list[Any], list[Extraction]]]

AHEAD = 4
"""Batches in flight or finished for each worker. This many can queue behind a slow one, because results are ordered."""
LINE_SECONDS = 60.0
"""How often a long run says how far it is, where there is no terminal."""


@contextmanager
def extracting(config: Config, processes: int, hosts: Hosts | None = None) -> Iterator[Callable[[Batches], Answered]]:
    """Give a function that extracts batches, in order: in worker processes, or in this process if their number is 0.

    ``hosts`` is what is known about sites, which learns here. Raise :exc:`~scrapy_dripper.config.ModelError`, and with
    processes the errors of :class:`~scrapy_dripper.workers.Workers`, also for a worker that is started later.
    """
    if not processes:
        with Extractor(config, hosts=hosts) as extractor:
            yield lambda batches: ((things, extractor.extract(documents)) for things, documents in batches)
        return
    known = hosts or Hosts()
    with (
        ThreadPoolExecutor(processes, "scrapy-dripper-corpus") as threads,
        closing(Workers(replace(config, processes=processes))) as workers,  # closed first, which ends the threads' work
    ):

        def submit(documents: list[Document]) -> Future[list[Extraction]]:
            tasks = [Task(known.site_document(one), one.config or config) for one in documents]
            return threads.submit(answers, workers.pool, tasks)

        yield lambda batches: in_order(batches, submit, AHEAD * processes, known)


def in_order(
    batches: Batches, submit: Callable[[list[Document]], Future[list[Extraction]]], most: int, hosts: Hosts
) -> Answered:
    """Yield each batch with its extractions, in order. ``submit`` begins to extract a batch, ``most`` at a time.

    Finished batches are yielded before the next one is read, because reading can take long and be interrupted by
    Ctrl-C.
    """
    waiting: deque[tuple[list[Any], list[Document], Future[list[Extraction]]]] = deque()

    def first() -> tuple[list[Any], list[Extraction]]:
        things, documents, future = waiting.popleft()
        for document, extraction in zip(documents, found := future.result(), strict=True):
            hosts.learn(document, extraction)
        return things, found

    source = iter(batches)
    while True:
        try:
            for things, documents in islice(source, most - len(waiting)):
                waiting.append((things, documents, submit(documents)))
                if waiting[0][2].done():
                    break
        except KeyboardInterrupt:
            while waiting and waiting[0][2].done():
                yield first()
            raise
        if not waiting:
            return
        yield first()


def answers(pool: Pool, tasks: list[Task]) -> list[Extraction]:
    """Return one extraction per task, in order, even if pages stop workers."""
    done: dict[int, Extraction] = {}
    left = [range(len(tasks))]
    while left:
        part = left.pop()
        try:
            found = pool.extract([tasks[i] for i in part]) if part else []
        except WorkerError as error:
            at = 0 if len(part) == 1 else error.task
            if at is None:  # the page that failed is unknown
                left += (range(i, i + 1) for i in part)
            else:
                done[part[at]] = pool.extract_alone(tasks[part[at]], error)
                left += (part[:at], part[at + 1 :])
        else:
            done.update(zip(part, found, strict=True))
    return [done[i] for i in range(len(tasks))]
