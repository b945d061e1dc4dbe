"""``scrapy-dripper learn CORRECTIONS... -o DIR``: a model that has learnt from corrected pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.cli.console import Outcomes, UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, Source, find_sources, read_source
from scrapy_dripper.cli.options import add_command
from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import TaggerModel, bundled
from scrapy_dripper.inspection.answers import ANSWERS, LabelsError, Sheet, read_answers, sheet
from scrapy_dripper.learning import (
    Correction,
    Gain,
    gain_rows,
    is_ours,
    learn,
    of_record,
    total_gain,
    trained_on,
    write_model,
)
from scrapy_dripper.learning.metrics import aligned
from scrapy_dripper.page import NATIVE, PageError

EXAMPLES = """\
examples:
  scrapy-dripper inspect page.html --url https://example.com/page      correct the labels, press Export
  scrapy-dripper learn corrections/ -o my-model
  scrapy-dripper learn corrections/ --base my-model -o my-model        more sites, or more pages of a site
  scrapy-dripper extract page.html --url https://example.com/page2 --model my-model

CORRECTIONS is a folder of pages with their corrections beside them: exports of the inspector (*.answer.json).

A site is a host. Parts of its pages are held out in turn, and measured with weights learnt from the other parts. A site
is left as it was if it does not gain, even with a standard error added, and is "unsure" if it only gains with that
error. Results for other sites do not change. The URL of a page names its site; for a file, --url gives it,
or the page declares it.

exit codes: 0 the model was written and every page was used, 1 a page could not be used (standard error says why), or no
site has gained and nothing was written, 2 wrong usage, 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "learn",
        run,
        "make a model that makes fewer mistakes on the sites of corrected pages, and measure the gain",
        EXAMPLES,
    )
    parser.add_argument("corrections", nargs="+", type=Path, metavar="CORRECTIONS", help="folders of corrected pages")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="DIR", help="the model folder, for --model and DRIPPER_MODEL"
    )
    parser.add_argument("--base", type=Path, metavar="DIR", help="the model to start from (default: the bundled one)")
    parser.add_argument(
        "--every",
        action="store_true",
        help="also learn about sites that do not gain, and about sites with a single page, whose gain is unknown",
    )


def run(arguments: argparse.Namespace) -> int:
    """Learn, print the gain, write the model, and return the exit code. Raise UsageError if that cannot begin."""
    out, base = arguments.out, arguments.base or bundled()
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: name a folder for the model")
    if out.is_dir() and any(out.iterdir()) and not is_ours(out):
        raise UsageError(f"{out} is not empty, and not a model that 'learn' has written: name another folder")
    Tagger.load(Config(model=str(base))).close()  # report a base that does not work before anything else happens
    outcomes = Outcomes()
    corrections = _corrections(arguments.corrections, outcomes)
    if not corrections:
        raise UsageError("there is no corrected page to learn from")
    known = trained_on(base)
    if seen := sum(one.sha256 in known for one in corrections):
        say(f"the base was trained on {seen} of these pages, so its figures on them are too good")
    sites, gains = learn(corrections, TaggerModel(base), every=arguments.every)
    _show(gains)
    if not sites:
        say("no site has gained, so nothing was written; correct more pages of a site, or use the model as it is")
        return 1
    write_model(out, base, sites, gains, corrections)
    say(f"wrote {out}; use it with --model {out}, or with DRIPPER_MODEL = {str(out)!r}")
    return 1 if outcomes.failed else 0


def _show(gains: list[Gain]) -> None:
    print("word F1 on held-out pages, before and after learning from the other pages\n")
    print(aligned(*gain_rows(gains)))
    if found := total_gain(gains):
        before, after, change = found
        print(f"\nall held-out pages: {before:.3f} before, {after:.3f} after; sites left as they were count too")
        print(f"difference: {change.mean:+.3f} (95 % interval {change.low:+.3f} to {change.high:+.3f})")
        if any(gain.learnt for gain in gains) and change.low <= 0:
            what = "no gain on held-out pages" if change.mean <= 0 else "the gain may be due to chance"
            say(f"{what}: the interval includes 0; correct more pages to be sure")


def _corrections(folders: Sequence[Path], outcomes: Outcomes) -> list[Correction]:
    """Return the corrected pages of folders, each page once."""
    found: dict[str, Correction] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder: expected one with pages and their corrections")
        for one in _of_answers(folder, outcomes):
            if one.sha256 in found:
                outcomes.count("the same page again")
            found.setdefault(one.sha256, one)
    outcomes.count("pages corrected", len(found))
    outcomes.summarise()
    return list(found.values())


def sheets(sources: Sequence[Source], outcomes: Outcomes, profile: str = NATIVE.name) -> Iterator[Sheet]:
    """Yield the sheet of each source, each page once, cut by a profile. A page that cannot be read has failed."""
    seen: set[str] = set()
    for source in tqdm(sources, desc="pages", unit="page", disable=None):
        try:
            document = read_source(source, READ_FACTOR * Config().limits.bytes)
            document = replace(document, url=source.url or document.url)
            found = sheet(document, source.name, source.id, profile)
        except Exception as error:  # A bad page must not stop the others.
            outcomes.fail(source.name, f"{error.reason}: {error}" if isinstance(error, PageError) else why(error))
            continue
        if found.sha256 in seen:
            outcomes.count("the same page again")
        else:
            yield found
        seen.add(found.sha256)


def _of_answers(folder: Path, outcomes: Outcomes) -> Iterator[Correction]:
    """Yield the corrections of a folder of pages with answers beside them."""
    if not any(folder.glob(ANSWERS)):
        raise UsageError(f"{folder} holds no corrections: expected *.answer.json of the inspector beside the pages")
    left = {answer.sha256: answer for answer in read_answers(folder, outcomes.fail)}
    sources = find_sources([str(folder)], outcomes.fail)
    for page in sheets(sources, outcomes):
        if record := left.pop(page.sha256, None):
            try:
                yield of_record(record, page)
            except LabelsError as error:
                outcomes.fail(page.name, str(error))
        else:
            outcomes.count("pages without labels")
    for record in left.values():
        outcomes.fail(record.id, f"its page is not in {folder}, or has changed (SHA-256 {record.sha256[:12]}...)")
