"""Batches whose pages stop workers."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_dripper.corpus.processes import answers
from scrapy_dripper.data import Document, Extraction, FallbackReason, nothing
from scrapy_dripper.workers.process import WorkerError
from scrapy_dripper.workers.wire import Task


class Pool:
    """Some pages stop the worker. Whether it is known which page did is up to ``known``."""

    def __init__(self, bad: set[str], known: bool) -> None:
        self.bad, self.known = bad, known

    def extract(self, tasks: list[Task]) -> list[Extraction]:
        at = next((i for i, task in enumerate(tasks) if task.document.url in self.bad), None)
        if at is not None:
            raise WorkerError(FallbackReason.WORKER_ERROR, "it died", at if self.known else None)
        return [nothing(task.document.url, None, None) for task in tasks]

    def extract_alone(self, task: Task, error: WorkerError) -> Extraction:
        return nothing(task.document.url, error.reason, str(error))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("n", "each"), [(0, 1), (1, 1), (20, 7), (3_000, 1)])
def test_each_page_of_a_batch_has_an_answer(n: int, each: int, known: bool) -> None:
    """They are in order, even if thousands of pages stop workers."""
    urls = [f"https://example.org/{i}" for i in range(n)]
    bad = set(urls[::each])
    tasks: Any = [Task(Document("", url), None) for url in urls]  # type: ignore[arg-type]

    found = answers(Pool(bad, known), tasks)  # type: ignore[arg-type]

    assert [one.url for one in found] == urls
    assert {one.url for one in found if one.fallback_reason} == bad
