"""Train the tagger: ``make train``, or ``python -m scrapy_dripper_lab.training --help``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from scrapy_dripper.choose.decision import DecisionRule
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.engines.files import MANIFEST, sha256
from scrapy_dripper.engines.tagger.engine import Manifest
from scrapy_dripper.learning import TRAINING_PAGES
from scrapy_dripper_lab.extras import extra
from scrapy_dripper_lab.folds import load_sets
from scrapy_dripper_lab.sets import DataError, PageSet, SetChoice
from scrapy_dripper_lab.training.augment import make_copies

if TYPE_CHECKING:
    from scrapy_dripper_lab.training.measure import Measured

FOLDS, CARD = "folds.json", "README.md"
"""Names of the files with the fold of each page and with the card of a model."""
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
    top.add_argument("--seed", type=int, default=0, help="seed of the trees and of the network (default: %(default)s)")
    top.add_argument(
        "--network",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fit a network beside the trees of the first stage, which needs torch",
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
    top.add_argument(
        "--measure-again",
        action="store_true",
        help="do not train: after a change of the decision or of a step, measure the models in --fold-models again, "
        "and write the figures and the parameters of the decision into the model in --out",
    )
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        with extra("train"):
            import lightgbm  # noqa: F401
            import onnxmltools  # noqa: F401

            if arguments.network:
                import torch  # noqa: F401
        (measure_again if arguments.measure_again else train)(arguments)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Measure, train and write the model. Raise DataError if there are no data."""
    from scrapy_dripper_lab.training.card import card
    from scrapy_dripper_lab.training.fit import CONTEXT, QUALITY, TREES, TYPES, fit_stack
    from scrapy_dripper_lab.training.graphs import export
    from scrapy_dripper_lab.training.measure import splits
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
    stack = fit_stack(examples, folds, whole, seed=arguments.seed, jobs=arguments.jobs, network=arguments.network)

    fold_of = {name: k for k, split in enumerate(folds) for name in split.measured}
    measured: Measured | None = None
    with TemporaryDirectory() as temporary:
        models = arguments.fold_models or Path(temporary)
        for k, (split, fitted) in enumerate(zip(folds, stack.folds, strict=True)):
            export(fitted, names, models / str(k), DecisionRule(), examples[split.seen[0]])
        (models / FOLDS).write_text(json.dumps(fold_of) + "\n", encoding="utf-8")
        if not arguments.no_measure:
            measured = _measured(arguments, sets, fold_of, models)

    libraries = (*LIBRARIES, "torch") if arguments.network else LIBRARIES
    notes = {
        "features": len(names),
        "data_sha256": {one.name: one.sha256 for one in sets},
        "weights": {one.name: one.learnt[0].weight if one.learnt else 0.0 for one in sets},
        "pages": len(learnt),
        "copies": dict(Counter(sample.id.rpartition("+")[2] for sample in copies)),
        "measured_pages": sum(len(split.measured) for split in folds),
        "seed": arguments.seed,
        "folds": arguments.folds,
        "network": arguments.network,
        "parameters": {"trees": TREES, "types": TYPES, "context": CONTEXT, "quality": QUALITY},
        **(measured.notes() if measured else {"word_f1": None}),
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in libraries},
        TRAINING_PAGES: {one.name: sorted(sha256(s.path) for s in one.learnt) for one in sets if one.learnt},
    }
    export(stack.whole, names, arguments.out, DecisionRule(), probe, **notes)
    (arguments.out / CARD).write_text(card(sets, measured, notes), encoding="utf-8")
    print(f"wrote {arguments.out} in {time.monotonic() - started:.0f} s")


def measure_again(arguments: argparse.Namespace) -> None:
    """Measure the models of the folds, and write the figures into the manifest and the card of the model.

    Raise DataError if the models of the folds are not there.
    """
    from scrapy_dripper_lab.training.card import card

    models: Path | None = arguments.fold_models
    if models is None or not (models / FOLDS).is_file():
        raise DataError(f"--measure-again needs --fold-models DIR, with the {FOLDS} of a training")
    sets = load_sets([arguments.data, *arguments.sets], arguments.extra)
    fold_of = json.loads((models / FOLDS).read_text(encoding="utf-8"))
    for fold in set(fold_of.values()):
        _rewrite(models / str(fold), {})
    measured = _measured(arguments, sets, fold_of, models)
    notes = _rewrite(arguments.out, measured.notes())
    (arguments.out / CARD).write_text(card(sets, measured, notes), encoding="utf-8")


def _rewrite(folder: Path, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Write the present parameters of the decision, and figures, into the manifest of a model. Return its notes."""
    values: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    own = {one.name for one in fields(Manifest)}
    notes = {name: value for name, value in values.items() if name not in own} | dict(figures)
    replace(Manifest.read(folder), decoding=DecisionRule()).write(folder, **notes)
    return notes


def _measured(
    arguments: argparse.Namespace, sets: Sequence[PageSet], fold_of: Mapping[str, int], models: Path
) -> Measured:
    """Measure the models of the folds, print the figures, and write the texts if they are wanted."""
    from scrapy_dripper_lab.training.measure import measure

    measured = measure(sets, fold_of, models, arguments.jobs)
    if arguments.predictions:
        arguments.predictions.write_text("\n".join(measured.lines) + "\n", encoding="utf-8")
    print(measured.report(arguments.folds))
    return measured


def _choice(text: str) -> SetChoice:
    try:
        return SetChoice.parse(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
