"""Measure all pages with all systems: in several processes, with a progress bar, resuming an earlier run."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

import scrapy_dripper
from scrapy_dripper.workshop.dataset.pages import DataError, Sample
from scrapy_dripper.workshop.evaluation.complexity import Complexity
from scrapy_dripper.workshop.evaluation.language_model import NAME as ENDPOINT
from scrapy_dripper.workshop.evaluation.measure import OURS, Measurer, Result, Setup, Stored, Task, from_json, to_json

Found = dict[str, dict[str, Result | Complexity]]
"""Results by system, and then by page."""

_SCORING = (
    "workshop/evaluation/measure.py",
    "workshop/dataset/metrics.py",
    "workshop/dataset/neutral.py",
    "workshop/dataset/prf.py",
    "workshop/evaluation/rouge.py",
    "workshop/evaluation/dom_nodes.py",
    "workshop/evaluation/study.py",
    "workshop/dataset/alignment.py",
)
_PEERS = ("workshop/evaluation/peers.py", "fallback")
_PAGES = ("page", "data.py")
_OURS = ("engines", "extractor.py", "fallback", "output")


class RunError(Exception):
    """The run cannot continue. The message says what to do."""


class Cache:
    """A cache of results as JSON Lines, one for each page and system. A result is only valid for the same data and
    version.

    A damaged line, such as the last one of a killed run, counts as missing.
    """

    def __init__(self, path: Path | None, data: str, versions: Mapping[str, str]) -> None:
        self.path, self._data, self._versions = path, data, versions

    def load(self, setup: Setup) -> Found:
        """Return the cached results that have everything that a run measures."""
        found: Found = {name: {} for name in self._versions}
        if self.path is None or not self.path.exists():
            return found
        with open(self.path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                    system = entry["system"]
                    if entry["data"] != self._data or self._versions.get(system) != entry["version"]:
                        continue
                    result = from_json(system, entry["result"])
                    id_ = entry["id"]
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
                if not isinstance(result, Result) or (setup.measured(result) and _is_final(system, result)):
                    found[system][id_] = result
        return found

    def writer(self) -> _Writer:
        """Return a writer that appends to the file."""
        return _Writer(self.path, self._data, self._versions)


def _is_final(system: str, result: Result) -> bool:
    """Return False for a page for which a language model gave no answer, because it may give one next time, or with
    another budget.
    """
    return system != ENDPOINT or result.error is None


class _Writer:
    def __init__(self, path: Path | None, data: str, versions: Mapping[str, str]) -> None:
        self._data, self._versions, self._file = data, versions, None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a+b")  # noqa: SIM115 (closed by close())
            if self._file.tell() and (self._file.seek(-1, 2), self._file.read(1))[1] != b"\n":
                self._file.write(b"\n")  # a killed run has left half a line

    def write(self, id_: str, results: Mapping[str, Result | Complexity]) -> None:
        if self._file is None:
            return
        for system, result in results.items():
            entry = {"data": self._data, "system": system, "version": self._versions[system], "id": id_}
            line = json.dumps({**entry, "result": to_json(result)}, separators=(",", ":"))
            self._file.write(line.encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_stored(path: Path) -> dict[str, Stored]:
    """Return the texts of a JSON Lines file by id. Raise :exc:`DataError` if the file is invalid."""
    stored: dict[str, Stored] = {}
    number = 0
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    id_, one = _stored(json.loads(line))
                    if id_ in stored:
                        raise ValueError(f"the id {id_!r} is there twice")
                    stored[id_] = one
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DataError(f'{path}, line {number}: expected {{"id": "...", "text": "..."}} ({what})') from None
    return stored


def _stored(entry: Mapping[str, Any]) -> tuple[str, Stored]:
    labels = tuple(bool(value) for value in entry.get("labels") or ())
    probabilities = tuple(float(value) for value in entry.get("probabilities") or ())
    if not all(0 <= p <= 1 for p in probabilities):
        raise ValueError("a probability is not between 0 and 1")
    return str(entry["id"]), Stored(str(entry.get("text") or ""), labels, probabilities)


def versions_of(setup: Setup, peers: Mapping[str, str], weights: str) -> dict[str, str]:
    """Return a version string for each system, which covers everything but the data: versions, options and code.

    ``weights`` identifies the model, or the stored texts.
    """
    config = setup.config
    options = [str(getattr(config, name)) for name in ("fallback", "oversize", "limits")]
    code = (*_SCORING, *_PAGES, *(_OURS if setup.model else ()))
    ours = _digest(scrapy_dripper.__name__, weights, *options, _code(code))
    others = {name: f"{version} {_code(_SCORING + _PEERS)}" for name, version in peers.items()}
    if setup.endpoint is not None:
        others[ENDPOINT] = _digest(setup.endpoint.version, _code(_SCORING))
    return {"page": _code(("workshop/evaluation/complexity.py", "page")), OURS: ours, **others}


def _code(paths: Sequence[str]) -> str:
    """Return a digest of source files, so that results of an older program are not reused."""
    root = Path(scrapy_dripper.__file__).parent
    files = sorted(
        file for path in paths for file in ((root / path).rglob("*.py") if "." not in path else [root / path])
    )
    return _digest(*(file.read_text(encoding="utf-8") for file in files))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def run(
    samples: Sequence[Sample],
    stored: Mapping[str, Stored],
    setup: Setup,
    cache: Cache,
    systems: Sequence[str],
    jobs: int,
) -> Found:
    """Return the results of all systems for all samples. Raise :exc:`RunError` if a process dies."""
    found = cache.load(setup)
    tasks = []
    for sample in samples:
        missing = tuple(name for name in systems if sample.id not in found[name])
        if missing:
            tasks.append(Task(sample, missing, stored.get(sample.id) if OURS in missing else None))
    bar = tqdm(total=len(samples), initial=len(samples) - len(tasks), unit="page", desc="evaluate", disable=None)
    with bar, closing(cache.writer()) as writer:
        for id_, results in _measured(tasks, setup, min(jobs, len(tasks)), cache.path):
            writer.write(id_, results)
            for system, result in results.items():
                found[system][id_] = result
            bar.update()
    return found


def _measured(
    tasks: Sequence[Task], setup: Setup, jobs: int, cache: Path | None
) -> Iterator[tuple[str, dict[str, Result | Complexity]]]:
    if jobs <= 1:
        with closing(Measurer(setup)) as measurer:
            for task in tasks:
                yield task.sample.id, measurer(task)
        return
    # Spawned, because the threads of the model's runtime do not survive a fork.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (setup,))
    try:
        waiting = {pool.submit(_measure, task): task.sample.id for task in tasks}
        for future in as_completed(waiting):
            yield waiting.pop(future), future.result()
    except BrokenProcessPool:
        kept = f"; what was measured is in {cache}" if cache else ""
        raise RunError(
            f"a process died, out of memory or in the code of a peer: try a smaller --jobs or fewer --peers{kept}"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_measurer: Measurer | None = None


def _start(setup: Setup) -> None:
    global _measurer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C and lets this process finish its page.
    _measurer = Measurer(setup)


def _measure(task: Task) -> dict[str, Result | Complexity]:
    assert _measurer is not None
    return _measurer(task)
