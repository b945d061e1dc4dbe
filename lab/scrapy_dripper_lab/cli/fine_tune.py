"""``scrapy-dripper fine-tune DATA... --base DIR --out DIR``: fine-tune a Qwen3 model to label blocks."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from scrapy_dripper.cli.console import say
from scrapy_dripper.cli.corpus import claim
from scrapy_dripper.cli.options import add_command
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper_lab.cli.export import ANSWERS
from scrapy_dripper_lab.extras import extra
from scrapy_dripper_lab.folds import load_sets
from scrapy_dripper_lab.sets import DataError, SetChoice

COMMAND = "command.json"
WORK = "training"
"""Folder below the checkpoint for the files to resume a training."""
LONGEST = 32_000
"""Maximum number of tokens of a page, of the Dripper paper (A.11, table 11)."""

EXAMPLES = """\
The settings are those of the Dripper paper. --set takes those of transformers' TrainingArguments. Repeat a stopped
command to resume. 'make train' trains the tagger.

examples:
  scrapy-dripper fine-tune my-pages --base Qwen3-0.6B --out my-model
  scrapy-dripper fine-tune my-pages --base Qwen3-0.6B --out my-model --set optim=adafactor max_steps=10 bf16=False
  scrapy-dripper export my-model prepared/

exit codes: 0 the checkpoint was written, 2 wrong usage, or a failure (one sentence says why), 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    top = add_command(commands, "fine-tune", run, "fine-tune a Qwen3 model to label the blocks of pages", EXAMPLES)
    top.add_argument("data", nargs="+", help="[NAME=]FOLDER with html/ID.html and ground-truth/ID.json, or pages.jsonl")
    top.add_argument("--base", type=Path, required=True, metavar="DIR", help="checkpoint to fine-tune")
    top.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the checkpoint, for 'scrapy-dripper export'"
    )
    top.add_argument("--jobs", type=int, default=1, help="processes that cut pages (default: %(default)s)")
    top.add_argument(
        "--set", dest="settings", type=_setting, nargs="+", action="extend", default=[], metavar="NAME=VALUE",
        help="settings of the training in place of the paper's",
    )  # fmt: skip
    top.add_argument(
        "--longest", type=int, default=LONGEST, metavar="N",
        help="longer pages, in tokens, are left out (default: %(default)s)",
    )  # fmt: skip
    reads = top.add_argument_group("input and answers of the model; by default those of its training")
    reads.add_argument(
        "--prompt", dest="prompt_file", type=Path, metavar="FILE",
        help="template with {html} in it (default: one that comes with the package)",
    )  # fmt: skip
    reads.add_argument("--profile", choices=PROFILES)
    reads.add_argument("--truncate-chars", type=int, metavar="N", help="characters of a text; 0 for all of it")
    reads.add_argument("--answer", choices=ANSWERS)


def run(arguments: argparse.Namespace) -> int:
    """Train, and return the exit code. Raise UsageError if that fails."""
    with extra("export"):
        import accelerate  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    try:
        train(arguments)
    except KeyboardInterrupt:
        say("stopped; repeat the command to resume")
        return 130
    return 0


def train(arguments: argparse.Namespace) -> None:
    """Build the data, train, and write the checkpoint."""
    from tokenizers import Tokenizer

    from scrapy_dripper_lab.annotation.prompt import TEMPLATE
    from scrapy_dripper_lab.export.checkpoint import find_recipe
    from scrapy_dripper_lab.training.fine_tuning import (
        TOKENIZER,
        LabelTrainer,
        arguments_of,
        load_model,
        save_model,
    )
    from scrapy_dripper_lab.training.token_sequences import Encoder, labelled_pages

    given = {name: getattr(arguments, name) for name in ("profile", "truncate_chars", "answer", "prompt_file")}
    recipe = find_recipe(arguments.base, given, prompt=TEMPLATE, answer="json")
    work: Path = arguments.out / WORK
    sets = load_sets(map(SetChoice.parse, arguments.data))
    settings = arguments_of(dict(arguments.settings), work)
    claim(work / COMMAND, {
        "--base": str(arguments.base), "--set": sorted(arguments.settings), "--longest": arguments.longest,
        "the prompt, profile or answers": asdict(recipe),
        "the data": {str(one.folder): one.sha256 for one in sets},
    })  # fmt: skip
    pages = labelled_pages(
        [sample for one in sets for sample in one.samples], recipe.profile, recipe.truncate_chars, arguments.jobs
    )
    tokenizer = Tokenizer.from_file(str(arguments.base / TOKENIZER))
    encoder = Encoder(tokenizer, recipe.prompt, recipe.answer or "json")
    sequences = [one for page in pages if (one := encoder.encode(page, arguments.longest)) is not None]
    if not sequences:
        raise DataError(f"all pages have more than {arguments.longest:,} tokens")
    model = load_model(arguments.base)
    say(
        f"{len(sequences)} pages to learn from ({len(pages) - len(sequences)} are too long), "
        f"{sum(len(one.main) for one in sequences):,} blocks; {model.num_parameters():,} parameters"
    )
    trainer = LabelTrainer(model, settings, sequences, [encoder.grammar.main, encoder.grammar.other])
    steps = trainer.resume()
    save_model(model, tokenizer, recipe, arguments.out)
    say(f"wrote {arguments.out}, after {steps} steps")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE (got {text!r})")
    return name, value
