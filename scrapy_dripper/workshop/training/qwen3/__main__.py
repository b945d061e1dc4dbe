"""Train a Qwen3 model to label blocks: ``python -m scrapy_dripper.workshop.training.qwen3 --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.workshop.dataset.pages import DataError, Sample, data_hash, load_pages
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.recipe import Recipe, find_recipe

PROMPT = "{html}\nmain or other?\n"
"""The prompt of a small model that is trained from scratch."""
TRUNCATE_CHARS = 64
VOCABULARY = 8192
COMMAND, PAGES, HELD_OUT = "command.json", "pages.jsonl", "held-out.jsonl"
WORK = "training"
"""Folder below the checkpoint for the files to resume a training, and for its measurements."""


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    top = argparse.ArgumentParser(
        prog="python -m scrapy_dripper.workshop.training.qwen3",
        description="Train a Qwen3 model to label the blocks of pages, and measure it on pages of hosts that it has "
        "not seen. With --base, a checkpoint is fine-tuned, by default with the settings of the Dripper paper. Without "
        "it, a small model with its own vocabulary is trained from scratch. Repeat a stopped command to resume.",
    )
    top.add_argument("data", type=Path, help="folder with html/ID.html and ground-truth/ID.json")
    top.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the checkpoint, for 'scrapy-dripper export'"
    )
    top.add_argument("--base", type=Path, metavar="DIR", help="checkpoint to fine-tune")
    top.add_argument("--extra", type=Path, metavar="DIR", help="more pages to learn from but never to measure on")
    top.add_argument("--folds", type=int, default=5, help="hold out one of this many folds by host; 0 for none")
    top.add_argument("--seed", type=int, default=0)
    top.add_argument("--jobs", type=int, default=1, help="processes that cut pages (default: %(default)s)")
    top.add_argument("--threads", type=int, help="threads of the training on a CPU")
    top.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda if there is a GPU")
    reads = top.add_argument_group("input and answers of the model; with --base, by default those of its training")
    reads.add_argument("--prompt", type=Path, metavar="FILE", help="template with {html} where the blocks go")
    reads.add_argument("--profile", choices=PROFILES)
    reads.add_argument("--truncate-chars", type=int, metavar="N", help="characters of a text; 0 for all of it")
    reads.add_argument("--answer", choices=FORMATS)
    small = top.add_argument_group("a model that is trained from scratch")
    for name in ("hidden", "inner", "layers", "heads", "kv-heads", "head-dim", "context"):
        small.add_argument(f"--{name}", type=int, metavar="N")
    small.add_argument("--vocabulary", type=int, default=VOCABULARY, metavar="N", help="default: %(default)s")
    how = top.add_argument_group("settings of the training; by default those of the paper, or of a small model")
    for name in ("batch", "longest", "shortest", "tokens"):
        how.add_argument(f"--{name}", type=int, metavar="N")
    for name in ("epochs", "rate", "warmup", "ends", "noise", "minutes", "save-minutes"):
        how.add_argument(f"--{name}", type=float, metavar="X")
    how.add_argument("--full-precision", dest="half", action="store_false", default=None, help="no bfloat16")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        print(f"Training needs {error.name}: run 'pip install scrapy-dripper[export]'", file=sys.stderr)
        return 2
    try:
        train(arguments)
    except (DataError, ExportError, ModelError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; repeat the command to resume", file=sys.stderr)
        return 130
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Build the data, train, write the checkpoint and measure it."""
    import torch
    from tokenizers import Tokenizer

    from scrapy_dripper.workshop.training.qwen3.model import TOKENIZER, Size, load_model, new_model, save_model
    from scrapy_dripper.workshop.training.qwen3.pages import read_pages, split, write_pages
    from scrapy_dripper.workshop.training.qwen3.sequences import Encoder
    from scrapy_dripper.workshop.training.qwen3.tokenizer import train_tokenizer
    from scrapy_dripper.workshop.training.qwen3.train import SMALL, STATE, Settings, Trainer

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise ExportError("--device cuda was asked for, but PyTorch finds no GPU")
    settings = _given(Settings() if arguments.base else SMALL, arguments)
    size = _given(Size(), arguments)
    recipe = _recipe(arguments)
    work: Path = arguments.out / WORK
    _same_command(work / COMMAND, arguments, recipe)

    samples, held = split(load_pages(arguments.data), arguments.folds, arguments.seed)
    hosts = {sample.host for sample in held}
    if arguments.extra:
        samples += [sample for sample in load_pages(arguments.extra) if sample.host not in hosts]
    if not (work / PAGES).is_file():
        write_pages(work / PAGES, samples, recipe.profile, recipe.truncate_chars, arguments.jobs)
    pages = list(read_pages(work / PAGES))

    if arguments.base:
        tokenizer = Tokenizer.from_file(str(arguments.base / TOKENIZER))
        model = load_model(arguments.base)
    else:
        if not (work / TOKENIZER).is_file():
            train_tokenizer(("".join(page.blocks) for page in pages), arguments.vocabulary).save(str(work / TOKENIZER))
        tokenizer = Tokenizer.from_file(str(work / TOKENIZER))
        model = new_model(tokenizer, size, arguments.seed)
    encoder = Encoder(tokenizer, recipe.prompt, recipe.answer or "json")
    parameters = sum(p.numel() for p in model.parameters())
    blocks = sum(len(page.blocks) for page in pages)
    print(f"{len(pages)} pages to learn from, {blocks:,} blocks; {len(held)} held out; {parameters:,} parameters")
    trainer = Trainer(model.to(device), encoder, pages, settings, work)
    if trainer.progress.step:
        print(f"resuming from step {trainer.progress.step} in {work / STATE}")
    trainer.train()
    save_model(model, tokenizer, recipe, arguments.out)
    print(f"wrote {arguments.out}, trained for {trainer.progress.seconds / 60:.0f} minutes")
    if held:
        _measure(model, encoder, held, recipe, settings.longest, work)


