"""Train the tagger: ``make train``, or ``python -m scrapy_dripper_lab.training --help``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from scrapy_dripper.choose.expected_f1 import DecisionRule
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.learning.sets import TRAINING_PAGES, DataError, SetChoice
from scrapy_dripper_lab.extras import extra
from scrapy_dripper_lab.folds import load_sets
from scrapy_dripper_lab.training.augment import make_copies

NETWORKS = 2
"""Number of networks in a model, each with a different seed."""

LIBRARIES = ("lightgbm", "lxml", "numpy", "onnx", "onnxmltools", "onnxruntime", "trafilatura")


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    top = argparse.ArgumentParser(
        prog="python -m scrapy_dripper_lab.training",
        description="Train the tagger on pages with known main content: measure the recipe on folds grouped by host, "
        "beside Trafilatura on the same pages, then fit on all the pages and write a model folder (weights, manifest, "
        "card). DRIPPER_MODEL takes such a folder.",
    )
    top.add_argument(
        "data", type=_choice, help="[NAME=]FOLDER[:WEIGHT] with html/ID.html and ground-truth/ID.json, or pages.jsonl"
    )
    top.add_argument(
        "--set",
        dest="sets",
        type=_choice,
        action="append",
        default=[],
        metavar="[NAME=]FOLDER[:WEIGHT]",
        help="another set of pages; can be repeated. WEIGHT is that of its pages in training (default: 1); with 0, "
        "the set is only measured",
    )
    top.add_argument(
        "--extra",
        type=_choice,
        action="append",
        default=[],
        metavar="[NAME=]FOLDER[:WEIGHT]",
        help="a set to train on but never to measure on",
    )
    top.add_argument("--no-copies", action="store_true", help="do not train on changed copies of pages as well")
    top.add_argument("--out", type=Path, default=Path("models/tagger"), help="the model folder (default: %(default)s)")
    top.add_argument(
        "--folds", type=int, default=5, help="folds of the second stage and of the measurement (default: %(default)s)"
    )
    top.add_argument("--no-measure", action="store_true", help="skip the measurement; the model stays the same")
    top.add_argument("--seed", type=int, default=0, help="seed of the trees and networks (default: %(default)s)")
    top.add_argument(
        "--networks",
        type=int,
        default=NETWORKS,
        help="number of networks in addition to the trees; they need torch (default: %(default)s)",
    )
    top.add_argument("--jobs", type=int, default=2, help="number of processes (default: %(default)s)")
    top.add_argument(
        "--predictions", type=Path, metavar="FILE", help="write the held-out texts here, as JSON Lines for 'evaluate'"
    )
    top.add_argument(
        "--fold-models",
        type=Path,
        metavar="DIR",
        help="write the model of each fold there too, DIR/0 and so on, and DIR/folds.json: the fold of each page",
    )
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        with extra("train"):
            import lightgbm  # noqa: F401
            import onnxmltools  # noqa: F401

            if arguments.networks:
                import torch  # noqa: F401
        train(arguments)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Measure, train and write the model. Raise DataError if there are no data."""
    from scrapy_dripper_lab.training.card import card
    from scrapy_dripper_lab.training.fit import CONTEXT, QUALITY, TREES, TYPES, fit_stack
    from scrapy_dripper_lab.training.graphs import export
    from scrapy_dripper_lab.training.measure import Measured, measure, splits
    from scrapy_dripper_lab.training.prepare import prepare

    started = time.monotonic()
    sets = load_sets([arguments.data, *arguments.sets], arguments.extra)
    samples = {sample.id: sample for one in sets for sample in one.samples}
    # Check the number of folds before the work begins.
    folds, whole = splits(list(samples.values()), (), arguments.folds)
    learnt = [sample for one in sets for sample in one.learnt]
    with TemporaryDirectory() as folder:
        groups = [
            [samples[name] for name in fold.measured if samples[name].learn and not samples[name].facts]
            for fold in folds
        ]
        copies = [] if arguments.no_copies else make_copies(groups, Path(folder), arguments.jobs)
        copies += [
            replace(s, id=f"{s.id}+bare", copy_of=s.id, weight=s.weight / 2, measure=False) for s in learnt if s.facts
        ]
        samples |= {sample.id: sample for sample in copies}
        examples = prepare([*learnt, *copies], arguments.jobs)
    folds, whole = splits(list(samples.values()), examples, arguments.folds)
    if not all(split.held for split in folds):
        raise DataError(f"there are too few pages with visible text to train on, for {arguments.folds} folds")
    probe = examples[whole.seen[0]]
    names = probe.features.names
    blocks = sum(len(e.main) for e in examples.values())
    print(
        f"{len(learnt)} pages to train on and {len(copies)} copies, {blocks:,} blocks, {len(names)} features",
        flush=True,
    )
    stack = fit_stack(examples, folds, whole, networks=arguments.networks, seed=arguments.seed, jobs=arguments.jobs)

    measured: Measured | None = None
    if not arguments.no_measure:
        measured = measure(sets, examples, folds, stack, arguments.jobs)
        if arguments.predictions:
            arguments.predictions.write_text("\n".join(measured.lines) + "\n", encoding="utf-8")
        print(measured.report(arguments.folds))

    if arguments.fold_models:
        for k, (split, fitted) in enumerate(zip(folds, stack.folds, strict=True)):
            export(fitted, names, arguments.fold_models / str(k), DecisionRule(), examples[split.seen[0]])
        fold_of = {name: k for k, split in enumerate(folds) for name in split.measured}
        (arguments.fold_models / "folds.json").write_text(json.dumps(fold_of) + "\n", encoding="utf-8")

    libraries = (*LIBRARIES, "torch") if arguments.networks else LIBRARIES
    notes = {
        "features": len(names),
        "data_sha256": {one.name: one.sha256 for one in sets},
        "weights": {one.name: one.learnt[0].weight if one.learnt else 0.0 for one in sets},
        "pages": len(learnt),
        "copies": dict(Counter(sample.id.rpartition("+")[2] for sample in copies)),
        "measured_pages": sum(len(split.measured) for split in folds),
        "seed": arguments.seed,
        "folds": arguments.folds,
        "networks": arguments.networks,
        "parameters": {"trees": TREES, "types": TYPES, "context": CONTEXT, "quality": QUALITY},
        **(measured.notes() if measured else {"word_f1": None}),
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in libraries},
        TRAINING_PAGES: {one.name: sorted(sha256(s.path) for s in one.learnt) for one in sets if one.learnt},
    }
    export(stack.whole, names, arguments.out, DecisionRule(), probe, **notes)
    (arguments.out / "README.md").write_text(card(sets, measured, notes), encoding="utf-8")
    print(f"wrote {arguments.out} in {time.monotonic() - started:.0f} s")


def _choice(text: str) -> SetChoice:
    try:
        return SetChoice.parse(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
