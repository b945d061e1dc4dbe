"""Measure how much of the Markdown sources of pages is preserved, by our writer and by four others.

Each page of the paired sites comes with its source. Elements that are in both the source and the page can be preserved.
Recall is the share of these that are. Precision is the share of the elements in the output that are in the source.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import SITES, options, publish, table
from parts import KINDS, Parts, Shown, address, line_key, loose_tex, norm, of_markdown, of_page, squash
from tqdm import tqdm
from writers import PEERS, main_content, writers

from scrapy_dripper.choose import ScoredPage, choose, mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.output import write
from scrapy_dripper.page import Page, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.page import Flag
from scrapy_dripper.structures.code import normalised
from scrapy_dripper_lab.alignment import Bools, align

OURS = "scrapy-dripper"
TAGGER, TRUTH = "the tagger's labels", "the true labels"
FINDER = "trafilatura"
"""The only peer that finds the main content by itself. It gets the whole page when ours is labelled by the tagger."""


@dataclass(frozen=True)
class Gold:
    """The source of a page: the elements that the page shows, and others that are no mistake in the output."""

    page: dict[str, Any]
    wanted: dict[str, Counter[Any]]
    """The elements that can come back, by kind."""
    right: dict[str, Counter[Any]]
    """All elements of the source, by kind."""
    shown: Shown
    lines: frozenset[str]
    raw: str
    squashed: str
    links: dict[str, set[str]]
    """The URLs that a link can have, by its text."""
    languages: dict[str, str]

    def times(self, kind: str, key: Any) -> int:
        """Return how often the source can hold an element, as any kind."""
        if kind in ("fenced code", "inline code"):
            return self.squashed.count(squash(key))
        if kind == "headings" and key == norm(self.page["title"]):
            return self.raw.count(key) + 1  # the source has it apart from its body
        return self.raw.count(norm(key[kind != "links"] if isinstance(key, tuple) else key))

    def is_dialect(self, kind: str, key: Any) -> bool:
        """Return True for an element that the source has in a dialect which our renderer reads differently."""
        if kind == "headings":
            return key == norm(self.page["title"]) or (key in self.shown.parts.found[kind] and key in self.lines)
        if kind in ("list items", "table cells"):
            return key in self.shown.parts.found[kind] and key[1] in self.lines
        if kind == "links":
            return key in self.shown.parts.found[kind] and (norm(key[1]) in self.raw or key[0] in self.lines)
        if kind == "images":
            return norm(key) in self.raw
        if kind in ("inline code", "fenced code"):
            return squash(key) in self.squashed
        if kind == "formulas":
            return loose_tex(key) in loose_tex(self.squashed)
        return False


def gold_of(page: dict[str, Any], source: str) -> Gold:
    """Return the elements of a page's source that the page shows."""
    base, markdown = page["url"], page["markdown"]
    held = of_markdown(markdown, base, page["math"])
    shown = of_page(source, base)
    codes, named = held.found["fenced code"], held.languages
    held.found["fenced code"] = Counter()
    held.languages = {}
    for code, n in codes.items():
        as_shown = shown.codes.get(squash(code), code)
        held.found["fenced code"][as_shown] += n
        held.languages[as_shown] = named[code]
    links: dict[str, set[str]] = defaultdict(set)
    for key, url in shown.parts.found["links"]:
        links[key].add(url)
    wanted = {
        kind: Counter({key: n for key, n in held.found[kind].items() if _is_shown(kind, key, shown)}) for kind in KINDS
    }
    written = [(key, url) for key, url in held.found["links"].elements()]
    absolute = {key for key, url in written if not url.startswith(address("/", base)) and url in links[key]}
    wanted["links"] = Counter(
        (key, url if key in absolute else "")
        for key, url in written
        if key in links and (key in absolute or url.startswith(address("/", base)))
    )
    right = {kind: held.found[kind] for kind in KINDS} | {"links": wanted["links"]}
    languages = {
        code: normalised(name)
        for code, name in held.languages.items()
        if normalised(name) and _names(shown.source, name) and code in wanted["fenced code"]
    }
    raw = norm(markdown)
    pieces = (piece for line in markdown.splitlines() for piece in (line, *line.split("|")))
    lines = frozenset(norm(piece) for piece in pieces)
    return Gold(page, wanted, right, shown, lines, raw, squash(markdown), links, languages)


def _is_shown(kind: str, key: Any, shown: Shown) -> bool:
    if kind == "fenced code":
        return squash(key) in shown.codes
    if kind == "formulas":
        return key in shown.source
    if kind == "footnotes":
        return key in shown.parts.text
    return kind not in ("links", "language of code") and key in shown.parts.found[kind]


def _names(whole: str, language: str) -> bool:
    """Return True if an attribute of the page can name a language."""
    lower, name = whole.lower(), language.lower()
    return any(
        mark in lower
        for mark in (f"language-{name}", f"lang-{name}", f'data-lang="{name}"', f"highlight{name}", f"brush:{name}")
    )