def _measure(model: Any, encoder: Any, held: Sequence[Sample], recipe: Recipe, longest: int, work: Path) -> None:
    """Print the figures of the model on pages that it has not seen, and write its answers for 'evaluate'."""
    import numpy as np

    from scrapy_dripper.workshop.dataset.metrics import format_table, summaries
    from scrapy_dripper.workshop.training.qwen3.predict import predictions

    rows, main, right = [], [], []
    with (work / HELD_OUT).open("w", encoding="utf-8") as out:
        for one in predictions(model, encoder, held, recipe.profile, recipe.truncate_chars, longest):
            rows.append(one.row)
            main.append(one.probabilities > 0.5)
            right.append(one.right)
            line = {"id": one.sample.id, "text": one.text, "labels": main[-1].tolist(),
                    "probabilities": one.probabilities.round(4).tolist()}  # fmt: skip
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    found, truth = np.concatenate(main), np.concatenate(right)
    hits = int((found & truth).sum())
    print(format_table(summaries(rows)))
    print(f"blocks: precision {hits / max(1, found.sum()):.3f}, recall {hits / max(1, truth.sum()):.3f}")
    print(f"wrote {work / HELD_OUT}")


def _recipe(arguments: argparse.Namespace) -> Recipe:
    given = {name: getattr(arguments, name) for name in ("profile", "truncate_chars", "answer")}
    given["prompt_file"] = arguments.prompt
    if arguments.base:
        return find_recipe(arguments.base, {"answer": "json"} | {k: v for k, v in given.items() if v is not None})
    given = {"profile": "native", "truncate_chars": TRUNCATE_CHARS, "answer": "json", "prompt": PROMPT} | {
        name: value for name, value in given.items() if value is not None
    }
    return find_recipe(arguments.out / WORK, given)


def _given(defaults: Any, arguments: argparse.Namespace) -> Any:
    """Return the defaults, with fields replaced by the flags that were given."""
    values = {one.name: getattr(arguments, one.name, None) for one in fields(defaults)}
    return replace(defaults, **{name: value for name, value in values.items() if value is not None})


def _same_command(path: Path, arguments: argparse.Namespace, recipe: Recipe) -> None:
    """Write the options of the training to a file. Raise :exc:`DataError` if the folder has another training."""
    free = ("out", "jobs", "threads", "device", "save_minutes")
    command = {name: str(value) for name, value in vars(arguments).items() if name not in free}
    hashes = {str(folder): data_hash(folder) for folder in (arguments.data, arguments.extra) if folder}
    values = json.loads(json.dumps({"command": command, "recipe": asdict(recipe), "data_sha256": hashes}))
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before != values:
            what = [name for name in command if before["command"].get(name) != command[name]] or ["the data"]
            raise DataError(f"{path.parent} is of another training ({', '.join(what)}): name another --out")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
