"""Put faults into the code, one at a time. The tests must detect at least nine out of ten.

    python benchmarks/mutations.py                     writes results/mutations.txt; a quarter of an hour
    python benchmarks/mutations.py --part cutter       prints one part

``loop``, ``batcher`` and ``cutter`` are a hundred mutants each, drawn from all that ``mutants.py`` creates for their
modules. ``faults`` is a list of plausible mistakes in the loop and the grammar. Each fault is made in a copy of the
repository. It also counts as detected if the tests take four times as long as without it. Each fault is tried in a fork
of this process, which has already imported the slow modules. This does not work on Windows.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from mutants import sample
from report import heading, publish, table
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
FOLDER = "scrapy_dripper/engines/qwen3"


@dataclass(frozen=True)
class Part:
    """Modules that are mutated together, and the tests that have to detect it, first those that detect most."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    imports: tuple[str, ...]
    """Modules that the tests need and that do not import the mutated ones. They are imported once."""


PARTS = {
    "loop": Part(
        tuple(f"{FOLDER}/{name}.py" for name in ("loop", "passes", "grammar")),
        tuple(f"tests/engines/qwen3/test_{name}.py" for name in ("passes", "equality", "loop", "grammar")),
        ("onnxruntime", "tokenizers", "scrapy_dripper.extractor", "scrapy_dripper.engines.tagger.engine"),
    ),
    "batcher": Part(
        ("scrapy_dripper/crawl/batcher.py",),
        ("tests/crawl/test_lanes.py", "tests/crawl/test_batcher.py"),
        ("scrapy.crawler", "scrapy_dripper.testing", "scrapy_dripper.crawl.process_lane"),
    ),
    "cutter": Part(
        tuple(f"scrapy_dripper/page/{name}.py" for name in ("blocks", "nodes", "sentence")),
        tuple(f"tests/page/test_{name}.py" for name in ("blocks", "sentence", "profiles")),
        ("lxml.html", "resiliparse.parse.html", "cssselect", "scrapy_dripper.config", "scrapy_dripper.metadata"),
    ),
}
SEED = 18
COUNT = 100
EQUIVALENT: dict[tuple[str, str], str] = {
    ('T = TypeVar("T")', "'TXX'"): "only type checkers read it",
    ("self._due = 0.0", "pass"): "set before it is read",
    ("self._due = 0.0", "1.0"): "set before it is read",
    ("if end[i] > end[p]:", "(end[i] >= end[p])"): "sets what is there",
    ("self._width = 0", "pass"): "set before it is read",
    ("self._width = 0", "1"): "set before it is read",
    ("self._prefixed = False", "pass"): "new buffers forget it",
    ("self._prefixed = False", "True"): "new buffers forget it",
    ("shape, _TYPES[prepared.dtype], prepared.device, 0", "1"): "the number of a GPU; a CPU has none",
    ("memory = prepared.device, 0, _TYPES[prepared.dtype], shape, value.data_ptr() + offset", "1"): (
        "the number of a GPU; a CPU has none"
    ),
    ("OrtValue.ortvalue_from_numpy(np.repeat(one, sequences, axis=0), prepared.device, 0) for one in prefix", "1"): (
        "the number of a GPU; a CPU has none"
    ),
    (
        'before = (self.first, *(self.following.replace("#", str(k)) for k in range(2, len(labels) + 1)))',
        "2",
    ): "there are no more pieces than labels",
    ("labels = np.arange(n) % 2 == odd", "(np.arange(n) % 2 != odd)"): "both are tried",
    ("self._answer = self._derive(64)", "65"): "longer answers are derived as they are needed",
    ("self.block_start = [0] * m", "1"): "set for each node",
    ("rows = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=m) > 1)])", "1"): "the root is no table",
    ("np.add.at(loose, np.maximum(self.parent, 0), tail)", "1"): "the root has no tail",
    (
        "too_long = np.concatenate([[0], np.cumsum(part & (chars[end] - chars[:-1] > MAX_CELL_CHARS))])",
        "1",
    ): "the root is no table",
    ('_CODE = frozenset({"pre", "code", "kbd", "samp", "tt", "listing"})', "'listingXX'"): "a listing is a block, too",
    ('if element.tag != "button" and not _control(str(element.tag)):', "'buttonXX'"): "the pattern has buttons, too",
    ("self.glue = False", "pass"): "the end of a line break says so, too",
    (
        'text = collapsed("".join(run), bool(self.flags[self.run_leaf] & _PRE)) if self.run_leaf >= 0 else ""',
        "1",
    ): "no text stands in the root",
    ("if flags & (_LINK | _STRONG):", "(flags | (_LINK | _STRONG))"): "both are asked for again inside",
    ("while blank >= 0 and run[blank] != BREAK and run[blank].isspace():", "(blank > 0)"): "begins with no white space",
    ("while blank >= 0 and run[blank] != BREAK and run[blank].isspace():", "1"): "begins with no white space",
    ("binding.synchronize_outputs()", "pass"): "waits for a GPU; on a CPU everything is there",
    ("self._single = self._group = self._current = _Buffers(self._prepared, 0)", "1"): "no sequence fits into it",
    ("self.forward([Chunk(0, 0, self._shared, np.zeros(1, dtype=np.int64))])", "2"): "nobody looks at these logits",
}
"""Mutants without observable effect, by line of code and new text, with the reason."""


