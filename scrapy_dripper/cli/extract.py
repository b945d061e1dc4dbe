"""``scrapy-dripper extract INPUT...``, a thin wrapper around :class:`~scrapy_dripper.extractor.Extractor`."""

from __future__ import annotations

import argparse
import errno
import io
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from scrapy_dripper.characters import on_one_line, to_json
from scrapy_dripper.cli.console import Outcomes, UsageError, say, why
from scrapy_dripper.cli.inputs import Source, file_name, find_sources, read_page, refuse_inputs
from scrapy_dripper.cli.options import add_command, add_options, add_url, configured, count, seconds
from scrapy_dripper.config import OUTPUT_FIELDS, Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.egress import SECONDS
from scrapy_dripper.paths import replace_file
from scrapy_dripper.rules import EVERY

EXTENSIONS = {"markdown": ".md", "html": ".html", "text": ".txt", "json": ".json", "jsonl": ".jsonl"}
TEXTS = ("url", "title", "text", "markdown", "main_html")
"""Keys of the JSON that are attributes of the extraction."""
META = (
    *("source", "fallback_reason", "error", "limit", "confidence", "blocks", "main_blocks", "truncated"),
    *("page_type", "page_type_probability", "quality", "content_hash", "simhash", "failed"),
)
"""Keys of the JSON that are keys of :meth:`Extraction.meta`."""
MORE = {name: one for name, one in OUTPUT_FIELDS.items() if one.flag}
"""Optional keys of the JSON, which flags ask for."""
MINERU = "mineru"

