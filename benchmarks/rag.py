"""Chunks and links of the main content: ours, and those of crawl4ai and Trafilatura, on the same annotated pages.

A code block, a table or a list counts if its words are in the ground truth, one after the other, and its text has at
most 1,200 characters, so that it fits into a chunk. It is cut if the words are together in the output, but in no single
chunk. A link counts as one of the main content if the paragraph, item or cell around it is in the ground truth, and as
another if its own words are not. Links that are neither, such as a "Home" whose word also occurs in the text, are left
out of the count, and so are links within the page.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from statistics import median
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import rag_peers
from lxml import etree
from lxml.html import HtmlElement
from rag_peers import SIZE, Chunk
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.dataset.neutral import neutral_prf, page_title
from scrapy_dripper.dataset.pages import DataError, Sample, page_hash
from scrapy_dripper.dataset.sets import TRAINING_PAGES, SetChoice, load_set
from scrapy_dripper.engines.tagger.model import bundled
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse

DATA = Path(__file__).parents[1] / ".cache"
RESULT = Path(__file__).parent / "results" / "rag.txt"
OURS = "scrapy-dripper"
SETS = ("wcxb-dev", "elsewhere", "sites")
"""Folders of the sets in the folder of data."""
STRUCTURES = ("code", "tables", "lists")
STATES = ("whole", "cut", "not there")
KINDS = {"pre": "code", "table": "tables", "ul": "lists", "ol": "lists"}
LEAST_WORDS, MOST_CHARS = 8, 1_200
"""Minimum number of words of a structure, and maximum number of its characters."""
AROUND = 4
"""Minimum number of words of a paragraph, item or cell by which a link is known to be one of the main content."""
SHORT = 200
"""A chunk with fewer characters says little by itself."""
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|ref|ref_src").fullmatch
BLOCKS = frozenset(
    "address article aside blockquote body caption dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 "
    "h6 header html li main nav ol p pre section summary table tbody td th tr ul".split()
)
_images = re.compile(r"!\[([^\][]*)\]\([^()\s]*\)").sub
_targets = re.compile(r"(?<=\])\([^()\s]*\)").sub
_tags = re.compile(r"</?[a-zA-Z][^<>]*>").sub
_escapes = re.compile(r"\\([^\w\s])").sub
_word = re.compile(r"[^\W_]+").findall


def plain(markdown: str) -> str:
    """Return Markdown without the addresses of links and images, tags, escapes and emphasis."""
    text = _tags(" ", _targets("", _images(r"\1", markdown)))
    return unescape(_escapes(r"\1", text)).replace("*", "").replace("`", "")


def run_of_words(text: str) -> str:
    """Return the words of a text in lower case between spaces. Numbers alone do not count: they may number a list."""
    return " " + "".join(f"{word} " for word in _word(plain(text).lower()) if not word.isdigit())


def key_of(url: str) -> str:
    """Return what two forms of the same address have in common: no scheme, fragment, tracking and final slash."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ""
    query = urlencode(sorted(pair for pair in parse_qsl(parts.query) if not _TRACKING(pair[0])))
    return f"{parts.netloc.lower()}{parts.path.rstrip('/')}?{query}" if parts.scheme in ("http", "https") else ""


# ---------------------------------------------------------------------- the truth
@dataclass(frozen=True, slots=True)
class Truth:
    """A page and what is known about it."""

    sample: Sample
    part: str
    html: str
    structures: tuple[tuple[str, str], ...]
    """The kind and the words of each structure of the main content."""
    main_links: frozenset[str]
    other_links: frozenset[str]


def truth_of(sample: Sample, part: str) -> Truth:
    """Return what the ground truth says about the structures and links of a page."""
    html = decode_html(sample.path.read_bytes(), None)
    root, words = parse(html), run_of_words(sample.truth)
    base = urljoin(sample.url, next(iter(root.xpath("//head/base/@href")), ""))
    links: dict[str, set[str]] = {"main": set(), "other": set(), "unclear": set()}
    for link in root.iter("a"):
        href, own = link.get("href") or "", run_of_words(text_of(link))
        key = key_of(urljoin(base, href)) if not href.startswith("#") else ""
        if key and own.strip():
            around = run_of_words(text_of(next((up for up in link.iterancestors() if up.tag in BLOCKS), link)))
            inside = around.count(" ") > AROUND and around in words
            links["main" if inside else "unclear" if own in words else "other"].add(key)
    other = links["other"] - links["main"] - links["unclear"]
    return Truth(sample, part, html, tuple(_structures(root, words)), frozenset(links["main"]), frozenset(other))


