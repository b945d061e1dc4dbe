"""Measure how much the template that a page shares with its linked pages helps: site-level extraction as in Alarte et
al.

Pages that link to each other share a template. It consists of the nodes of a page that have an equal node, in the same
place, on each of the other pages. The rest is the content. Alarte and Silva (2020) compare such methods with their
page-level method, and name the papers that describe them. Two methods are measured: all of a page except its template,
and the tagger's main blocks except the template.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import numpy as np
import numpy.typing as npt
from report import heading, publish, table
from sites import DATA, SEED, hosts, loaded, models
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.bootstrap import mean_interval, paired_interval
from scrapy_dripper.dataset.pages import DataError, Sample
from scrapy_dripper.dataset.prf import PRF
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.evaluation.measure import scored
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback.chosen import blocks_in
from scrapy_dripper.output import write
from scrapy_dripper.page import Page, PageError, read

OTHERS = (1, 3, 8)
"""Numbers of linked pages from which a template is made."""
OUTPUT = Path(__file__).parent / "results" / "linked_templates.txt"
METHODS = ("the page", "less its template", "tagger", "less the template")

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Columns:
    """The nodes of a page, in document order."""

    page: Page
    tag: list[str]
    signature: list[tuple[str, str]]
    """Tag, and class and id attributes."""
    text: list[str]
    """The texts that are children of a node, without white space at their ends."""
    whole: list[int]
    """A hash of the subtree."""
    children: list[list[int]]


def columns_of(page: Page) -> Columns:
    """Return the columns of a page. Takes linear time."""
    tree = page.tree
    m = len(tree.nodes)
    tag = [str(node.tag) for node in tree.nodes]
    signature = list(zip(tag, tree.names, strict=True))
    pieces: list[list[str]] = [[(node.text or "").strip()] for node in tree.nodes]
    children: list[list[int]] = [[] for _ in range(m)]
    for i in range(1, m):
        children[tree.parent[i]].append(i)
        pieces[tree.parent[i]].append((tree.nodes[i].tail or "").strip())
    text = ["\0".join(some) for some in pieces]
    whole = [0] * m
    for i in range(m - 1, -1, -1):
        whole[i] = hash((signature[i], text[i], *(whole[child] for child in children[i])))
    return Columns(page, tag, signature, text, whole, children)


def mapped(one: Columns, other: Columns) -> Bools:
    """Return which nodes of a page have an equal node on another, of the same tag and text, with matched parents.

    Equal subtrees are matched first, then nodes with the same class and id, then those of the same tag, in order. Takes
    linear time.
    """
    equal = np.zeros(len(one.signature), dtype=np.bool_)
    pairs = [(0, 0)]
    while pairs:
        i, j = pairs.pop()
        equal[i] = one.text[i] == other.text[j]
        left = one.children[i]
        free: list[int] = other.children[j]
        for column in ("whole", "signature", "tag"):
            waiting: dict[object, deque[int]] = defaultdict(deque)
            for child in free:
                waiting[getattr(other, column)[child]].append(child)
            rest, taken = [], set()
            for child in left:
                queue = waiting.get(getattr(one, column)[child])
                if queue:
                    match = queue.popleft()
                    taken.add(match)
                    pairs.append((child, match))
                else:
                    rest.append(child)
            left, free = rest, [child for child in free if child not in taken]
    return equal


def template(one: Columns, others: Sequence[Columns]) -> Bools:
    """Return which blocks of a page belong to the template that it shares with all others, shape (n,)."""
    return blocks_in(one.page, np.all([mapped(one, other) for other in others], axis=0))


def addresses(page: Page) -> set[str]:
    """Return the URLs that a page links to."""
    found = set()
    for node in page.tree.nodes:
        if node.tag == "a" and node.get("href"):
            try:
                found.add(address(urljoin(page.base_url, node.get("href"))))
            except ValueError:
                continue
    return found


def address(url: str) -> str:
    """Return a URL in a form that is mostly the same for different URLs of the same page."""
    return urldefrag(url)[0].partition("?")[0].removesuffix("index.html").rstrip("/").partition("://")[2]


def links_of(samples: Sequence[Sample], pages: Mapping[str, Columns]) -> Mapping[str, set[str]]:
    """Return, for each page of a host, the ids of the pages that it links to."""
    known = {address(sample.url): sample.id for sample in samples if sample.id in pages}
    return {i: {known[a] for a in addresses(columns.page) if a in known} for i, columns in pages.items()}


def linked(links: Mapping[str, set[str]], one: str, n: int) -> list[str]:
    """Return at most n pages that a page links to, all of which link to it and to each other."""
    chosen: list[str] = []
    for other in sorted(links[one] - {one}):
        if all(other in links[i] and i in links[other] for i in (one, *chosen)):
            chosen.append(other)
        if len(chosen) == n:
            break
    return chosen


def measured(samples: Sequence[Sample], extractor: Extractor, most: int) -> Iterator[tuple[int, list[PRF]]]:
    """Yield the number of linked pages, and the scores of all methods, for pages of a host."""
    pages = {}
    for sample in samples:
        with suppress(PageError):
            pages[sample.id] = columns_of(read(Document(sample.path.read_bytes(), sample.url), Config()))
    links = links_of(samples, pages)
    some = [sample for sample in samples if sample.measure and sample.id in pages]
    for sample in random.Random(f"{SEED} {samples[0].host}").sample(some, min(most, len(some))):
        html = sample.path.read_bytes()
        (found,) = extractor.extract([Document(html, sample.url)])
        page = pages[sample.id].page
        if len(found.labels) != len(page.blocks):
            continue
        main = np.array(found.labels, dtype=np.bool_)
        for n in OTHERS:
            others = linked(links, sample.id, n)
            if len(others) < n:
                continue
            of_template = template(pages[sample.id], [pages[i] for i in others])
            masks = np.ones(len(main), dtype=np.bool_), ~of_template, main, main & ~of_template
            texts = [write(page, mask, Config()).text if mask.any() else "" for mask in masks]
            yield n, [scored(sample, text, html).neutral for text in texts]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "set", nargs="?", metavar="FOLDER", default=str(DATA / "sites"), help="annotated pages of sites"
    )
    parser.add_argument("--model", type=Path, default=bundled(), help="folder of a tagger (the bundled one)")
    parser.add_argument("--folds", type=Path, metavar="FOLDER", help="models that were not trained on a page's host")
    parser.add_argument("--pages", type=int, default=6, metavar="N", help="pages of each site (%(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    options = parser.parse_args()
    try:
        samples = loaded([options.set])
        model_of = models(options.folds, options.model, samples)
    except (DataError, OSError, ValueError) as error:
        parser.error(str(error))
    rows: dict[int, list[list[PRF]]] = {n: [] for n in OTHERS}
    extractors: dict[Path, Extractor] = {}
    for group in tqdm(list(hosts(samples)), unit="site", disable=None):
        model = model_of[group[0].id]
        if model not in extractors:
            extractors[model] = Extractor(Config(model=str(model), processes=0, threads=1))
        for n, scores in measured(group, extractors[model], options.pages):
            rows[n].append(scores)
    body = []
    for n, pages in rows.items():
        for k, name in enumerate(METHODS if pages else ()):
            f1 = mean_interval([scores[k].f1 for scores in pages])
            less = paired_interval([scores[k].f1 - scores[k - k % 2].f1 for scores in pages])
            body.append(
                [
                    f"{n}: {name}",
                    str(len(pages)),
                    f"{f1.mean:.4f}",
                    f"{f1.low:.3f} to {f1.high:.3f}",
                    *(
                        f"{np.mean([getattr(scores[k], part) for scores in pages]):.4f}"
                        for part in ("precision", "recall")
                    ),
                    *(("", "") if k % 2 == 0 else (f"{less.mean:+.4f}", f"{less.low:+.4f} to {less.high:+.4f}")),
                ]
            )
    head = heading("linked_templates.py", ["scrapy-dripper", "lxml", "numpy"])
    names = ["linked pages", "pages", "F1", "95 %", "P", "R", "difference", "95 %"]
    publish(f"{head}\n\n{table(names, body)}", options.output)


if __name__ == "__main__":
    main()
