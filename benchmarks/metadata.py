"""Metadata of real pages: title, authors and date; ours and Trafilatura's, compared with annotated pages.

Every extractor gets each page as a parsed tree, and only its work on the tree is timed, because a crawl has parsed the
page already. A title or an author is exact if the words are the same, regardless of case and punctuation. A date is
exact if the day is the same.
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from common import options, publish, sample, table
from tqdm import tqdm
from trafilatura.metadata import extract_metadata
from trafilatura.utils import load_html

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.declared.metadata import metadata_of
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.sets import SetChoice, load_set

OURS, PEER, FAST = "scrapy-dripper", "Trafilatura", "Trafilatura, fast"
FIELDS = {"title": "title", "author": "author", "date": "publish_date"}
"""Names of ours, and those of the annotations."""

_words = re.compile(r"\w+").findall


@dataclass(slots=True)
class Score:
    """The results of one extractor: exact values, values that the truth lacks, and CPU seconds."""

    exact: Counter[str] = field(default_factory=Counter)
    extra: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


CONTESTANTS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any, str], object]]] = {
    OURS: (lambda html: parse(decode_html(html, None)), metadata_of),
    PEER: (load_html, extract_metadata),
    FAST: (load_html, partial(extract_metadata, extensive=False)),  # without the extensive search for dates
}
"""The extractors, each with the function that parses its tree. They share no tree, because Trafilatura changes it."""


def truth_of(page: Path) -> tuple[str, dict[str, str]]:
    """Return the URL of a page and its true values, which are empty strings if the truth has none."""
    path = page.parent.parent / "ground-truth" / f"{page.stem}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    truth = {name: record["ground_truth"].get(key) or "" for name, key in FIELDS.items()}
    return record["url"], truth | {"date": truth["date"][:10]}


def same(name: str, found: str, truth: str) -> bool:
    """Return True if a value is correct."""
    return found == truth if name == "date" else _words(found.lower()) == _words(truth.lower())


def measure(pages: list[Path], seed: int) -> tuple[dict[str, Score], Counter[str]]:
    """Return the score of every extractor, and the number of pages with a true value of each field."""
    scores = {name: Score() for name in CONTESTANTS}
    known: Counter[str] = Counter()
    order = random.Random(seed)
    for page in tqdm(pages, unit="page", leave=False):
        html = page.read_bytes()
        url, truth = truth_of(page)
        known.update(name for name in FIELDS if truth[name])
        for who in order.sample(list(CONTESTANTS), len(CONTESTANTS)):
            make, ask = CONTESTANTS[who]
            root = make(html)
            start = time.process_time()
            answer = ask(root, url)
            found = {name: getattr(answer, name) or "" for name in FIELDS}
            scores[who].seconds += time.process_time() - start
            for name in FIELDS:
                if truth[name]:
                    scores[who].exact[name] += same(name, found[name], truth[name])
                else:
                    scores[who].extra[name] += bool(found[name])
    return scores, known


def languages(folder: Path) -> str:
    """Return how many pages of a set declare no language, and how often the detected one is that of the annotation."""
    found = Counter[str]()
    with Extractor(Config(metadata_field="metadata")) as extractor:
        for page in load_set(SetChoice(folder)).samples:
            html = page.path.read_bytes()
            if page.language and metadata_of(parse(decode_html(html, None)), page.url).language is None:
                made = extractor.extract([Document(html, page.url)])[0].metadata
                language = made.language if made else None
                found["none" if language is None else "right" if language == page.language[:2] else "wrong"] += 1
    return (
        f"{found.total()} pages of {folder.name} declare no language. The detected language is right for "
        f"{found['right']} and wrong for {found['wrong']}; for {found['none']} there is none."
    )


def report(scores: dict[str, Score], known: Counter[str], pages: int) -> str:
    """Return the table."""
    rows = [
        [
            who,
            *(f"{score.exact[name]} ({score.exact[name] / max(1, known[name]):.1%})" for name in FIELDS),
            *(str(score.extra[name]) for name in ("author", "date")),
            f"{1000 * score.seconds / pages:.2f}",
            f"{scores[OURS].seconds / score.seconds:.3f}",
        ]
        for who, score in scores.items()
    ]
    head = ["", *FIELDS, "author +", "date +", "ms per page", "ours / this"]
    counts = ", ".join(f"{known[name]} with {name}" for name in FIELDS)
    about = f"{pages} pages, {counts}. Exact values; +: values where the truth has none. CPU time without parsing."
    return f"{about}\n\n{table(head, rows)}"


def main() -> None:
    """Measure, print the report and write it to ``results/``."""
    parser = options(__doc__, 300, seed=0)
    parser.add_argument("--languages", type=Path, nargs="*", default=[], help="sets of pages of annotated languages")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # Trafilatura warns of every page without content
    pages, _ = sample(arguments.data, arguments.pages, arguments.seed)
    scores, known = measure(pages, arguments.seed)
    parts = [report(scores, known, len(pages)), *map(languages, arguments.languages)]
    publish(arguments, ["scrapy-dripper", "trafilatura", "htmldate", "lxml"], *parts)


if __name__ == "__main__":
    main()
