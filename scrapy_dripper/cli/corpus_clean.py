"""``scrapy-dripper corpus clean DIR``: drop duplicates, other languages, and texts of low quality."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.corpus_folder import claim, extracted, missing
from scrapy_dripper.cli.options import count
from scrapy_dripper.replace import replace_file

CLEAN = "clean"
"""Name of the folder for the cleaned documents, inside that of the extraction."""
STATS = "stats.json"

EXAMPLES = """\
examples:
  scrapy-dripper corpus clean pages/
  scrapy-dripper corpus clean pages/ --language en --language de --urls hosts.txt --words words.txt

The steps are exact duplicates, language, the quality and repetition rules of Gopher, the lists, and near duplicates
(MinHash). The remaining documents are in DIR/clean/*.parquet, and the counts of each step in DIR/clean/stats.json.
After an interruption, repeat the command to resume.

exit codes: 0 all done, 1 a task failed, 2 wrong usage or an output that cannot be written, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    clean = commands.add_parser(
        "clean",
        help="drop duplicates, other languages, and texts of low quality",
        description="Clean what `corpus extract` has written, and count what each step drops.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    clean.set_defaults(run=run)
    clean.add_argument("folder", metavar="DIR", help="the folder that `corpus extract` wrote")
    clean.add_argument(
        "--language",
        action="append",
        default=[],
        metavar="CODE",
        help="keep this language (en, de, zh, ...); can be given more than once; default: keep all",
    )
    clean.add_argument(
        "--urls", metavar="FILE", help="file of hosts and addresses, one per line; their pages are dropped"
    )
    clean.add_argument(
        "--words", metavar="FILE", help="file of words and phrases, one per line; texts with one of them are dropped"
    )
    clean.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")


def run(arguments: argparse.Namespace) -> int:
    """Clean the corpus and return the exit code."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # datatrove imports the hub's client, which is not used here
    try:
        import py3langid  # noqa: F401

        from scrapy_dripper.corpus import cleaning
        from scrapy_dripper.corpus.filters import fingerprint
        from scrapy_dripper.corpus.ranks import RanksFailedError
    except ImportError as error:
        raise missing(error) from None
    from loguru import logger

    logger.remove()  # each task has its own log
    note, files = extracted(Path(arguments.folder))
    folder = Path(arguments.folder) / CLEAN
    lists = {name: getattr(arguments, name) for name in ("urls", "words") if getattr(arguments, name)}
    try:
        prints = {name: fingerprint(file) for name, file in lists.items()}
        rules = cleaning.Rules(
            tuple(sorted(set(arguments.language))), **{name: os.path.abspath(file) for name, file in lists.items()}
        )
        stages = cleaning.stages(
            files, folder, note["options"]["columns"], rules, arguments.workers or os.cpu_count() or 1
        )
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    folder.mkdir(exist_ok=True)
    options = {"languages": list(rules.languages), **prints}
    claim(folder, {"files": [os.path.basename(file) for file in files], "options": options})
    total = sum(stage.executor.tasks for stage in stages)
    with tqdm(total=total, unit="task", file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

        def finished(name: str) -> None:
            bar.set_postfix_str(name)
            bar.update()

        try:
            cleaning.run(stages, finished)
        except RanksFailedError as error:
            say(f"{error}; repeat the command to try them again")
            return 1
    steps = cleaning.account(folder)
    replace_file(folder / STATS, json.dumps([step._asdict() for step in steps], indent=1))
    shutil.rmtree(folder / "work", ignore_errors=True)
    for step in steps:
        reasons = ", ".join(f"{name} {number:,}" for name, number in step.dropped.items())
        say(f"{step.name}: {step.before:,} in, {step.after:,} out" + (f" ({reasons})" if reasons else ""))
    return 0
