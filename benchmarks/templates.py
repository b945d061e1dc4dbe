"""Measure which pages templates answer in a crawl or in archives, and how well, compared with the model alone.

The pages of each host are processed one after the other, in a fixed random order including pages without ground truth
(indexes, archives). The engine labels each page once. With templates, its labels are only used if no template answers.
So results only differ on pages that a template answers.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from common import SITES, options, publish, table
from scrapy.http import Response
from tqdm import tqdm
from w3lib.url import safe_url_string

from scrapy_dripper.cli import main as command
from scrapy_dripper.config import Config
from scrapy_dripper.corpus.records import response_record
from scrapy_dripper.data import Document
from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import TaggerModel, bundled
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.learning.metrics import mean_interval
from scrapy_dripper.page import Page
from scrapy_dripper.sites import Hosts
from scrapy_dripper.sites.templates import Outcome, Templates
from scrapy_dripper_lab.evaluation.measure import scored
from scrapy_dripper_lab.sets import PAGES, AnnotatedPage, DataError, SetChoice, json_lines, load_set

SEED = 20261123
MIN_PAGES = 20
"""Minimum number of pages with ground truth of a site that counts as large."""
WORSE = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """A page with and without templates."""

    site: str
    outcome: str
    alone: float
    """Word F1 of the model alone."""
    found: float
    """Word F1 with templates."""


class Once(Tagger):
    """Labels a page, and keeps the answer."""

    answer: Labels | EngineError | None = None

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the only page of a call."""
        if self.answer is None:
            (self.answer,) = super().label(pages)
        return [self.answer]


class Crawl:
    """Reads the pages of hosts one after the other, by a model alone and with templates. Labels each page once."""

    def __init__(self) -> None:
        self._engine = Once(TaggerModel(bundled()))
        self._alone = Extractor(Config(processes=0), self._engine)

    def measured(self, pages: Sequence[AnnotatedPage]) -> Iterator[Row]:
        """Yield the scores of the pages of a host, in their order."""
        both = Extractor(Config(sites="templates", processes=0), self._engine, hosts=Hosts(templates=Templates()))
        for sample in pages:
            html = sample.path.read_bytes()
            self._engine.answer = None
            (found,) = both.extract([Document(html, sample.url)])
            if sample.measure and found.details.get("template") is not None:
                yield self._row(sample, html, found.details["template"], found.text)

    def in_archives(self, pages: Sequence[AnnotatedPage], count: int) -> Iterator[Row]:
        """Yield the scores of pages that are spread over archives, with rules that are learnt from them."""
        import pyarrow.parquet as pq  # of the extra [corpus]

        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            urls = [safe_url_string(sample.url) for sample in pages]
            for first in range(count):
                with gzip.open(folder / f"{first}.warc.gz", "wb") as file:
                    for sample, url in list(zip(pages, urls, strict=True))[first::count]:
                        page = Response(url, 200, {"Content-Type": "text/html"}, sample.path.read_bytes())
                        file.write(response_record(page, {}))
            command(["corpus", "templates", temporary, "-o", str(folder / "rules")])
            templates = ("--text", "text", "--templates", str(folder / "rules"))
            command(["corpus", "extract", temporary, "-o", str(folder / "out"), *templates])
            rows = [row for file in folder.glob("out/*.parquet") for row in pq.read_table(file).to_pylist()]
        found = {row["url"]: row for row in rows}
        for sample, url in zip(pages, urls, strict=True):
            if sample.measure:
                outcome = Outcome.ANSWERED if found[url]["source"] == "template" else Outcome.UNCOVERED
                self._engine.answer = None
                yield self._row(sample, sample.path.read_bytes(), outcome.value, found[url]["text"])

    def _row(self, sample: AnnotatedPage, html: bytes, outcome: str, text: str | None) -> Row:
        """Return the scores of a page, of which a template has given the text."""
        (alone,) = self._alone.extract([Document(html, sample.url)])
        before, after = (scored(sample, one or "", html).word.f1 for one in (alone.text, text))
        return Row(sample.host, outcome, before, after)


def report(rows: Sequence[Row]) -> str:
    """Return a table of all sites, and of those with many pages."""
    many = {site for site, n in Counter(row.site for row in rows).items() if n >= MIN_PAGES}
    large = [row for row in rows if row.site in many]
    lines = []
    for name, some in {"sites, all": rows, f"sites, {MIN_PAGES} pages or more": large}.items():
        answered = [row for row in some if row.outcome == Outcome.ANSWERED.value]
        if not answered:
            continue
        deltas = [row.found - row.alone for row in answered]
        change = mean_interval(deltas)
        lines.append(
            [
                name,
                str(len({row.site for row in some})),
                str(len(some)),
                f"{len(answered) / len(some):.3f}",
                f"{sum(row.alone for row in answered) / len(answered):.4f}",
                f"{sum(row.found for row in answered) / len(answered):.4f}",
                f"{change.mean:+.4f}",
                f"{change.low:+.4f} to {change.high:+.4f}",
                f"+{sum(delta > WORSE for delta in deltas)} -{sum(delta < -WORSE for delta in deltas)}",
                f"{min(deltas):+.3f}",
            ]
        )
    head = ["pages", "sites", "n", "answered", "F1 alone", "template", "difference", "95 %", "changed", "worst"]
    outcomes = Counter(row.outcome for row in rows)
    said = ", ".join(f"{name} {outcomes[name]}" for name in (one.value for one in Outcome))
    return f"{table(head, lines)}\n\nall pages by outcome: {said}"


def sites(folder: Path) -> Iterator[list[AnnotatedPage]]:
    """Yield the pages of each site that has more than one, in a fixed random order.

    Those without ground truth are among them, and only seen.
    """
    groups: dict[str, list[AnnotatedPage]] = defaultdict(list)
    known = {sample.id: sample for sample in load_set(SetChoice(folder)).samples}
    records = list(json_lines(folder / PAGES, dict, "a page"))
    for record in records:
        if record["id"] in known:
            groups[record["site"]].append(replace(known[record["id"]], host=record["site"]))
    for record in records:
        if record["kind"] == "other" and record["site"] in groups:
            path = folder / "html" / f"{record['id']}.html"
            like = groups[record["site"]][0]
            groups[record["site"]].append(replace(like, id=record["id"], url=record["url"], path=path, measure=False))
    for name, pages in sorted(groups.items()):
        if len(pages) > 1:
            pages.sort(key=lambda sample: sample.id)
            random.Random(f"{SEED} {name}").shuffle(pages)
            yield pages


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, default=SITES, help="folder of paired sites; default: .cache/sites")
    parser.add_argument("--archives", type=int, metavar="N", help="pages in N archives, instead of a crawl")
    arguments = parser.parse_args()
    try:
        pages = list(sites(arguments.data))
    except DataError as error:
        parser.error(str(error))
    crawl = Crawl()
    if arguments.archives:
        rows = list(crawl.in_archives([page for site in pages for page in site], arguments.archives))
    else:
        rows = [row for site in tqdm(pages, unit="site", disable=None) for row in crawl.measured(site)]
    note = (
        "answered: share of the pages with ground truth that a template labelled. What is to its right is of these:\n"
        "difference: word F1 with templates less that of the model alone. "
        f"changed: pages whose word F1 rises and falls by more than {WORSE}. worst: the greatest fall."
    )
    publish(arguments, ["scrapy-dripper", "lxml", "numpy", "onnxruntime"], note, report(rows))


if __name__ == "__main__":
    main()
