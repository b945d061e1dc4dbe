"""``scrapy-dripper annotate INPUT...``: have pages labelled by a language model or by people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, Source, find_sources, is_url, read_source
from scrapy_dripper.cli.options import key_in, seconds
from scrapy_dripper.config import Config
from scrapy_dripper.page import PageError
from scrapy_dripper.workshop.annotation import pages
from scrapy_dripper.workshop.annotation.answer import read_answer
from scrapy_dripper.workshop.annotation.export import SURE, ExportError, write_page
from scrapy_dripper.workshop.annotation.listing import LEAST_CHARS, MAX_CHARS, listing
from scrapy_dripper.workshop.annotation.pages import Sheet
from scrapy_dripper.workshop.annotation.prompt import messages, prompt_hash, question
from scrapy_dripper.workshop.annotation.store import Record, Store, StoreError, load, record_of, task_of
from scrapy_dripper.workshop.annotation.tasks import TaskError, read_answers, write_task
from scrapy_dripper.workshop.endpoint import AnswerError, Endpoint, EndpointError, in_threads

MAX_BLOCKS = 1_500
NOT_DONE = "not done yet"
GIVE_UP = 8  # The run ends after the endpoint has failed on this number of pages in a row.

EXAMPLES = """\
examples:
  scrapy-dripper annotate pages/ -o labels.jsonl --endpoint http://localhost:8000/v1 --model NAME
  scrapy-dripper annotate pages/ -o labels.jsonl --endpoint URL --model NAME --api-key-env MY_KEY
  scrapy-dripper annotate pages/ --write-tasks tasks/       for people: a text file and a web page for each page
  scrapy-dripper annotate --read-answers tasks/ -o labels.jsonl
  scrapy-dripper annotate pages/ -o labels.jsonl --export more-pages/    for: make train EXTRA=more-pages

With --endpoint, the text of the pages is sent there. Pages that are already in the file of labels are skipped, so the
same command resumes a run that was stopped. Use these labels for training only, never for evaluation.