@dataclass(frozen=True)
class Mutation:
    """A fault: its description, its file, and the code that is replaced."""

    what: str
    file: str
    old: str
    new: str


LOOP = tuple(
    Mutation(what, f"{FOLDER}/loop.py", old, new)
    for what, old, new in (
        ("a tie is main", "choices = logits[:, 0] > logits[:, 1]", "choices = logits[:, 0] >= logits[:, 1]"),
        (
            "main and other are swapped",
            "choices = logits[:, 0] > logits[:, 1]",
            "choices = logits[:, 1] > logits[:, 0]",
        ),
        ("margins have the wrong sign", "logits[:, 0] - logits[:, 1]", "logits[:, 1] - logits[:, 0]"),
        ("all choices of a pass are final", "int(different[0]) + 1 if len(different) else self.end", "len(choices)"),
        ("the corrected label is asked again", "int(different[0]) + 1 if len", "int(different[0]) if len"),
        ("one label more is final", "int(different[0]) + 1 if len", "int(different[0]) + 2 if len"),
        ("the last difference counts", "int(different[0]) + 1 if len", "int(different[-1]) + 1 if len"),
        (
            "only the first wrong label is corrected",
            "self.labels[read] = choices",
            "self.labels[read][different[:1]] = choices[different[:1]]",
        ),
        (
            "the draft behind it is turned",
            "self.labels[read] = choices",
            "self.labels[read] = choices; self.labels[self.end :] ^= True",
        ),
        (
            "a wrong token stays read",
            "int(self.task.answer.places[self.fixed - 1])",
            "int(self.task.answer.places[self.fixed - 1]) + 1",
        ),
        (
            "a token too many is read again",
            "int(self.task.answer.places[self.fixed - 1])",
            "int(self.task.answer.places[self.fixed - 1]) - 1",
        ),
        ("logits are taken a token late", "places[self.fixed :] - 1 - self.start", "places[self.fixed :] - self.start"),
        (
            "logits of the labels before are read again",
            "places[self.fixed :] - 1",
            "places[: self.end - self.fixed] - 1",
        ),
        ("labels are written a token early", "ids[places[:-1]] = np.where", "ids[places[:-1] - 1] = np.where"),
        ("the draft is not written", "np.where(self.labels[: self.end - 1], task.main, task.other)", "task.main"),
        (
            "labels are written the wrong way round",
            "self.end - 1], task.main, task.other)",
            "self.end - 1], task.other, task.main)",
        ),
        ("the draft of the task is written into", "self.labels = task.draft.copy()", "self.labels = task.draft"),
        ("a label too many is read", "min(self.fixed + lookahead + 1,", "min(self.fixed + lookahead + 2,"),
        ("NaN is a label", "if not np.isfinite(logits).all():", "if False:"),
        ("positions forget what was read", "self.positions += len(ids) - self.start", "self.positions += len(ids)"),
        ("a page waits for no other", "if not state.done]:", "if not state.done][:1]:"),
    )
)
GRAMMAR = tuple(
    Mutation(what, f"{FOLDER}/grammar.py", old, new)
    for what, old, new in (
        ("an answer ends before its last label", "places[n - 1]) + 1 if n", "places[n - 1]) if n"),
        ("long answers are cut", "while n > len(self._answer):", "while False:"),
        ("the closing does not count", "+ self._closing if n else 0", "if n else 0"),
        ("other is main", "self._label_ids(OTHER, 1)[self._answer", "self._label_ids(MAIN, 1)[self._answer"),
        ("neighbours are not looked at", "if not np.array_equal(found, expected):", "if False:"),
        (
            "labels of several tokens are taken",
            "if len(places) != n or np.ptp(main[places]) or np.ptp(other[places]):",
            "if False:",
        ),
        ("a tokenizer without the words is taken", '"".join(self._decode(ids.tolist()).split()) != ', "None and "),
        ("pieces of several tokens are taken", "if len(ids) != 1:", "if False:"),
        ("special tokens are added", "encode(text, add_special_tokens=False).ids", "encode(text).ids"),
    )
)  # fmt: skip
MUTATIONS = LOOP + GRAMMAR


def mutated(source: str, mutation: Mutation) -> str:
    """Return a module with a fault. Raise ValueError unless the code occurs exactly once."""
    if source.count(mutation.old) != 1:
        raise ValueError(f"{mutation.what}: {mutation.old!r} is in {mutation.file} {source.count(mutation.old)} times")
    return source.replace(mutation.old, mutation.new)


@dataclass(frozen=True)
class Fault:
    """A module with a fault, and the fault's name in a report."""

    name: str
    where: str
    file: str
    source: str
    equivalent: str = ""
    """Why no test can detect it; empty if one can."""


