"""``scrapy-dripper annotate INPUT...``: have pages labelled by a language model or by people."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from scrapy_dripper.characters import to_json
from scrapy_dripper.cli.console import Outcomes, UsageError, say
from scrapy_dripper.cli.inputs import Source, find_sources
from scrapy_dripper.cli.options import add_command, add_url, count, seconds
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.inspection.answers import (
    ANSWERS,
    AnswerError,
    LabelsError,
    Record,
    Sheet,
    read_answers,
    record_of,
    task_of,
)
from scrapy_dripper.learning.command import sheets
from scrapy_dripper.page import NATIVE
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.annotation.labels import Store, adjudicated, checked_page, load, write_page
from scrapy_dripper_lab.annotation.prompt import SYSTEM, PageAnswer, label, prompt_hash, question
from scrapy_dripper_lab.endpoint import Endpoint, EndpointError, in_threads, key_in
from scrapy_dripper_lab.evaluation.blocks import Bools
from scrapy_dripper_lab.evaluation.complexity import complexity, levels
from scrapy_dripper_lab.extras import extra
from scrapy_dripper_lab.prompts import INSTALLED, prompt_of
from scrapy_dripper_lab.scores import mean

MAX_BLOCKS = 1_500
"""Longer pages are left out, because long answers are seldom valid."""
GIVE_UP = 8  # The run ends after the endpoint has failed on this number of pages in a row.

EXAMPLES = """\
examples:
  scrapy-dripper annotate pages/ -o labels.jsonl --endpoint http://localhost:8000/v1 --model NAME
  scrapy-dripper annotate pages/ -o labels.jsonl --endpoint URL --model NAME --api-key-env MY_KEY
  scrapy-dripper inspect pages/ -o looks/                   for people: correct the labels, and export them
  scrapy-dripper annotate --read-answers answers/ -o labels.jsonl
  scrapy-dripper annotate pages/ -o second.jsonl --endpoint URL --model ANOTHER      a second reader, and where the two
  scrapy-dripper annotate pages/ -o final.jsonl --adjudicate labels.jsonl second.jsonl    differ
  scrapy-dripper annotate pages/ -o labels.jsonl --export more-pages/    for: make train EXTRA=more-pages
  scrapy-dripper annotate pages/ -o labels.jsonl --benchmark pages.jsonl          in the form of WebMainBench

With --endpoint, the text of the pages is sent there. Pages that are already in the file of labels are skipped, so the
same command resumes a run that was stopped. Use these labels for training only, never for evaluation.

