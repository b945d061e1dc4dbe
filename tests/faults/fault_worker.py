"""What runs in the worker processes of a live crawl: an engine and a fallback that fail for chosen pages.

The crawl names them by their dotted paths. What they are to do is in the file that ``FAULTS_WORKERS`` names, and what
they have done they note in the file beside it: nothing else of them outlives a worker.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_dripper.child import server
from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger import Tagger
from tests.faults.fault_engine import DEADLY, Faulty, Rules, exception, number_of
from tests.faults.fault_site import kind_of

JOBS: dict[str, dict[str, Any]] = json.loads(Path(os.environ["FAULTS_WORKERS"]).read_text(encoding="utf-8"))
FIRST = next(iter(JOBS))
FOR_EVER = 3600.0

server.RETRY_SECONDS = 0.2


def note(job: str, kind: str, number: int) -> None:
    """Record a fault before it happens."""
    file = os.open(f"{os.environ['FAULTS_WORKERS']}.notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{job} {kind} {number}\n".encode("ascii"))
    os.close(file)


class Ending:
    """An engine that hangs, or loses its model and dies, from some page on."""

    def __init__(self, engine: Faulty, name: str) -> None:
        self._engine, self._name, self._job = engine, name, JOBS[name]
        self.name, self.profile, self.limits = engine.name, engine.profile, engine.limits

    def label(self, pages: Any) -> Any:
        job = self._job
        last = max(number_of(page.url) for page in pages)
        for number in map(number_of, (page.url for page in pages)):
            if job["stuck"] and number >= job["at"] and not number % 40:
                note(self._name, "stuck", number)
                DEADLY["spin"]() if number % 80 else time.sleep(FOR_EVER)
        folder = job["vanish"]
        if folder and last >= job["at"] and not os.path.exists(f"{folder}.was"):
            Path(f"{folder}.was").touch()
            note(self._name, "vanish", 0)
            os.rename(folder, f"{folder}.away")
            os._exit(3)
        return self._engine.label(pages)

    def close(self) -> None:
        self._engine.close()


def load(config: Config) -> Ending:
    """Return the engine of a crawl; in a process with several crawls, ``DRIPPER_MODEL`` tells them apart."""
    name = config.model if config.model in JOBS else FIRST
    job = JOBS[name]
    engine = Tagger.load(config) if job["engine"] == "tagger" else Rules()
    return Ending(Faulty(engine, job["faults"], partial(note, name), job["seconds"]), name)


def fallback(html: str, url: str) -> str | None:
    """Return the whole page, or fail."""
    job, number = JOBS[FIRST], number_of(url)
    kind = kind_of(number, job["fallback_faults"])
    if kind is None:
        return html
    note(FIRST, f"fallback_{kind}", number)
    if kind == "sleep":
        time.sleep(FOR_EVER)
    if kind in DEADLY:
        DEADLY[kind]()
    raise exception(kind)
