"""``scrapy-dripper corpus sample`` and ``tokens``: choose pages for annotation, and measure the lengths of pages."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lxml.html import HtmlElement
from tqdm import tqdm

from scrapy_dripper.characters import printable, to_json
from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, WARC, find_sources, read_source
from scrapy_dripper.cli.options import add_command, add_options, configured, count
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import Document
from scrapy_dripper.engines.qwen3.profile import HTML, PROFILES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.learning.metrics import aligned
from scrapy_dripper.output.chunks import counter
from scrapy_dripper.page import PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper.paths import matches
from scrapy_dripper.rules import host_of
from scrapy_dripper_lab.annotation.prompt import TEMPLATE
from scrapy_dripper_lab.corpus.cost import Tokens, contexts, lengths, savings, tokens_of
from scrapy_dripper_lab.extras import extra

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class PageInputs:
    """The files and the pages of the inputs, which can be read several times. An input that cannot be read is named
    only once.
    """

    def __init__(self, names: Sequence[str], max_bytes: int) -> None:
        self._limit = READ_FACTOR * max_bytes
        self._named: set[str] = set()
        self._archives: list[Path] = []
        others = []
        for name in names:
            found = matches(name)
            if not found:
                raise UsageError(f"{name}: not found")
            for path in found:
                files = sorted(Path(path).rglob("*")) if os.path.isdir(path) else [Path(path)]
                archives = [file for file in files if file.name.lower().endswith(WARC) and file.is_file()]
                self._archives += archives
                others += [] if archives else [path]
        self._sources = find_sources(others, self._fail)
        if not self._archives and not self._sources:
            raise UsageError(f"no WARC and no HTML file in {' '.join(names)}")

    def __iter__(self) -> Iterator[tuple[str, Document]]:
        for source in self._sources:
            try:
                document = read_source(source, self._limit)
            except (OSError, ValueError) as error:  # noqa: PERF203
                self._fail(source.name, why(error))
            else:
                yield source.name, document
        for archive in map(str, self._archives):
            for document in self._pages(archive):
                yield archive, document

    def _pages(self, name: str) -> Iterator[Document]:
        """Yield the pages of an archive."""
        from scrapy_dripper.corpus.records import UNREADABLE, charset, pages

        lost: Counter[str] = Counter()
        try:
            with open(name, "rb") as stream:
                for _, page in pages(stream, self._limit, lambda reason: lost.update([reason]), name):
                    yield Document(page.body, page.url, charset(page))
        except OSError as error:
            self._fail(name, why(error))
        if listed := ", ".join(f"{reason} {lost[reason]:,}" for reason in UNREADABLE if lost[reason]):
            self._fail(name, f"records that cannot be read: {listed}")

    @property
    def failed(self) -> bool:
        """True if an input, or a part of it, could not be read."""
        return bool(self._named)

    def only(self, numbers: Collection[int]) -> Iterator[tuple[int, tuple[str, Document]]]:
        """Yield the pages with these numbers."""
        return ((number, page) for number, page in enumerate(self) if number in numbers)

    def _fail(self, name: str, reason: str) -> None:
        if name not in self._named:
            self._named.add(name)
            say(f"{name}: {reason}")


SAMPLE_LIST = "sample.jsonl"
BATCH = 16
MOST_IDENTIFIED = 10_000
"""Maximum number of characters of a text from which its language is identified."""
SAMPLE_EXAMPLES = """\
examples:
  scrapy-dripper corpus sample 'shards/*.warc.gz' -n 300 -o pages/
  scrapy-dripper corpus sample html/ -n 300 -o pages/ --languages en=47.5,zh=47.5,other=5
  scrapy-dripper inspect pages/ -o looks/                               then label them

The pages of each host are clustered by their layout, and one page of each cluster is a candidate. Candidates without
main content are left out. The languages in the sample have the shares of --languages or, by default, those that they
have among the candidates. Within a language, all page types get the same number of pages, as long as there are enough.
The inputs are read three times.

The pages are written to DIR, with a line about each in DIR/sample.jsonl.

exit codes: 0 written, 1 an input or a part of it could not be read, 2 wrong usage or an output that cannot be written,
130 Ctrl-C
"""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What is known about a candidate."""

    number: int
    """Its position among the pages of the inputs."""
    cluster: int
    """Number of pages in its cluster."""
    host: str
    language: str
    page_type: str