def faults(part: str) -> Iterator[Fault]:
    """Yield the faults of a part."""
    if part == "faults":
        for one in MUTATIONS:
            source = (ROOT / one.file).read_text(encoding="utf-8")
            yield Fault(one.what, Path(one.file).name, one.file, mutated(source, one))
        return
    for mutant in sample(PARTS[part].files, ROOT, COUNT, SEED):
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        name = Path(mutant.file).name
        yield Fault(
            f"{_short(mutant.old)}  ->  {_short(mutant.new)}",
            f"{name}:{mutant.line}",
            mutant.file,
            mutant.apply(source),
            EQUIVALENT.get((source.splitlines()[mutant.line - 1].strip(), mutant.new), ""),
        )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


class _First:
    """A plugin of pytest that reports the first test that fails."""

    def __init__(self, answer: Connection) -> None:
        self._answer = answer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._answer.send(report.nodeid.split("::")[-1])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._answer.send("(import)")


def _run_tests(copy: Path, tests: tuple[str, ...], answer: Connection, cache: bool) -> None:
    os.setpgrp()  # so that the workers that a test starts can be ended, too
    sys.dont_write_bytecode = not cache  # two faults with the same second and size would share a cache file
    os.chdir(copy)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.environ.update(PYTHONPATH=str(copy), HYPOTHESIS_PROFILE="mutants", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    sys.exit(int(pytest.main([*options, *tests], plugins=[_First(answer)])))


def noticed(copy: Path, tests: tuple[str, ...], limit: float | None = None) -> str:
    """Return the first test that fails in a copy of the repository or takes too long; an empty string if none does."""
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_run_tests, args=(copy, tests, sender, limit is None))
    process.start()
    sender.close()
    try:
        return str(receiver.recv()) if receiver.poll(limit) else "(out of time)"
    except EOFError:
        return "" if process.join() is None and process.exitcode == 0 else "(the process died)"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def import_from(copy: Path, part: Part) -> None:
    """Import what a part needs from the copy. Raise RuntimeError if that has imported a module to be mutated."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("scrapy_dripper", "benchmarks")]:
        del sys.modules[name]
    sys.path.insert(0, str(copy))
    for name in ("hypothesis", *part.imports):
        importlib.import_module(name)
    paths = [path for module in sys.modules.values() if (path := getattr(module, "__file__", None))]
    if known := {str(copy / file) for file in part.files} & set(paths):
        raise RuntimeError(f"expected imports without the modules of a part (got {', '.join(sorted(known))})")


def try_all(copy: Path, part: str) -> list[tuple[Fault, str]]:
    """Return all faults of a part, each with its first failing test. Raise RuntimeError if a test fails without a
    fault."""
    what = PARTS["loop" if part == "faults" else part]
    import_from(copy, what)
    start = time.monotonic()
    if failed := noticed(copy, what.tests):
        raise RuntimeError(f"expected all tests of {part} to pass without a fault (got {failed})")
    limit = 10 + 4 * (time.monotonic() - start)
    found = []
    for fault in tqdm(list(faults(part)), desc=part, unit="fault"):
        path = copy / fault.file
        source = path.read_text(encoding="utf-8")
        path.write_text(fault.source, encoding="utf-8")
        try:
            found.append((fault, noticed(copy, what.tests, limit)))
        finally:
            path.write_text(source, encoding="utf-8")
    return found


def report(part: str, found: list[tuple[Fault, str]]) -> str:
    """Return a part as text: the number of detected faults, and a line for each fault."""
    caught = sum(bool(by) for _, by in found)
    equal = sum(not by and bool(fault.equivalent) for fault, by in found)
    rows = [
        [fault.name, fault.where, by or (f"equivalent: {fault.equivalent}" if fault.equivalent else "NO TEST")]
        for fault, by in found
    ]
    about = f"{part}: {len(found)} faults, {caught} noticed"
    if equal:
        about += f", {equal} equivalent"
    return f"{about}\n\n{table(['fault', 'in', 'first test that fails'], rows)}"


def main() -> None:
    """Try all faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*PARTS, "faults"], help="print this part, and write nothing")
    arguments = parser.parse_args()
    tqdm.monitor_interval = 0  # no monitor thread, because a process with threads must not be forked
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary)
        skip = shutil.ignore_patterns("__pycache__", "node_modules")
        for name in ("scrapy_dripper", "benchmarks", "models", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=skip)
        shutil.copy(ROOT / "pyproject.toml", copy)
        if arguments.part:
            print(report(arguments.part, try_all(copy, arguments.part)))
            return
        parts = [report(part, try_all(copy, part)) for part in [*PARTS, "faults"]]
    top = heading("mutations.py", ["numpy", "hypothesis", "pytest"])
    publish("\n\n".join([f"{top}\nseed {SEED}", *parts]), ROOT / "benchmarks" / "results" / "mutations.txt")


if __name__ == "__main__":
    main()