EXAMPLES = """\
examples:
  scrapy-dripper extract page.html                          Markdown on standard output
  scrapy-dripper extract https://example.com/ -f text       a page from the web, as plain text
  curl -s URL | scrapy-dripper extract - --url URL          a page from a pipe; links become absolute
  scrapy-dripper extract pages/ -o markdown/                one .md file per page of a folder
  scrapy-dripper extract pages/ --url https://example.com/  pages/a/b.html is https://example.com/a/b.html
  scrapy-dripper extract --urls pages/list.csv              the files that pages/list.csv names, with their URLs
  scrapy-dripper extract 'pages/**/*.html.gz' -f jsonl      one JSON object a line
  scrapy-dripper extract pages/ -o text/ -f text --jobs 4   in four processes

Inputs without a result (unreadable, empty, not HTML, no main content found by model or fallback) are named on standard
error with the reason. The other inputs are not affected.

--rules, --sites and what a --model has learnt are chosen by the URL of a page. A file has that of --urls or --url, or
the one that the page declares: of MHTML, of a comment "saved from url", of <link rel="canonical"> or of og:url. A list
for --urls begins like this, with names relative to its folder:

  file,url                                  or        {"file": "a.html", "url": "https://example.com/a"}
  a.html,https://example.com/a                        {"file": "b/c.html", "url": "https://example.com/c"}

exit codes: 0 every input gave a result, 1 at least one gave none, 2 wrong usage, a model that cannot be loaded or an
output that cannot be written, 130 Ctrl-C (finished pages are written and counted), 141 the reader of the output has
closed it
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    extract = add_command(commands, "extract", run, "extract the main content of files, folders or URLs", EXAMPLES)
    extract.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="a file, a folder (searched for .html, .htm, .xhtml, .mhtml and .mht), a glob, a URL, or - for "
        "standard input; files may be gzipped",
    )
    extract.add_argument("-f", "--format", choices=list(EXTENSIONS), default="markdown", help="default: markdown")
    extract.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        help="write there instead of standard output: one file per page if it is a folder or ends in a slash",
    )
    for name, one in MORE.items():
        extract.add_argument(one.flag, action="store_true", dest=f"{name}_field", help=f"add to JSON {one.what}")
    extract.add_argument(
        "--content-schema",
        choices=("dripper", "mineru"),
        default="dripper",
        help="the schema of the content list: our own (default), or that of MinerU's tools for web pages and PDFs; "
        "the latter includes --content",
    )
    add_url(extract)
    extract.add_argument(
        "--urls",
        metavar="FILE",
        help="a list of files and their URLs: CSV with the columns file and url, or JSON Lines with these keys; "
        "without an INPUT, these files are extracted",
    )
    extract.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="number of worker processes: faster for many pages, and a page that hangs or crashes affects no other "
        "(default: one, for large pages and pages with rules)",
    )
    extract.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        metavar="SECONDS",
        help="deadline for a page from the web, with its redirects (default: 60)",
    )
    add_options(extract)


Asked = Mapping[str, Callable[[Extraction], Any]]
"""Optional keys of the JSON that were asked for, with their values."""


def _asked(arguments: argparse.Namespace) -> Asked:
    mineru = arguments.content_schema == MINERU
    asked = {
        name: one.value
        for name, one in MORE.items()
        if getattr(arguments, f"{name}_field") or (mineru and name == "content")
    }
    if mineru:
        from scrapy_dripper.output.content_json import from_json, to_mineru  # Slow to import

        asked["content"] = lambda one: to_mineru(from_json(one.content or []))
    return asked


def _result(source: Source, extraction: Extraction, form: str, more: Asked, indent: int | None) -> str:
    """Return an extraction in a format. JSON has a record of each page, and the others are empty without content."""
    if form not in ("json", "jsonl"):
        content = {"markdown": extraction.markdown, "html": extraction.main_html, "text": extraction.text}[form]
        return (content or "").strip("\n")
    meta = extraction.meta()
    record = {"id": source.id, "input": source.name} | {name: getattr(extraction, name) for name in TEXTS}
    record |= {key: meta[key] for key in META}
    return to_json(record | {name: value(extraction) for name, value in more.items()}, indent)


_OF_THIS_FILE = (errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
"""Errors that affect only one file, for example because a folder has its name. A full disk affects all files."""


class _Folder:
    """Writes one file per page."""

    def __init__(self, folder: Path, form: str, sources: Sequence[Source]) -> None:
        self.folder, self.extension = folder, EXTENSIONS[form]
        refuse_inputs((self._path(source) for source in sources), sources)
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, source: Source) -> Path:
        return self.folder / file_name(source.id, self.extension)

    def write(self, source: Source, text: str) -> str | None:
        """Write a result. Return why it cannot be written, if others can be; otherwise, raise OSError."""
        path = self._path(source)
        try:
            replace_file(path, text + "\n")
        except OSError as error:
            if error.errno not in _OF_THIS_FILE or not os.access(self.folder, os.W_OK):
                raise
            return f"cannot write {path}: {why(error)}"
        return None


class _Stream:
    """Writes all pages to one stream: a JSON array, JSON Lines, or texts, with headings if there are several."""

    def __init__(self, stream: TextIO, form: str, many: bool) -> None:
        self.stream, self.form, self.many = stream, form, many
        self.between = ""
        if form == "json":
            stream.write("[")
            self.between = "\n"

    def write(self, source: Source, text: str) -> None:
        """Write a result. Raise OSError if no other can be written either."""
        self.stream.write(self.between + self._heading(source) + text + ("" if self.form == "json" else "\n"))
        self.between = {"json": ",\n", "jsonl": ""}.get(self.form, "\n")
        self.stream.flush()

    def _heading(self, source: Source) -> str:
        if not self.many or self.form in ("json", "jsonl"):
            return ""
        if self.form == "text":
            return f"==> {on_one_line(source.name)} <==\n"
        return f"<!-- {on_one_line(source.name).replace('--', '-&#45;')} -->\n\n"

    def close(self) -> None:
        if self.form == "json":
            self.stream.write("\n]\n")


def _output(arguments: argparse.Namespace, sources: Sequence[Source], stack: ExitStack) -> _Folder | _Stream:
    target = arguments.output
    if target is not None and (os.path.isdir(target) or target.endswith(("/", os.sep))):
        return _Folder(Path(target), arguments.format, sources)
    if target is not None:
        refuse_inputs([Path(target)], sources)
        stream = open(target, "w", encoding="utf-8", errors="replace", newline="\n")  # noqa: SIM115 (closed by the stack)
    elif sys.stdout is None:  # closed by the shell: `>&-`
        raise UsageError("standard output is closed; choose an --output")
    elif isinstance(sys.stdout, io.TextIOWrapper):  # UTF-8 whatever the locale, like the files.
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    many = len(sources) > 1 or len(arguments.inputs) > 1
    output = _Stream(sys.stdout if target is None else stack.enter_context(stream), arguments.format, many)
    stack.callback(output.close)
    return output


def run(arguments: argparse.Namespace) -> int:
    """Extract the main content of all inputs and return the exit code."""
    # Slow to import, and not needed for --help.
    from scrapy_dripper.config import check_methods
    from scrapy_dripper.workers.process import StartError

    outcomes = Outcomes()
    config = configured(arguments)
    fields: dict[str, Any] = {f"{name}_field": name for name in _asked(arguments)}
    config = replace(config, **fields)
    check_methods(config)
    if not arguments.inputs and not arguments.urls:
        raise UsageError("the following arguments are required: INPUT, or --urls FILE")
    sources = find_sources(arguments.inputs, outcomes.fail, arguments.url, arguments.urls)
    if not sources:
        return 1
    # Trafilatura reports on documents that this command reports on itself.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    without_url: list[str] = []
    try:
        written = _extract(arguments, config, sources, outcomes, without_url)
    except StartError as error:
        raise UsageError(f"no worker process can be started ({error}); leave --jobs out to work without one") from None
    if without_url and (options := _by_url(config)):
        pages = f"{len(without_url):,} of {len(sources):,} pages, whose URL is unknown (such as {without_url[0]})"
        say(f"{' and '.join(options)} cannot apply to {pages}: --url or --urls gives it")
    if arguments.output and len(sources) > 1 and os.path.isfile(arguments.output) and "." not in arguments.output:
        say(f"all pages are in the file {arguments.output}; -o {arguments.output}/ writes a file for each of them")
    if outcomes.failed and (every := written + len(outcomes.failed)) > 1:
        say(f"{len(outcomes.failed):,} of {every:,} inputs gave no result")
    return 1 if outcomes.failed else 0


def _extract(
    arguments: argparse.Namespace, config: Config, sources: Sequence[Source], outcomes: Outcomes, without_url: list[str]
) -> int:
    """Extract the pages, add the names of those without a URL to a list, and return how many gave a result."""
    from scrapy_dripper.corpus.processes import LINE_SECONDS, extracting

    more = _asked(arguments)
    jobs = min(arguments.jobs, len(sources)) if arguments.jobs else None
    size = min(config.batch_size, math.ceil(len(sources) / (jobs or 1)))  # so that each process gets some

    def batches() -> Iterator[tuple[list[Source], list[Document]]]:
        for start in range(0, len(sources), size):
            read = [(source, document) for source in sources[start : start + size] if (document := read_one(source))]
            if read:
                yield [source for source, _ in read], [document for _, document in read]

    def read_one(source: Source) -> Document | None:
        try:
            document = read_page(source, config, arguments.timeout)
        except (OSError, ValueError) as error:
            advice = "; --timeout gives it more" if isinstance(error, TimeoutError) else ""
            outcomes.fail(source.name, why(error) + advice)
            bar.update()
            return None
        without_url.extend([] if document.url else [source.name])
        return document

    with ExitStack() as stack:
        extract = stack.enter_context(extracting(config, jobs or 0))
        output = _output(arguments, sources, stack)
        indent = 2 if arguments.format == "json" and isinstance(output, _Folder) else None
        on_screen = arguments.output is None and sys.stdout.isatty()
        silent = len(sources) == 1 or on_screen or not sys.stderr.isatty()
        bar = stack.enter_context(tqdm(total=len(sources), unit="page", disable=silent, file=sys.stderr))
        written, said = 0, time.monotonic()
        try:
            for answered in extract(batches()):
                for source, extraction in zip(*answered, strict=True):
                    text = _result(source, extraction, arguments.format, more, indent)
                    problem = (output.write(source, text) if text else None) or _nothing(extraction)
                    if problem:
                        outcomes.fail(source.name, problem)
                    else:
                        written += 1
                    bar.update()
                if len(sources) > 1 and not sys.stderr.isatty() and time.monotonic() - said >= LINE_SECONDS:
                    say(f"{written + len(outcomes.failed):,} of {len(sources):,} inputs")
                    said = time.monotonic()
        except KeyboardInterrupt:
            if len(sources) > 1:
                none = len(outcomes.failed)
                say(f"stopped: of {len(sources):,} inputs, {written:,} gave a result and {none:,} gave none")
            raise
    return written


def _nothing(extraction: Extraction) -> str | None:
    """Return why a page has no result; None if it has one."""
    if extraction.text or extraction.main_html:
        return None
    reason = str(extraction.fallback_reason or extraction.source)
    return "nothing extracted: " + ", ".join(filter(None, [reason, extraction.error]))


def _by_url(config: Config) -> list[str]:
    """Return the flags whose effect on a page depends on its URL."""
    from scrapy_dripper.engines.tagger.engine import Manifest
    from scrapy_dripper.engines.tagger.learnt import LEARNT

    is_own = config.engine == "tagger" and config.model is not None
    needs = {
        "--rules": any(rule.pattern != EVERY for rule in config.rules or ()),
        "--sites": config.sites != "off",
        "what --model has learnt": is_own and LEARNT in Manifest.read(Path(str(config.model))).weights_sha256,
    }
    return [flag for flag, is_needed in needs.items() if is_needed]