def add_sample(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    sample = add_command(
        commands, "sample", _sample, "choose pages for annotation, by layout, language and page type", SAMPLE_EXAMPLES
    )
    sample.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="a WARC or HTML file, a folder of them, or a glob; no URLs"
    )
    sample.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="a new folder for the pages")
    sample.add_argument("-n", "--pages", type=count, default=300, metavar="N", help="pages to choose (default: 300)")
    sample.add_argument(
        "--languages",
        type=_weights,
        metavar="SAMPLE_LIST",
        help="shares of languages, such as en=60,de=20,other=20, or 'equal'; default: those of the candidates",
    )
    add_options(sample, ("engine", "model", "limits"))


def _sample(arguments: argparse.Namespace) -> int:
    """Choose the pages, write them, and return the exit code."""
    with extra("sample"):
        import py3langid  # noqa: F401

        from scrapy_dripper_lab.corpus.sampling import balanced, layout, representatives
    config = configured(arguments)
    if arguments.output.exists() and any(arguments.output.iterdir()):
        raise UsageError(f"{arguments.output} is not empty: name a new folder")
    inputs, began = PageInputs(arguments.inputs, config.limits.bytes), time.monotonic()
    hosts: list[str] = []
    layouts: list[csr_matrix] = []
    numbers: list[int] = []
    for number, (name, document) in enumerate(tqdm(inputs, desc="layouts", unit="page", disable=None)):
        with suppress(PageError):
            root = parse(_text(document))
            layouts.append(layout(root))
            hosts.append(host_of(document.url or declared_url(root)) or str(Path(name).parent))
            numbers.append(number)
    sizes = {numbers[page]: alike for page, alike in representatives(hosts, layouts).items()}
    host_by_number = dict(zip(numbers, hosts, strict=True))
    candidates = [one for one in _described(inputs, sizes, host_by_number, config) if one.page_type]
    languages = [one.language for one in candidates]
    shares = Counter(languages) if arguments.languages is None else arguments.languages or None
    chosen = balanced(
        languages,
        [one.page_type for one in candidates],
        [one.host for one in candidates],
        arguments.pages,
        shares,
    )
    sample = [candidates[index] for index in chosen]
    _write(arguments.output, inputs, sample)
    print(_table(sample))
    say(
        f"{len(hosts):,} pages, {len(sizes):,} layouts, {len(candidates):,} candidates with main content, "
        f"{len(sample):,} chosen in {tqdm.format_interval(time.monotonic() - began)}: {arguments.output / SAMPLE_LIST}"
    )
    return 1 if inputs.failed else 0


def _text(document: Document) -> str:
    html = document.html
    return html if isinstance(html, str) else decode_html(bytes(html), document.charset)


def _described(
    inputs: PageInputs, sizes: Mapping[int, int], hosts: Mapping[int, str], config: Config
) -> Iterator[_Candidate]:
    """Extract the candidates, and yield them with their languages and page types. The page type is empty if there is no
    main content.
    """
    from py3langid import classify

    with closing(Extractor(config)) as extractor:
        pages = iter(tqdm(inputs.only(sizes), desc="candidates", unit="page", total=len(sizes), disable=None))
        while batch := list(islice(pages, BATCH)):
            found = extractor.extract([document for _, (_, document) in batch])
            for (number, _), one in zip(batch, found, strict=True):
                kind = (one.page_type or "other") if one.text and one.text.strip() else ""
                language = str(classify((one.text or "")[:MOST_IDENTIFIED])[0])
                yield _Candidate(number, sizes[number], hosts[number], language, kind)


