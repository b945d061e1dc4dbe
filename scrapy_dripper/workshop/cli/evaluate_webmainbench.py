"""``scrapy-dripper evaluate FILE.jsonl``: WebMainBench, with the metrics of its toolkit."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from scrapy_dripper.characters import printable
from scrapy_dripper.cli.console import PROGRAM, UsageError, say, to_json
from scrapy_dripper.config import Config

SUFFIX = ".jsonl"


def is_bench(data: list[str]) -> bool:
    """Return True if the data are files of WebMainBench, and not folders."""
    return any(name.endswith(SUFFIX) and not Path(name).is_dir() for name in data)


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Measure a file, print the tables, write the JSON file if it is requested, and return the exit code."""
    try:
        from scrapy_dripper.workshop.evaluation.rouge import load_cut
        from scrapy_dripper.workshop.evaluation.webmainbench.check import check
        from scrapy_dripper.workshop.evaluation.webmainbench.run import BenchFigures, BenchSetup, measure

        cut = load_cut()
    except ImportError as error:
        raise UsageError(
            f"WebMainBench needs more packages ({error}): run 'pip install scrapy-dripper[evaluate]'"
        ) from None
    from scrapy_dripper.workshop.evaluation.measure import OURS
    from scrapy_dripper.workshop.evaluation.peers import check_peers
    from scrapy_dripper.workshop.evaluation.run import read_stored

    path = _file(arguments)
    if arguments.check:
        found = check(path, cut)
        print(printable(found.text()))
        return 1 if found.differences else 0
    peers = check_peers(arguments.peers)
    stored, notes = None, []
    label = f"ours: {config.engine} {version(PROGRAM)}"
    if arguments.predictions:
        stored, label = read_stored(arguments.predictions), f"ours: {arguments.predictions.name}"
        notes.append(f"Ours are the stored texts of {arguments.predictions.name}; pages without one count as empty.")
    else:
        from scrapy_dripper.engines import load_engine

        load_engine(config).close()  # so that a broken model is reported before any work is done
    for note in notes:
        say(note)
    results = list(measure(path, BenchSetup(config, tuple(peers), stored), arguments.jobs))
    if not results:
        raise UsageError(f"{path} has no pages")
    labels = {OURS: label} | {name: f"{name} {number}" for name, number in peers.items()}
    figures = BenchFigures(path.name, labels, results, notes)
    print(printable(figures.text()))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        written = to_json(figures.to_json(), 1)
        arguments.json.write_text(written + "\n", encoding="utf-8", errors="replace", newline="\n")
    return 0


def _file(arguments: argparse.Namespace) -> Path:
    path = Path(arguments.data[0])
    if len(arguments.data) > 1:
        raise UsageError(f"expected one {SUFFIX} file, or folders only (got {' '.join(arguments.data)})")
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist: expected a file of WebMainBench, as in "
            "https://github.com/scrapy-dripper/scrapy-dripper/blob/main/docs/guides/evaluation.md"
        )
    for name in ("report", "cache"):
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name} is for folders of pages, and not for a {SUFFIX} file of WebMainBench")
    return path
