"""Fine-tune a Qwen3 model to label blocks: ``python -m scrapy_dripper.workshop.training.qwen3 --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.grammar import FORMATS
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.workshop.dataset.sets import DataError, data_hash, load_pages
from scrapy_dripper.workshop.export import ExportError
from scrapy_dripper.workshop.export.checkpoint import Recipe, find_recipe

COMMAND = "command.json"
WORK = "training"
"""Folder below the checkpoint for the files to resume a training."""


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    top = argparse.ArgumentParser(
        prog="python -m scrapy_dripper.workshop.training.qwen3",
        description="Fine-tune a Qwen3 model to label the blocks of pages, by default with the settings of the Dripper "
        "paper. Repeat a stopped command to resume.",
    )
    top.add_argument("data", type=Path, nargs="+", help="folder with html/ID.html and ground-truth/ID.json")
    top.add_argument("--base", type=Path, required=True, metavar="DIR", help="checkpoint to fine-tune")
    top.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the checkpoint, for 'scrapy-dripper export'"
    )
    top.add_argument("--jobs", type=int, default=1, help="processes that cut pages (default: %(default)s)")
    top.add_argument("--threads", type=int, help="threads of the training on a CPU")
    top.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda if there is a GPU")
    reads = top.add_argument_group("input and answers of the model; by default those of its training")
    reads.add_argument("--prompt", dest="prompt_file", type=Path, metavar="FILE", help="template with {html} in it")
    reads.add_argument("--profile", choices=PROFILES)
    reads.add_argument("--truncate-chars", type=int, metavar="N", help="characters of a text; 0 for all of it")
    reads.add_argument("--answer", choices=FORMATS)
    how = top.add_argument_group("settings of the training; by default those of the paper")
    for name in ("batch", "longest", "tokens", "seed"):
        how.add_argument(f"--{name}", type=int, metavar="N")
    for name in ("epochs", "rate", "warmup"):
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
    """Build the data, train, and write the checkpoint."""
    import torch
    from tokenizers import Tokenizer

    from scrapy_dripper.workshop.training.fine_tuning import (
        TOKENIZER,
        Encoder,
        Settings,
        Trainer,
        labelled_pages,
        load_model,
        save_model,
    )

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise ExportError("--device cuda was asked for, but PyTorch finds no GPU")
    given = {one.name: getattr(arguments, one.name, None) for one in fields(Settings)}
    settings = replace(Settings(), **{name: value for name, value in given.items() if value is not None})
    reads = {name: getattr(arguments, name) for name in ("profile", "truncate_chars", "answer", "prompt_file")}
    recipe = find_recipe(arguments.base, {"answer": "json"} | {k: v for k, v in reads.items() if v is not None})
    work: Path = arguments.out / WORK
    _same_command(work / COMMAND, arguments, recipe)

    samples = [sample for folder in arguments.data for sample in load_pages(folder)]
    pages = labelled_pages(samples, recipe.profile, recipe.truncate_chars, arguments.jobs)
    tokenizer = Tokenizer.from_file(str(arguments.base / TOKENIZER))
    model = load_model(arguments.base)
    parameters = sum(p.numel() for p in model.parameters())
    blocks = sum(len(page.blocks) for page in pages)
    print(f"{len(pages)} pages to learn from, {blocks:,} blocks; {parameters:,} parameters")
    encoder = Encoder(tokenizer, recipe.prompt, recipe.answer or "json")
    trainer = Trainer(model.to(device), encoder, pages, settings, work)
    if trainer.step:
        print(f"resuming from step {trainer.step}")
    trainer.train()
    save_model(model, tokenizer, recipe, arguments.out)
    print(f"wrote {arguments.out}, loss {trainer.loss:.4f}")


def _same_command(path: Path, arguments: argparse.Namespace, recipe: Recipe) -> None:
    """Write the options of the training to a file. Raise :exc:`DataError` if the folder has another training."""
    free = ("out", "jobs", "threads", "device")
    command = {name: str(value) for name, value in vars(arguments).items() if name not in free}
    hashes = {str(folder): data_hash(folder) for folder in arguments.data}
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