def _write(folder: Path, inputs: PageInputs, sample: Sequence[_Candidate]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = {one.number: one for one in sample}
    with (folder / SAMPLE_LIST).open("w", encoding="utf-8", newline="\n") as lines:
        for at, (number, (file, document)) in enumerate(inputs.only(known), 1):
            name, html = f"{at:05d}", document.html
            if isinstance(html, str):
                html = html.encode("utf-8", "surrogatepass")
            (folder / f"{name}.html").write_bytes(bytes(html))
            one = known[number]
            line = {
                "id": name,
                "url": document.url or None,
                "charset": document.charset,
                "file": file,
                "host": one.host,
                "language": one.language,
                "page_type": one.page_type,
                "alike": one.cluster,
            }
            lines.write(to_json(line) + "\n")


def _table(sample: Sequence[_Candidate]) -> str:
    """Return the number of pages by language and page type."""
    kinds = sorted({one.page_type for one in sample})
    counts = Counter((one.language, one.page_type) for one in sample)
    languages = Counter(one.language for one in sample).most_common()
    body = [[name, *(str(counts[name, kind]) for kind in kinds), str(total)] for name, total in languages]
    return aligned(["language", *kinds, "pages"], body)


def _weights(value: str) -> dict[str, float]:
    """Return the shares of languages; an empty dict if all languages get the same share."""
    if value == "equal":
        return {}
    try:
        found = {name.strip(): float(share) for name, _, share in (one.partition("=") for one in value.split(","))}
        if not all(found) or not all(0 < share < 1e9 for share in found.values()):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected languages with shares, such as en=60,other=40 (got {value!r})"
        ) from None
    return found


PROFILE = PROFILES["v1.0"]
"""The profile of the published weights."""
TOKENS_EXAMPLES = """\
examples:
  scrapy-dripper corpus tokens html/                                      in characters
  scrapy-dripper corpus tokens 'shards/*.warc.gz' --tokenizer qwen3/      in tokens of the model in that folder

The second table estimates the cost of a language model for each page, as the Dripper paper does in its table 1:
L d (N^2 + M N + M^2) + L d^2 (N + M) FLOPs for N input and M output tokens, L layers and a width of d.

exit codes: 0 measured, 1 an input or a part of it could not be read, 2 wrong usage, 130 Ctrl-C
"""


def add_tokens(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    tokens = add_command(
        commands,
        "tokens",
        _tokens,
        "measure how much shorter simplified HTML, Main-HTML and Markdown are",
        TOKENS_EXAMPLES,
    )
    tokens.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="a WARC or HTML file, a folder of them, or a glob; no URLs"
    )
    tokens.add_argument(
        "--tokenizer", metavar="FILE", help="a tokenizer.json, or a folder with one; default: count characters"
    )
    tokens.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    add_options(tokens, ("engine", "model", "limits"))


def _tokens(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, write the requested file, and return the exit code."""
    config = replace(configured(arguments), fallback="none")
    unit = "characters"
    length: Callable[[str], int] = len
    if arguments.tokenizer:
        unit = f"tokens of {Path(arguments.tokenizer).name}"
        try:
            length = counter(arguments.tokenizer)
        except ConfigError as error:
            raise UsageError(f"--tokenizer: {error}") from None
    inputs = PageInputs(arguments.inputs, config.limits.bytes)
    pages = list(_measured(inputs, config, length))
    if not pages:
        raise UsageError("none of the pages could be labelled")
    tables = lengths(pages, unit), savings(pages), contexts(pages, length(TEMPLATE.replace(HTML, "")), unit)
    print(printable("\n\n".join(table.text() for table in tables)))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        names = ("lengths", "savings", "contexts")
        figures = {"unit": unit, **{name: table.records() for name, table in zip(names, tables, strict=True)}}
        arguments.json.write_text(to_json(figures, 1) + "\n", encoding="utf-8", errors="replace")
    return 1 if inputs.failed else 0


def _measured(inputs: PageInputs, config: Config, length: Callable[[str], int]) -> Iterator[Tokens]:
    """Yield the lengths of each page that the engine labels. At the end, print how many pages it did not label."""
    left_out = 0
    with closing(Extractor(config)) as extractor:
        pages = iter(tqdm(inputs, desc="tokens", unit="page", disable=None))
        while batch := [document for _, document in islice(pages, BATCH)]:
            for document, extraction in zip(batch, extractor.extract(batch), strict=True):
                try:
                    page = read(document, config, PROFILE)
                except PageError:
                    left_out += 1
                    continue
                if extraction.is_empty:
                    left_out += 1
                    continue
                yield tokens_of(_text(document), page, extraction, length)
    if left_out:
        say(f"{left_out:,} pages without main content are left out")


def declared_url(root: HtmlElement) -> str:
    """Return the URL that a page declares as its own, or an empty string."""
    links = (n.get("href", "") for n in root.iter("link") if "canonical" in (n.get("rel") or "").lower().split())
    metas = (n.get("content", "") for n in root.iter("meta") if n.get("property") == "og:url")
    addresses = (address.strip() for address in (*links, *metas))
    return next((str(one) for one in addresses if one.lower().startswith(("http://", "https://"))), "")
