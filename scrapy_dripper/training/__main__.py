"""Train the tagger: ``make train``, or ``python -m scrapy_dripper.training --help``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np

from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.evaluation.bootstrap import mean_interval, paired_interval
from scrapy_dripper.evaluation.metrics import ScoreRow, format_table, summaries
from scrapy_dripper.training.data import DataError, data_hash, load_pages

NETWORKS = 3
"""Networks of a model, each from another seed."""

LIBRARIES = ("lightgbm", "lxml", "numpy", "onnx", "onnxmltools", "onnxruntime", "trafilatura")


def parser() -> argparse.ArgumentParser:
    """Return the command line of the training."""
    top = argparse.ArgumentParser(
        prog="python -m scrapy_dripper.training",
        description="Train the tagger on pages with known main content: measure the recipe on folds grouped by host, "
        "beside Trafilatura on the same pages, then fit on all the pages and write a model folder (weights, manifest, "
        "card). DRIPPER_MODEL takes such a folder.",
    )
    top.add_argument("data", type=Path, help="folder with html/ID.html and ground-truth/ID.json")
    top.add_argument(
        "--extra", type=Path, metavar="DIR", help="more pages of the same layout, to learn from but never to measure on"
    )
    top.add_argument("--out", type=Path, default=Path("models/tagger"), help="the model folder (default: %(default)s)")
    top.add_argument(
        "--folds", type=int, default=5, help="folds of the second stage and of the measurement (default: %(default)s)"
    )
    top.add_argument("--no-measure", action="store_true", help="skip the measurement; the model stays the same")
    top.add_argument("--seed", type=int, default=0, help="of the trees and networks (default: %(default)s)")
    top.add_argument(
        "--networks",
        type=int,
        default=NETWORKS,
        help="networks beside the trees; they need torch (default: %(default)s)",
    )
    top.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    top.add_argument(
        "--predictions", type=Path, metavar="FILE", help="write the held-out texts here, as JSON Lines for 'evaluate'"
    )
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        import lightgbm  # noqa: F401
        import onnxmltools  # noqa: F401

        if arguments.networks:
            import torch  # noqa: F401
    except ImportError as error:
        print(f"Training needs {error.name}: run 'pip install scrapy-dripper[train]'", file=sys.stderr)
        return 2
    try:
        train(arguments)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Measure, fit and write the model. Raise DataError if there are no data."""
    from scrapy_dripper.training.card import card
    from scrapy_dripper.training.crossvalidate import out_of_fold, scored, splits, trafilatura_texts
    from scrapy_dripper.training.export import export
    from scrapy_dripper.training.fit import CONTEXT, TREES
    from scrapy_dripper.training.prepare import prepare
    from scrapy_dripper.training.stack import fit_stack

    started = time.monotonic()
    samples = load_pages(arguments.data)
    more = load_pages(arguments.extra) if arguments.extra else []
    hashes = {folder.name: data_hash(folder) for folder in (arguments.data, arguments.extra) if folder}
    hosts = len({sample.host or sample.id for sample in samples})
    if not 2 <= arguments.folds <= hosts:
        raise DataError(f"--folds must be from 2 to the number of hosts, {hosts} (got {arguments.folds})")
    same = {sample.id for sample in samples} & {sample.id for sample in more}
    if same:
        raise DataError(f"{arguments.extra} has pages with the ids of others: {', '.join(sorted(same)[:5])}")
    examples = prepare([*samples, *more], arguments.jobs)
    folds, whole = splits(samples, more, examples, arguments.folds)
    if not all(split.held for split in folds):
        raise DataError(f"{arguments.data}: no page has visible text, or too few for {arguments.folds} folds")
    probe = examples[whole.seen[0]]
    names = probe.features.names
    blocks = sum(len(e.main) for e in examples.values())
    print(f"{len(samples)} pages, {len(more)} more to learn from, {blocks:,} blocks, {len(names)} features", flush=True)
    stack = fit_stack(examples, folds, whole, networks=arguments.networks, seed=arguments.seed, jobs=arguments.jobs)

    ours: list[ScoreRow] = []
    peer: list[ScoreRow] = []
    if not arguments.no_measure:
        cache = Path(".cache") / f"trafilatura-{hashes[arguments.data.name][:16]}.json"
        texts = trafilatura_texts(samples, cache, arguments.jobs)
        reasons: dict[str, list[int]] = {}
        lines = []
        for sample, extraction in out_of_fold(samples, examples, folds, stack):
            if extraction.fallback_reason:
                reasons.setdefault(extraction.fallback_reason.value, []).append(len(ours))
            ours.append(scored(sample, extraction.text))
            peer.append(scored(sample, texts[sample.id]))
            held = {
                "id": sample.id,
                "text": extraction.text or "",
                "labels": extraction.labels,
                "probabilities": [round(p, 4) for p in extraction.probabilities],
            }
            lines.append(json.dumps(held, ensure_ascii=False))
        if arguments.predictions:
            arguments.predictions.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(report(ours, peer, arguments.folds))
        for reason, pages in sorted(reasons.items()):
            mine, theirs = (np.mean([rows[i].f1 for i in pages]) for rows in (ours, peer))
            print(f"{reason}: {len(pages)} pages, word F1 {mine:.4f}, Trafilatura {theirs:.4f}")

    libraries = (*LIBRARIES, "torch") if arguments.networks else LIBRARIES
    notes = {
        "features": len(names),
        "data_sha256": hashes,
        "pages": len(samples),
        "extra_pages": len(more),
        "seed": arguments.seed,
        "folds": arguments.folds,
        "networks": arguments.networks,
        "parameters": {"trees": TREES, "context": CONTEXT},
        "word_f1": round(float(np.mean([row.f1 for row in ours])), 4) if ours else None,
        "trafilatura_word_f1": round(float(np.mean([row.f1 for row in peer])), 4) if peer else None,
        "python": platform.python_version(),
        "libraries": {name: importlib.metadata.version(name) for name in libraries},
    }
    export(stack.whole, names, arguments.out, Decoding(), probe, **notes)
    (arguments.out / "README.md").write_text(card(samples, more, ours, peer, notes), encoding="utf-8")
    print(f"wrote {arguments.out} in {time.monotonic() - started:.0f} s")


def report(ours: list[ScoreRow], peer: list[ScoreRow], folds: int) -> str:
    """Return the figures of the folds as text."""
    mean, difference = (
        mean_interval([r.f1 for r in ours]),
        paired_interval([a.f1 - b.f1 for a, b in zip(ours, peer, strict=True)]),
    )
    return "\n".join(
        [
            f"\ntagger, {folds} folds grouped by host, from HTML to text",
            format_table(summaries(ours)),
            "\nTrafilatura on the same pages",
            format_table(summaries(peer)),
            f"\nword F1 {mean.mean:.4f} [{mean.low:.4f}, {mean.high:.4f}], "
            f"over Trafilatura {difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}] "
            "(95 % bootstrap intervals over pages)\n",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