def true_labels(page: Page, text: str) -> Bools:
    """Return which blocks of a page are in its true text.

    These are the labels for training, with one exception. If several blocks equal a line of the text, such as a heading
    and its entry in a table of contents, training cannot tell them apart. Here, as many of them as the text has are
    chosen, headings and blocks without links first.
    """
    main = align(page.blocks.text, text).main
    places = np.flatnonzero(main)
    if not len(places):
        return main
    lines = Counter(map(line_key, text.split("\n")))
    equal: dict[str, list[int]] = defaultdict(list)
    for i in range(places[0], places[-1] + 1):
        key = line_key(page.blocks.text[i])
        if key in lines:
            equal[key].append(i)
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    for key, blocks in equal.items():
        blocks.sort(key=lambda i: (not flags[i] & Flag.HEADING, bool(flags[i] & Flag.LINK), i))
        for place, i in enumerate(blocks):
            main[i] = place < lines[key]
    return main


Tally = tuple[int, int, int, int]
"""Counts of one kind of structure: those that can come back, that did, that are in the output, and of these correct."""


def figures(wanted: int, back: int, out: int, right: int) -> str:
    """Return the recall and the precision of a tally."""
    return f"{f'{back / wanted:.3f}' if wanted else '-'} / {f'{right / out:.3f}' if out else '-'}"


def compare(gold: Gold, markdown: str) -> dict[str, Tally]:
    """Return the counts of a Markdown by kind."""
    out = of_markdown(markdown, gold.page["url"], gold.page["math"])
    links: Counter[Any] = Counter()
    for (key, url), n in out.found["links"].items():
        relative = (key, "") in gold.wanted["links"] and url in gold.links[key]
        links[key, "" if relative else url] += n
    out.found["links"] = links
    tallies = {}
    for kind in KINDS:
        if kind == "language of code":
            tallies[kind] = _compare_languages(gold, out)
            continue
        have, wanted, right = out.found[kind], gold.wanted[kind], gold.right[kind]
        good = (have & right).total()
        wrong = sum(
            n
            for key, n in (have - right).items()
            if have[key] > gold.times(kind, key) or not gold.is_dialect(kind, key)
        )
        tallies[kind] = (wanted.total(), (have & wanted).total(), good + wrong, good)
    return tallies


def _compare_languages(gold: Gold, found: Parts) -> Tally:
    """Return the counts of the languages of the code that came back."""
    wanted = {code: name for code, name in gold.languages.items() if code in found.found["fenced code"]}
    named = {code: normalised(found.languages[code]) for code in wanted}
    good = sum(named[code] == name for code, name in wanted.items())
    return len(wanted), good, sum(map(bool, named.values())), good


def pages_of(folder: Path, limit: int | None) -> list[dict[str, Any]]:
    """Return the pages of a folder that have a source, or so many of them, of all parts of the list."""
    listing = folder / "pages.jsonl"
    if not listing.is_file():
        raise SystemExit(
            f"{listing} is not there. The benchmark runs on pages with their sources: unpack the archive of the paired "
            "sites with 'mkdir -p .cache && tar -xf sites.tar.xz -C .cache', or name such a folder with --data."
        )
    pages = [page for page in map(json.loads, listing.open(encoding="utf-8")) if page.get("kind") == "content"]
    most = min(limit or len(pages), len(pages))
    return [pages[i * len(pages) // most] for i in range(most)]


def run(arguments: argparse.Namespace, peers: Sequence[str]) -> Iterator[str]:
    """Measure, and yield the parts of the report."""
    config, others = Config(), writers(peers)
    engine = load_engine(config)
    tallies: dict[tuple[str, str, str], npt.NDArray[np.int64]] = defaultdict(lambda: np.zeros(4, np.int64))
    pages = pages_of(arguments.data, arguments.limit)
    for page in tqdm(pages, unit="page", desc="roundtrip"):
        data, url = (arguments.data / "html" / f"{page['id']}.html").read_bytes(), page["url"]
        cut, source = read(Document(data, url), config), decode_html(data)
        gold = gold_of(page, source)
        (answer,) = engine.label([cut])
        assert isinstance(answer, Labels)
        for labels, main in ((TAGGER, choose(ScoredPage(cut, answer)).main), (TRUTH, true_labels(cut, page["text"]))):
            written = write(cut, mask_of(cut, main), config)
            made = {OURS: written.markdown} | {name: one(written.main_html, url) for name, one in others.items()}
            if labels == TAGGER and FINDER in others:
                made[FINDER] = main_content(source, url)
            for name, markdown in made.items():
                for kind, tally in compare(gold, markdown).items():
                    tallies[labels, name, kind] += tally
    engine.close()
    yield f"{len(pages)} pages of {len({page['site'] for page in pages})} sites."
    names = [OURS, *others]
    for labels in (TAGGER, TRUTH):
        rows = []
        for kind in KINDS:
            found = [tallies[labels, name, kind] for name in names]
            rows.append([kind, str(found[0][0]), *(figures(*tally) for tally in found)])
        yield f"With {labels}: recall of what the page shows / precision."
        yield table([labels, "there", *names], rows)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, default=SITES, help="folder of paired sites; default: .cache/sites")
    parser.add_argument("--limit", type=int, help="so many pages, of all parts of the list; default: all")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"other writers; default: {','.join(PEERS)}")
    arguments = parser.parse_args()
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    peers = [name for name in arguments.peers.split(",") if name]
    publish(arguments, ["scrapy-dripper", *peers], *run(arguments, peers))


if __name__ == "__main__":
    main()
