"""``scrapy-dripper corpus clean DIR``: drop duplicates, other languages, and texts of low quality."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
from pathlib import Path

from scrapy_dripper.cli.console import UsageError, say
from scrapy_dripper.cli.options import count
from scrapy_dripper.workshop.cli import corpus_run

CLEAN = "clean"
"""Name of the folder for the cleaned documents, inside that of the extraction."""

EXAMPLES = """\
examples:
  scrapy-dripper corpus clean pages/
  scrapy-dripper corpus clean pages/ --language en --urls hosts.txt --words words.txt

The steps are datatrove's: exact duplicates, language, the quality and repetition rules of Gopher, lists, and near
duplicates (MinHash). The remaining documents are in DIR/clean/*.parquet. After an interruption, repeat the command.

Words are counted by spaCy (pip install spacy; some languages need more, which an error names). --language needs
fasttext-numpy2-wheel and fasteners, --urls needs pyahocorasick and fasteners. Two steps download a file at their first
use, and need nothing from the network afterwards: --language (fastText's model, 131 MB) and --safety (the words of C4).

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
    clean.add_argument("--urls", metavar="FILE", help="file of hosts and URLs, one per line; their pages are dropped")
    clean.add_argument(
        "--words", metavar="FILE", help="file of regular expressions, one per line; texts that match one are dropped"
    )
    clean.add_argument("--safety", action="store_true", help="also drop pages by datatrove's lists of URLs and words")
    clean.add_argument("--workers", type=count, metavar="N", help="tasks at a time; default: one for each core")


def run(arguments: argparse.Namespace) -> int:
    """Clean the corpus and return the exit code."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # datatrove imports the hub's client, which is not used here
    try:
        from scrapy_dripper.workshop.corpus import cleaning
    except ImportError as error:
        raise corpus_run.missing(error) from None
    source = Path(os.path.abspath(arguments.folder))
    note, folder = corpus_run.extracted(source), source / CLEAN
    if note["options"]["text"] == "main_html":
        raise UsageError(f"{source} has Main-HTML as its text: extract with --text markdown or text for this")
    files = sorted(map(str, source.glob("*.parquet")))
    try:
        lists = {name: _lines(getattr(arguments, name)) for name in ("urls", "words")}
        rules = cleaning.Rules(tuple(sorted(set(arguments.language))), **lists, safety=arguments.safety)
        found = cleaning.stages(files, folder, note["options"]["columns"], rules)
    except (ImportError, OSError, ValueError, re.error) as error:
        raise UsageError(str(error)) from None
    folder.mkdir(exist_ok=True)
    prints = {name: hashlib.sha256("\n".join(lines).encode()).hexdigest() for name, lines in lists.items()}
    options = {"languages": rules.languages, "safety": rules.safety, **prints}
    corpus_run.claim(folder, {"files": [os.path.basename(file) for file in files], "options": options})
    logs = folder / "logs"
    if not all(corpus_run.run(steps, tasks, arguments.workers, logs / name) for name, tasks, steps in found):
        return 1
    shutil.rmtree(folder / "work", ignore_errors=True)
    for name, counts in [*corpus_run.totals(logs / "filters").items(), *corpus_run.totals(logs / "write").items()]:
        if "dropped" in counts or "forwarded" in counts:
            reasons = corpus_run.without_prefix(counts, "dropped_")
            say(f"{name}: {counts['total']:,} in, {counts['forwarded']:,} out" + (f" ({reasons})" if reasons else ""))
    return 0


def _lines(file: str | None) -> tuple[str, ...]:
    """Return the lines of a list that are neither empty nor comments."""
    lines = Path(file).read_text(encoding="utf-8-sig").splitlines() if file else []
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