exit codes: 0 every page was done, 1 at least one was not (standard error names it), 2 wrong usage or an endpoint that
gives no answers, 130 Ctrl-C. Labels of finished pages are always kept.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(
        commands, "annotate", run, "have pages labelled by a language model or by people, for training", EXAMPLES
    )
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="pages, as for extract")
    parser.add_argument(
        "-o",
        "--labels",
        metavar="FILE",
        help="the file of labels (JSON Lines), which is appended to, or read with --export",
    )
    what = parser.add_argument_group("what to do, one of").add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--endpoint", metavar="URL", help="ask the OpenAI-compatible API at this URL, such as http://HOST/v1"
    )
    what.add_argument("--read-answers", metavar="DIR", help="read what people have exported from the inspector")
    what.add_argument(
        "--adjudicate",
        nargs="+",
        metavar="FILE",
        help="combine the labels of two or more readers: write the pages that are decided, and list, on standard "
        "output, the blocks on which the first two differ",
    )
    what.add_argument("--export", metavar="DIR", help="write labelled pages as training data")
    what.add_argument("--benchmark", metavar="FILE", help="write labelled pages with main content as in WebMainBench")
    ask = parser.add_argument_group("options of --endpoint")
    ask.add_argument("--model", metavar="NAME", help="the model to ask for")
    ask.add_argument(
        "--prompt",
        metavar="FILE",
        help="file with a prompt in place of ours, such as that of a paper, with {html} where the blocks go; or "
        f"{INSTALLED}, the prompt of that installed package",
    )
    ask.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the key, if one is needed"
    )
    ask.add_argument("--concurrency", type=count, default=4, metavar="N", help="requests at a time (default: 4)")
    ask.add_argument(
        "--timeout", type=seconds, default=300.0, metavar="S", help="seconds to wait for an answer (default: 300)"
    )
    other = parser.add_argument_group("other options")
    other.add_argument(
        "--profile",
        choices=list(PROFILES),
        default=NATIVE.name,
        help="the rules by which pages are cut (default: native; v1.0 is that of the published Qwen3 weights)",
    )
    add_url(other)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise UsageError if it cannot start."""
    outcomes = Outcomes()
    if not arguments.labels:
        raise UsageError("name the file of labels: -o labels.jsonl")
    path = Path(arguments.labels)
    try:
        if arguments.endpoint is not None:
            _ask(arguments, path, outcomes)
        elif arguments.read_answers is not None:
            _read_answers(arguments, path, outcomes)
        elif arguments.adjudicate is not None:
            _adjudicate(arguments, path, outcomes)
        else:
            _export(arguments, path, outcomes)
    finally:
        outcomes.summarise()
    return 1 if outcomes.failed else 0


def _ask(arguments: argparse.Namespace, path: Path, outcomes: Outcomes) -> None:
    """Label pages by asking an endpoint."""
    if not arguments.model:
        raise UsageError("--endpoint needs --model NAME")
    try:
        endpoint = Endpoint(arguments.endpoint, arguments.model, key_in(arguments.api_key_env), arguments.timeout)
    except ValueError as error:
        raise UsageError(f"expected {error}") from None
    sources = _sources(arguments, path, outcomes)
    template = prompt_of(arguments.prompt) if arguments.prompt else None
    prompt, system = prompt_hash(template), SYSTEM if template is None else ""

    def questions(store: Store) -> Iterator[tuple[Sheet, str]]:
        for sheet in sheets(sources, outcomes, arguments.profile):
            if sheet.sha256 in store.done:
                outcomes.count("already labelled")
            elif sheet.blocks > MAX_BLOCKS:
                outcomes.fail(sheet.name, f"{sheet.blocks:,} blocks: over {MAX_BLOCKS:,}, answers are seldom valid")
            else:
                yield sheet, question(sheet, template=template)

    in_a_row = 0
    with closing(Store(path)) as store:
        answers = in_threads(
            lambda asked: label(endpoint, asked[1], asked[0].blocks, system), questions(store), arguments.concurrency
        )
        for (sheet, _), answer in answers:
            if isinstance(answer, PageAnswer):
                task = task_of(sheet, prompt) | {"style": answer.style}
                store.add(record_of(task, answer.main, arguments.model))
                outcomes.count("labelled")
            elif isinstance(answer, EndpointError | AnswerError):
                outcomes.fail(sheet.name, endpoint.clean(str(answer)))
            else:
                raise answer
            in_a_row = in_a_row + 1 if isinstance(answer, EndpointError) else 0
            refused = isinstance(answer, EndpointError) and answer.refused and not outcomes.counts.get("labelled")
            if refused or in_a_row == GIVE_UP:
                raise UsageError("the endpoint gives no answers; when it works again, repeat the command to resume")


def _read_answers(arguments: argparse.Namespace, path: Path, outcomes: Outcomes) -> None:
    """Add the labels of people to the file of labels."""
    if arguments.inputs:
        raise UsageError("--read-answers takes no INPUT: the answers name their pages")
    folder = Path(arguments.read_answers)
    if not any(folder.glob(ANSWERS)):
        raise UsageError(f"no {ANSWERS} in {folder}: expected a folder with exports of the inspector")
    answers = read_answers(folder, outcomes.fail)
    with closing(Store(path)) as store:
        for answer in answers:
            if answer.sha256 in store.done:
                outcomes.count("already labelled")
            else:
                store.add(answer)
                outcomes.count("labelled")


def _adjudicate(arguments: argparse.Namespace, path: Path, outcomes: Outcomes) -> None:
    """Write the pages that readers agree on, or most of three, and print the blocks on which two differ."""
    if path.exists() or len(arguments.adjudicate) < 2:
        raise UsageError("--adjudicate needs the labels of two readers or more, and a new file as -o")
    sources = _sources(arguments, path, outcomes)
    readings = [_labels(Path(name)) for name in arguments.adjudicate]
    decided, disagreements, agreement = adjudicated([list(one.values()) for one in readings])
    with closing(Store(path)) as store:
        for record in decided:
            store.add(record)
    names = {sha256: record.id for one in readings for sha256, record in one.items()}
    texts = {
        sheet.id: sheet.page.blocks.text
        for sheet in sheets(sources, outcomes, arguments.profile)
        if sheet.sha256 in names
    }
    for one in disagreements:
        known = texts.get(one["page"], [])
        print(to_json({**one, "text": known[one["block"] - 1] if one["block"] <= len(known) else None}))
    for record in decided:
        del names[record.sha256]
    for sha256, page in sorted(names.items(), key=lambda item: item[1]):
        if sum(sha256 in one for one in readings) > 1:
            outcomes.fail(page, "its readers differ; add another reading, of a person, to --adjudicate")
        else:
            outcomes.count("with one reader")
    outcomes.count("decided", len(decided))
    if agreement:
        say(f"{len(agreement)} pages with two readers, who agree on {mean(agreement):.1%} of the blocks of a page")


def _labels(path: Path) -> dict[str, Record]:
    """Return the records of a file by page. Raise UsageError if it cannot be read, or if a page has two."""
    try:
        records = load(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    found: dict[str, Record] = {}
    for record in records:
        if found.setdefault(record.sha256, record) is not record:
            raise UsageError(f"{path}: {record.id} is labelled twice; delete one of its lines")
    return found


def _export(arguments: argparse.Namespace, path: Path, outcomes: Outcomes) -> None:
    """Write labelled pages in the layout of the training data, or in that of the benchmark."""
    target = Path(arguments.export or arguments.benchmark)
    if arguments.export and target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target} is not empty; --export needs a new folder, so that it holds no other pages")
    if arguments.benchmark and target.exists():
        raise UsageError(f"{target} exists; --benchmark needs a new file")
    records = _labels(path)
    left = dict(records)
    unknown: list[Sheet] = []
    chosen: list[tuple[Record, Sheet, str, Bools]] = []
    for sheet in sheets(_sources(arguments, path, outcomes), outcomes, arguments.profile):
        if sheet.sha256 not in records:
            unknown.append(sheet)
        elif record := left.pop(sheet.sha256, None):
            try:
                if arguments.export:
                    write_page(target, record, sheet)
                elif not record.labels:  # as in the paper (4.1); other exports are also for models that know such pages
                    outcomes.count("without main content")
                    continue
                else:
                    data, main = checked_page(record, sheet)
                    chosen.append((record, sheet, data.decode("utf-8-sig", "replace"), main))
            except LabelsError as error:
                outcomes.fail(sheet.name, str(error))
            else:
                outcomes.count("exported")
    if arguments.benchmark:
        _write_benchmark(target, chosen)
    changed = {_stem(sheet.id): sheet.name for sheet in unknown}
    for record in left.values():
        name = changed.get(_stem(record.id))
        why = "has changed since it was labelled; label it again" if name else "its page is not among the inputs"
        outcomes.fail(name or record.id, f"{why} (SHA-256 {record.sha256[:12]}...)")
    missed = len(unknown) - len({_stem(record.id) for record in left.values()} & set(changed))
    outcomes.count("without labels", missed)


def _write_benchmark(path: Path, pages: Sequence[tuple[Record, Sheet, str, Bools]]) -> None:
    """Write pages, with their HTML and main blocks, to a file that ``evaluate`` measures as WebMainBench."""
    with extra("evaluate"):
        from scrapy_dripper_lab.evaluation.webmainbench import line_of
    difficulty = levels([complexity(parse(html)) for _, _, html, _ in pages])
    with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
        for (record, sheet, html, main), level in zip(pages, difficulty, strict=True):
            more = {"level": level, "annotator": record.who} | ({"style": record.style} if record.style else {})
            file.write(line_of(record.id, record.url, html, sheet.page, main, more) + "\n")


def _sources(arguments: argparse.Namespace, labels: Path, outcomes: Outcomes) -> list[Source]:
    if not arguments.inputs:
        raise UsageError("name the pages: files, folders or URLs")
    sources = find_sources(arguments.inputs, outcomes.fail, arguments.url)
    if os.path.realpath(labels) in {os.path.realpath(s.path) for s in sources if s.path}:
        raise UsageError(f"{labels} is an input as well; name another file of labels")
    return sources


def _stem(identity: str) -> str:
    return identity.rpartition("-")[0]