def _structures(root: HtmlElement, truth: str) -> Iterator[tuple[str, str]]:
    for element in root.iter(*KINDS):
        if not any(up.tag in KINDS for up in element.iterancestors()):
            text = text_of(element)
            words = run_of_words(text)
            if len(text) <= MOST_CHARS and words.count(" ") > LEAST_WORDS and words in truth:
                yield KINDS[element.tag], words


def text_of(element: HtmlElement) -> str:
    """Return the text of an element, with spaces around what begins a new line or cell."""
    pieces = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        apart = " " if node.tag in BLOCKS or node.tag == "br" else ""
        if event == "start":
            pieces.append(apart + (node.text or "" if node.tag not in ("script", "style", "noscript") else ""))
        else:
            pieces.append(apart + (node.tail or "" if node is not element else ""))
    return " ".join("".join(pieces).split())


def load(data: Path, count: int, seed: int) -> list[Truth]:
    """Return an equal share of pages from each set, without those that the model was trained on where there are others.

    Raise SystemExit if there are no data.
    """
    manifest = json.loads((bundled() / "manifest.json").read_text(encoding="utf-8"))
    trained = {digest for digests in manifest.get(TRAINING_PAGES, {}).values() for digest in digests}
    found = []
    try:
        sets = [load_set(SetChoice(data / name)) for name in SETS if (data / name).is_dir()] or [
            load_set(SetChoice(data))
        ]
    except DataError as error:
        raise SystemExit(str(error)) from None
    for one in sets:
        known = [sample for sample in one.samples if sample.truth.strip()]
        new = [sample for sample in known if page_hash(sample.path) not in trained]
        part = one.name if new else f"{one.name} *"
        drawn = random.Random(seed).sample(new or known, min(count // len(sets), len(new or known)))
        found += [truth_of(sample, part) for sample in tqdm(drawn, unit="page", desc=part, leave=False)]
    return found


# ---------------------------------------------------------------------- chunks
@dataclass(slots=True)
class Score:
    """What the chunks of one tool come to."""

    sizes: list[int] = field(default_factory=list)
    headed: int = 0
    repeated: int = 0
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in STATES})
    """How many structures of each kind are whole, cut, or not in the output."""
    missing: dict[str, list[float]] = field(default_factory=dict)
    """Share of the words of the truth that are in no chunk, for each page of a set."""
    junk: dict[str, list[float]] = field(default_factory=dict)
    """Share of the words of the chunks that are not in the truth, likewise."""
    _seen: set[str] = field(default_factory=set)

    def add(self, truth: Truth, chunks: list[Chunk]) -> None:
        """Add the chunks of a page."""
        runs = [run_of_words(chunk.text) for chunk in chunks]
        self.sizes += [len(chunk.text) for chunk in chunks]
        self.headed += sum(chunk.headed for chunk in chunks)
        for run in runs:
            self.repeated += run in self._seen
            self._seen.add(run)
        together = run_of_words("\n".join(chunk.text for chunk in chunks))
        for kind, words in truth.structures:
            state = "whole" if any(words in run for run in runs) else "cut" if words in together else "not there"
            self.kinds[state][kind] += 1
        titles = truth.sample.title, page_title(truth.html.encode("utf-8"))
        prf = neutral_prf("\n".join(plain(chunk.text) for chunk in chunks), truth.sample.truth, titles)
        self.missing.setdefault(truth.part, []).append(1 - prf.recall)
        self.junk.setdefault(truth.part, []).append(1 - prf.precision)

    def cut(self, kind: str) -> str:
        """Return how many structures of a kind are cut, of those that are in the output."""
        whole, cut = self.kinds["whole"][kind], self.kinds["cut"][kind]
        return f"{cut} of {whole + cut}"


def our_chunks(extractor: Extractor) -> Callable[[str, str], list[Chunk]]:
    """Return a function that makes our chunks."""

    def chunks(html: str, url: str) -> list[Chunk]:
        made = extractor.extract([Document(html, url)])[0].chunks or ()
        return [Chunk(chunk.markdown, bool(chunk.headings) or chunk.markdown.startswith("#")) for chunk in made]

    return chunks


