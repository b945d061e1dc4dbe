"""``scrapy-dripper export``: turn a Qwen3 checkpoint into a folder for ``DRIPPER_MODEL``."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.options import add_command, count
from scrapy_dripper.engines.qwen3.profile import PROFILES

CACHE_DTYPES = {"int8": "int8", "fp8": "float8e4m3fn"}
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}

# Listed here and not imported, because --help has to work without the extra.
ANSWERS = ("json", "json_space", "json_colon", "mineru_v1", "mineru_v2", "compact")

EXAMPLES = """\
The folder is for DRIPPER_ENGINE = 'qwen3'. The checkpoint is a local folder or a name on the Hugging Face hub. The
command needs the extra [export], in a separate virtualenv.

examples:
  scrapy-dripper export owner/model prepared/ --device cuda --no-validate    a model from the hub, for a GPU
  scrapy-dripper export --check prepared/                                    then, on the other machine, without PyTorch
  scrapy-dripper export checkpoint/ prepared/ --device cpu --prompt ask.txt  a checkpoint of your own

exit codes: 0 the folder was made, or passed the check, 2 wrong usage, or a failure (one sentence says why), 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "export", run, "turn a Qwen3 checkpoint into a prepared folder", EXAMPLES)
    parser.add_argument("model", nargs="?", metavar="MODEL", help="the checkpoint")
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT", help="the prepared folder, which must not exist")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="check a prepared folder, and do nothing else")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), help="where the graph will run (default: cuda if there is a GPU)"
    )
    parser.add_argument(
        "--cuda",
        type=int,
        choices=(12, 13),
        default=13,
        help="CUDA version of the machine with the GPU; 12 for drivers before 580, with scrapy-dripper[gpu-cuda12] "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--dtype",
        choices=tuple(DTYPES),
        help="data type of the weights (default: fp16 for cuda, fp32 for cpu); bf16 for models that overflow fp16",
    )
    parser.add_argument(
        "--graph",
        type=Path,
        metavar="FOLDER",
        help="take the graph of this checkpoint that 'optimum-cli export onnx --task text-generation-with-past' wrote",
    )
    parser.add_argument(
        "--weight-format",
        choices=("int8", "int4"),
        help="store the weights in 8 or 4 bits: less memory and less exact; the export says how much less",
    )
    parser.add_argument(
        "--kv-cache-dtype",
        dest="cache_dtype",
        choices=tuple(CACHE_DTYPES),
        help="keep keys and values in 8 bits: longer pages fit, and numbers are less exact; fp8 on GPUs only",
    )
    parser.add_argument("--profile", choices=PROFILES, help="how pages are cut into blocks (default: v1.0)")
    parser.add_argument(
        "--truncate-chars",
        type=_number,
        metavar="N",
        help="number of characters of a text that the model reads; 0 for all",
    )
    parser.add_argument(
        "--prompt", type=Path, metavar="FILE", help="file with the prompt, which has {html} where the blocks go"
    )
    parser.add_argument("--answer", choices=ANSWERS, help="how the model answers (default: the export finds out)")
    parser.add_argument(
        "--context",
        type=count,
        metavar="N",
        help="largest number of tokens of prompt and answer (default: at most 32768)",
    )
    parser.add_argument(
        "--no-validate",
        dest="validate",
        action="store_false",
        help="write a graph that cannot run here; run --check on a machine where it can",
    )


def run(arguments: argparse.Namespace) -> int:
    """Export or check, and return the exit code."""
    from scrapy_dripper_lab.export import build

    if arguments.check is not None:
        if arguments.model is not None or arguments.device is not None:
            raise UsageError("--check takes a prepared folder, and no MODEL, OUT or --device")
        build.check(arguments.check)
        return 0
    if arguments.out is None:
        raise UsageError("expected MODEL and OUT, or --check FOLDER; see 'scrapy-dripper export --help'")
    values = {option.name: getattr(arguments, option.name) for option in fields(build.Request)}
    values |= {"dtype": DTYPES.get(arguments.dtype), "cache_dtype": CACHE_DTYPES.get(arguments.cache_dtype)}
    folder = build.export(build.Request(**values)).folder
    if not arguments.validate:
        say(f"not compared yet: on the target machine, run 'scrapy-dripper export --check {folder}'")
    say(f"wrote {folder}: use it with DRIPPER_ENGINE = 'qwen3' and DRIPPER_MODEL = '{folder}'")
    return 0


def _number(value: str) -> int:
    if value.isdecimal():
        return int(value)
    raise argparse.ArgumentTypeError(f"expected a whole number (got {value!r})")