exit codes: 0 every page was done, 1 at least one was not (standard error names it, or says how many tasks people have
yet to do), 2 wrong usage or an endpoint that gives no answers, 130 Ctrl-C. Labels of finished pages are always kept.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "annotate",
        help="have pages labelled by a language model or by people, for training",
        description="Have the blocks of pages labelled by a language model or by people.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
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
    what.add_argument("--write-tasks", metavar="DIR", help="write tasks for people")
    what.add_argument("--read-answers", metavar="DIR", help="read the answers of people")
    what.add_argument("--export", metavar="DIR", help="write labelled pages as training data")
    ask = parser.add_argument_group("options of --endpoint")
    ask.add_argument("--model", metavar="NAME", help="the model to ask for")
    ask.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the key, if one is needed"
    )
    ask.add_argument("--concurrency", type=_whole(1), default=4, metavar="N", help="requests at a time (default: 4)")
    ask.add_argument(
        "--timeout", type=seconds, default=300.0, metavar="S", help="seconds to wait for an answer (default: 300)"
    )
    other = parser.add_argument_group("other options")
    other.add_argument(
        "--max-chars",
        type=_whole(LEAST_CHARS),
        default=MAX_CHARS,
        metavar="N",
        help=f"characters of a block that are shown to the reader (default: {MAX_CHARS})",
    )
    other.add_argument(
        "--max-blocks",
        type=_whole(1),
        default=MAX_BLOCKS,
        metavar="N",
        help=f"pages with more blocks are left out (default: {MAX_BLOCKS})",
    )
    other.add_argument("--url", help="URL of the page in a single file or on standard input")
    other.add_argument(
        "--sure",
        type=_share,
        default=SURE,
        metavar="P",
        help=f"with --export: confidence in a model's labels, 0 to 1 (default: {SURE}; a person's are 1)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise UsageError if it cannot start."""
    job = _Job(arguments)
    try:
        if arguments.endpoint is not None:
            job.ask()
        elif arguments.write_tasks is not None:
            job.write_tasks()
        elif arguments.read_answers is not None:
            job.read_answers()
        else:
            job.export()
    except (StoreError, TaskError) as error:
        raise UsageError(str(error)) from None
    finally:
        job.summarise()
    return 1 if job.failed or job.counts.get(NOT_DONE) else 0


class _Job:
    """One run: its inputs, and the counts of their outcomes."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.failed: list[str] = []
        self.counts: dict[str, int] = {}

    # ------------------------------------------------------------------ the four things to do
    def ask(self) -> None:
        """Label pages by asking an endpoint."""
        arguments = self.arguments
        if not arguments.model:
            raise UsageError("--endpoint needs --model NAME")
        path = self._labels()
        try:
            endpoint = Endpoint(arguments.endpoint, arguments.model, key_in(arguments.api_key_env), arguments.timeout)
        except ValueError as error:
            raise UsageError(f"expected {error}") from None
        sources = self._sources(path)
        prompt = prompt_hash(arguments.max_chars)

        def answer(asked: tuple[Sheet, str]) -> list[int]:
            return label(endpoint, asked[1], asked[0].blocks)

        in_a_row = 0
        with closing(Store(path)) as store, self._bar(len(sources)) as bar:
            for (sheet, _), labels in in_threads(answer, self._questions(sources, store, bar), arguments.concurrency):
                bar.update()
                if isinstance(labels, list):
                    store.add(record_of(task_of(sheet, prompt), labels, arguments.model))
                    self._count("labelled")
                elif isinstance(labels, EndpointError | AnswerError):
                    self._fail(sheet.name, endpoint.clean(str(labels)))
                else:
                    raise labels
                in_a_row = in_a_row + 1 if isinstance(labels, EndpointError) else 0
                refused = isinstance(labels, EndpointError) and labels.refused and not self.counts.get("labelled")
                if refused or in_a_row == GIVE_UP:
                    raise UsageError("the endpoint gives no answers; when it works again, repeat the command to resume")

    def write_tasks(self) -> None:
        """Write a task for each page."""
        folder = Path(self.arguments.write_tasks)
        sources = self._sources(None)
        folder.mkdir(parents=True, exist_ok=True)
        prompt = prompt_hash(self.arguments.max_chars)
        with self._bar(len(sources)) as bar:
            for sheet in self._sheets(sources, bar):
                bar.update()
                try:
                    new = write_task(folder, task_of(sheet, prompt), listing(sheet.page, self.arguments.max_chars))
                except TaskError as error:
                    self._fail(sheet.name, str(error))
                    continue
                self._count("tasks written" if new else "already there")

    def read_answers(self) -> None:
        """Add the labels of people to the file of labels."""
        if self.arguments.inputs:
            raise UsageError("--read-answers takes no INPUT: the tasks name their pages")
        path = self._labels()
        answers = read_answers(Path(self.arguments.read_answers))
        with closing(Store(path)) as store:
            for answer in answers:
                if isinstance(answer, TaskError):
                    self._fail("", str(answer))
                elif answer.record is None:
                    self._count(NOT_DONE)
                elif answer.record.sha256 in store.done:
                    self._count("already labelled")
                else:
                    store.add(answer.record)
                    self._count("labelled")

    def export(self) -> None:
        """Write labelled pages in the layout of the training data."""
        path, folder = self._labels(), Path(self.arguments.export)
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; --export needs a new folder, so that it holds no other pages")
        try:
            records = _once(path, load(path))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        sources = self._sources(path)
        left = dict(records)
        unknown: list[Sheet] = []
        with self._bar(len(sources)) as bar:
            for sheet in self._sheets(sources, bar):
                bar.update()
                if sheet.sha256 not in records:
                    unknown.append(sheet)
                elif record := left.pop(sheet.sha256, None):
                    try:
                        write_page(folder, record, sheet, self.arguments.sure)
                    except ExportError as error:
                        self._fail(sheet.name, str(error))
                    else:
                        self._count("exported")
        changed = {_stem(sheet.id): sheet.name for sheet in unknown}
        for record in left.values():
            name = changed.get(_stem(record.id))
            why = "has changed since it was labelled; label it again" if name else "its page is not among the inputs"
            self._fail(name or record.id, f"{why} (SHA-256 {record.sha256[:12]}...)")
        missed = len(unknown) - len({_stem(record.id) for record in left.values()} & set(changed))
        self._count("without labels", missed)

    # ------------------------------------------------------------------ inputs
    def _labels(self) -> Path:
        if not self.arguments.labels:
            raise UsageError("name the file of labels: -o labels.jsonl")
        return Path(self.arguments.labels)

    def _sources(self, labels: Path | None) -> list[Source]:
        arguments = self.arguments
        if not arguments.inputs:
            raise UsageError("name the pages: files, folders or URLs")
        sources = find_sources(arguments.inputs, self._fail)
        if arguments.url is not None and (len(sources) != 1 or is_url(sources[0].name)):
            raise UsageError("--url is for a single file or standard input")
        if labels and os.path.realpath(labels) in {os.path.realpath(s.path) for s in sources if s.path}:
            raise UsageError(f"{labels} is an input as well; name another file of labels")
        return sources

    def _sheets(self, sources: list[Source], bar: tqdm[Any]) -> Iterator[Sheet]:
        """Yield the sheets of the sources, each page once. Sources without a sheet advance the bar here."""
        seen: set[str] = set()
        for source in sources:
            found = _open(source, self.arguments.url)
            if isinstance(found, str):
                self._fail(source.name, found)
            elif found.sha256 in seen:
                self._count("the same page again")
            else:
                seen.add(found.sha256)
                yield found
                continue
            bar.update()

    def _questions(self, sources: list[Source], store: Store, bar: tqdm[Any]) -> Iterator[tuple[Sheet, str]]:
        for sheet in self._sheets(sources, bar):
            if sheet.sha256 in store.done:
                self._count("already labelled")
            elif sheet.blocks > self.arguments.max_blocks:
                self._fail(sheet.name, f"{sheet.blocks:,} blocks, over --max-blocks {self.arguments.max_blocks:,}")
            else:
                yield sheet, question(sheet, listing(sheet.page, self.arguments.max_chars))
                continue
            bar.update()

    # ------------------------------------------------------------------ outcomes
    def _bar(self, total: int) -> tqdm[Any]:
        return tqdm(total=total, unit="page", disable=total < 2 or not sys.stderr.isatty(), file=sys.stderr)

    def _count(self, what: str, n: int = 1) -> None:
        if n:
            self.counts[what] = self.counts.get(what, 0) + n

    def _fail(self, name: str, reason: str) -> None:
        self.failed.append(name or reason.partition(": ")[0])
        say(f"{name}: {reason}" if name else reason)

    def summarise(self) -> None:
        """Print the counts of all outcomes, if there are any."""
        parts = [f"{n} {what}" for what, n in self.counts.items()]
        if self.failed:
            more = ", ..." if len(self.failed) > 10 else ""
            parts.append(f"{len(self.failed)} failed ({', '.join(self.failed[:10])}{more})")
        if parts:
            say(", ".join(parts))


def _open(source: Source, url: str | None) -> Sheet | str:
    """Return the sheet of a source, or the reason why it has none."""
    try:
        document = read_source(source, READ_FACTOR * Config().limits.bytes)
        return pages.sheet(replace(document, url=url) if url else document, source.name, source.id)
    except PageError as error:
        return f"{error.reason}: {error}"
    except Exception as error:  # A bad page must not stop the others.
        return why(error)


def label(endpoint: Endpoint, question: str, n: int) -> list[int]:
    """Return the ids that a model labels as main. If its answer is invalid, it is told why and asked once more.

    Raise AnswerError if the second answer is invalid too, and EndpointError if the endpoint does not answer.
    """
    try:
        return read_answer(endpoint.complete(messages(question)), n)
    except AnswerError as error:
        return read_answer(endpoint.complete(messages(question, error)), n)


def _once(path: Path, records: list[Record]) -> dict[str, Record]:
    """Return the records by page. Raise StoreError if a page has two."""
    found: dict[str, Record] = {}
    for record in records:
        if record.sha256 in found:
            raise StoreError(f"{path}: {record.id} is labelled twice; delete one of its lines")
        found[record.sha256] = record
    return found


def _stem(identity: str) -> str:
    return identity.rpartition("-")[0]


def _whole(least: int) -> Any:
    def check(value: str) -> int:
        if value.isdecimal() and int(value) >= least:
            return int(value)
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least} (got {value!r})")

    return check


def _share(value: str) -> float:
    try:
        if 0 <= (number := float(value)) <= 1:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number from 0 to 1 (got {value!r})")