def chunk_tables(pages: list[Truth], scores: dict[str, Score]) -> str:
    """Return the tables of the chunks."""
    head = ["", "chunks", "median", f"over {SIZE:,}", f"under {SHORT}", "headed", "repeated"]
    head += ["code cut", "tables cut", "lists cut", "not there"]
    rows = [
        [
            name,
            f"{len(score.sizes):,}",
            f"{median(score.sizes or [0]):,.0f}",
            *(_share(count, len(score.sizes)) for count in (
                sum(size > SIZE for size in score.sizes),
                sum(size < SHORT for size in score.sizes),
                score.headed,
                score.repeated,
            )),
            *(score.cut(kind) for kind in ("code", "tables", "lists")),
            str(score.kinds["not there"].total()),
        ]
        for name, score in scores.items()
    ]  # fmt: skip
    parts = list(dict.fromkeys(page.part for page in pages))
    words = [
        [name, *(f"{_mean(score.missing[part]):.1%}, {_mean(score.junk[part]):.1%}" for part in parts)]
        for name, score in scores.items()
    ]
    return "\n".join(
        [
            "Chunks, with sizes in characters. headed: it is known below which heading a chunk stands. repeated: with "
            "the same words as an earlier chunk of any page. cut: of those that are in the output. not there: in the "
            "truth, and not in the output, word for word.",
            "",
            table(head, rows),
            "",
            "Words, mean over pages: share of the truth that is in no chunk, share of the chunks that is not in it.",
            *(["* The model was trained on these pages."] if any(part.endswith("*") for part in parts) else []),
            "",
            table(["", *(f"{part} ({sum(page.part == part for page in pages)})" for part in parts)], words),
        ]
    )


# ---------------------------------------------------------------------- links
def our_links(extractor: Extractor) -> Callable[[str, str], list[str]]:
    """Return a function that returns our links."""
    return lambda html, url: [link.url for link in extractor.extract([Document(html, url)])[0].links or ()]


def link_table(pages: list[Truth], found: dict[str, list[frozenset[str]]]) -> str:
    """Return the table of the links."""
    rows = []
    total = sum(len(page.main_links) for page in pages)
    for name, links in found.items():
        right = sum(len(keys & page.main_links) for keys, page in zip(links, pages, strict=True))
        wrong = sum(len(keys & page.other_links) for keys, page in zip(links, pages, strict=True))
        rows.append([name, str(right + wrong), _share(right, right + wrong), _share(right, total)])
    others = sum(len(page.other_links) for page in pages)
    return "\n".join(
        [
            f"Links: {total:,} of the main content, {others:,} others. Different addresses of each page.",
            "",
            table(["", "links", "precision", "recall"], rows),
        ]
    )


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else "-"


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def main() -> None:
    """Measure, print the report and write it to ``results/``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with sets of annotated pages, or one of them")
    parser.add_argument("--pages", type=int, default=300, help="how many, from all sets together (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--peers", default=",".join(rag_peers.CHUNKERS), help="other tools ('' for none)")
    parser.add_argument("--output", type=Path, default=RESULT, help="where the report goes")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # Trafilatura warns of every page without content
    peers = [name for name in arguments.peers.split(",") if name]
    rag_peers.check(peers)
    pages = load(arguments.data, arguments.pages, arguments.seed)
    extractor = Extractor(Config(chunks_field="chunks", chunk_size=SIZE, links="drop", links_field="links"))
    chunkers = {OURS: our_chunks(extractor)} | {k: v for name in peers for k, v in rag_peers.CHUNKERS[name].items()}
    linkers = {OURS: our_links(extractor)} | {k: v for name in peers for k, v in rag_peers.LINKERS[name].items()}
    scores = {name: Score() for name in chunkers}
    links: dict[str, list[frozenset[str]]] = {name: [] for name in linkers}
    for page in tqdm(pages, unit="page", leave=False):
        for name, chunks in chunkers.items():
            scores[name].add(page, chunks(page.html, page.sample.url))
        for name, linked in linkers.items():
            links[name].append(frozenset(filter(None, map(key_of, linked(page.html, page.sample.url)))))
    extractor.close()
    counts = Counter(kind for page in pages for kind, _ in page.structures)
    packages = ["scrapy-dripper", *dict.fromkeys(name for peer in peers for name in rag_peers.PACKAGES[peer])]
    publish(
        f"{heading('rag.py', packages)}\n\n{len(pages)} pages with "
        f"{', '.join(f'{counts[kind]} {kind}' for kind in STRUCTURES)} of up to {MOST_CHARS:,} characters.\n\n"
        f"{chunk_tables(pages, scores)}\n\n{link_table(pages, links)}",
        arguments.output,
    )


if __name__ == "__main__":
    main()
