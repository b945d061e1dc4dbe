"""Fingerprints of pages that are crawled again: what stays the same although nothing has happened, and what changes.

Two copies of each page differ as two visits do: another time stamp, other nonces, another advertisement, other related
articles, other counters. A fingerprint should be the same for both. Other copies differ in a number, a word, a sentence
or a paragraph of the main content, and there it should differ. All pairs of different pages are compared as well.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from pathlib import Path

import rag_peers
from lxml import etree
from lxml.html import HtmlElement, fragment_fromstring
from rag import DATA, run_of_words, text_of
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.dataset.pages import DataError, Sample, load_pages
from scrapy_dripper.fingerprint import content_hash, distance, simhash
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.page.parse import parse

RESULT = Path(__file__).parent / "results" / "revisits.txt"
NEAR = 3
"""Maximum number of bits in which the simhashes of near duplicates differ (Manku et al. 2007)."""
LEAST_WORDS = 20
ALIKE = 0.8
"""Two pages are near duplicates if their ground truths have this share of their runs of three words in common."""
COUNTERS = (
    *("{n:,} views", "{n} hours ago", "Updated {n} minutes ago", "{n} comments", "{n} people are reading this"),
    *("Posted {n} days ago", "{n} shares", "Viewed {n} times"),
)
SLOGANS = ("Save {n}% on shoes this week", "Try our new card and get {n} euros back", "{n} gadgets that you need now")
_digits = re.compile(r"\d+")
_long_word = re.compile(r"\b[^\W\d_]{6,}\b")

Prints = dict[str, str]
"""The fingerprints of a page by name; those that are compared by distance begin with ``~``."""


# ---------------------------------------------------------------------- two visits
@dataclass(frozen=True, slots=True)
class Original:
    """A page, its paragraphs that are in the ground truth, and the titles of other pages."""

    sample: Sample
    html: str
    paragraphs: tuple[int, ...]
    """Positions among the elements ``p`` of the page."""
    titles: tuple[str, ...]

    def tree(self) -> tuple[HtmlElement, list[HtmlElement]]:
        """Return a new tree of the page, and its paragraphs of main content."""
        root = parse(self.html)
        every = list(root.iter("p"))
        return root, [every[i] for i in self.paragraphs]


def stamped(page: Original, chance: random.Random) -> HtmlElement:
    """A time stamp at the foot, in the head and in a comment."""
    root, _ = page.tree()
    now = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
    body = _body(root)
    body.append(
        fragment_fromstring(f"<div class='generated'>Page generated on 3 Nov 2026 {now} in 0.{now[-2:]} s</div>")
    )
    body.append(etree.Comment(f" cached {now} "))
    return root


def nonces(page: Original, chance: random.Random) -> HtmlElement:
    """Nonces of scripts, a hidden token, session ids in links, generated class names."""
    root, _ = page.tree()
    token = f"{chance.getrandbits(64):x}"
    for element in root.iter("script", "style", "link"):
        element.set("nonce", token)
    for i, element in enumerate(root.iter("div", "section", "p", "ul")):
        element.set("class", f"{element.get('class') or ''} css-{chance.getrandbits(24):06x}-{i}".strip())
    for link in root.iter("a"):
        href = link.get("href") or ""
        if href.startswith("/"):
            link.set("href", f"{href}{'&' if '?' in href else '?'}sid={token}")
    _body(root).append(fragment_fromstring(f"<form><input type='hidden' name='csrf' value='{token}'></form>"))
    return root


def advertised(page: Original, chance: random.Random) -> HtmlElement:
    """An advertisement in the middle of the text."""
    root, paragraphs = page.tree()
    slogan = chance.choice(SLOGANS).format(n=chance.randrange(5, 95))
    advertisement = f"<div class='ad-slot'><a href='https://ads.example/{chance.getrandbits(32)}'>{slogan}</a></div>"
    paragraphs[len(paragraphs) // 2].addnext(fragment_fromstring(advertisement))
    return root


def related(page: Original, chance: random.Random) -> HtmlElement:
    """A list of related articles below the text."""
    root, paragraphs = page.tree()
    section = fragment_fromstring("<section class='related-posts'><h3>You may also like</h3><ul></ul></section>")
    for title in chance.sample(page.titles, 5):
        link = etree.SubElement(etree.SubElement(section[1], "li"), "a", href=f"/story/{chance.getrandbits(32)}")
        link.text = title
    paragraphs[-1].addnext(section)
    return root


def counted(page: Original, chance: random.Random) -> HtmlElement:
    """A line above the text, with two of eight kinds of counters and ages."""
    root, paragraphs = page.tree()
    kinds = random.Random(page.sample.id).sample(COUNTERS, 2)  # the same at each visit
    spans = "".join(f"<span>{kind.format(n=chance.randrange(2, 3_000))}</span>" for kind in kinds)
    paragraphs[0].addprevious(fragment_fromstring(f"<div class='meta'>{spans}</div>"))
    return root


# ---------------------------------------------------------------------- changes that matter
def another_number(page: Original, chance: random.Random) -> HtmlElement | None:
    """A number of the text."""
    return _replaced(page, chance, _digits, lambda found: str(int(found[:9]) + 7))


def another_word(page: Original, chance: random.Random) -> HtmlElement | None:
    """A word of at least six letters."""
    return _replaced(page, chance, _long_word, lambda found: "harpsichord" if found != "harpsichord" else "violin")


def another_sentence(page: Original, chance: random.Random) -> HtmlElement:
    """A sentence more in a paragraph."""
    root, paragraphs = page.tree()
    etree.SubElement(
        chance.choice(paragraphs), "span"
    ).text = " The ministry has since withdrawn this statement in full."
    return root


def a_paragraph_less(page: Original, chance: random.Random) -> HtmlElement | None:
    """A paragraph of the text gone."""
    root, paragraphs = page.tree()
    if len(paragraphs) < 3:
        return None
    gone = max(chance.sample(paragraphs, 2), key=lambda one: len(text_of(one)))
    gone.drop_tree()
    return root


VISITS: dict[str, Callable[[Original, random.Random], HtmlElement]] = {
    "time stamp": stamped,
    "nonces": nonces,
    "advertisement": advertised,
    "related": related,
    "counters": counted,
}
CHANGES: dict[str, Callable[[Original, random.Random], HtmlElement | None]] = {
    "number": another_number,
    "word": another_word,
    "sentence": another_sentence,
    "paragraph": a_paragraph_less,
}


def _replaced(
    page: Original, chance: random.Random, pattern: re.Pattern[str], by: Callable[[str], str]
) -> HtmlElement | None:
    """Replace the first match of a pattern in the text of a random paragraph; None if there is none."""
    root, paragraphs = page.tree()
    for paragraph in chance.sample(paragraphs, len(paragraphs)):
        match = pattern.search(paragraph.text or "")
        if match:
            paragraph.text = f"{paragraph.text[: match.start()]}{by(match[0])}{paragraph.text[match.end() :]}"
            return root
    return None


def _body(root: HtmlElement) -> HtmlElement:
    return next(root.iter("body"), root)


# ---------------------------------------------------------------------- fingerprints
def fingerprints(extractor: Extractor, peers: list[str]) -> Callable[[str, str], Prints | None]:
    """Return a function that returns the fingerprints of a page; None if one of the tools finds no text."""
    library = import_module("trafilatura.deduplication") if "trafilatura" in peers else None

    def prints(html: str, url: str) -> Prints | None:
        text = extractor.extract([Document(html, url)])[0].text or ""
        texts = [text]
        found = {
            "content_hash": content_hash(text),
            f"~simhash, {NEAR} bits": simhash(text),
            "SHA-256 of our text": rag_peers.hashed(text),
        }
        if library is not None:
            other = rag_peers.trafilatura_text(html, url)
            texts.append(other)
            mark = library.content_fingerprint(other)
            found |= {
                "Trafilatura, content_fingerprint": mark,
                f"~Trafilatura, Simhash, {NEAR} bits": mark,
                "Trafilatura, SHA-256 of the text": rag_peers.hashed(other),
            }
        if "crawl4ai" in peers:
            made = rag_peers.crawled(html, url)
            texts += [made.markdown, made.fit]
            found["crawl4ai, SHA-256 of the Markdown"] = rag_peers.hashed(made.markdown)
            found["crawl4ai, SHA-256 of fit_markdown"] = rag_peers.hashed(made.fit)
        return found if min(len(one.split()) for one in texts) >= LEAST_WORDS else None

    return prints


def same(name: str, one: str, other: str) -> bool:
    """Return True if two fingerprints are the same, or near for those that are compared by distance."""
    return distance(one, other) <= NEAR if name.startswith("~") else one == other


def _html(root: HtmlElement) -> str:
    return str(etree.tostring(root, method="html", encoding="unicode"))


def visits(
    pages: list[Original], prints: Callable[[str, str], Prints | None], seed: int
) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of visits and changes: shares of pages with the same fingerprint."""
    columns: dict[str, list[dict[str, bool]]] = {name: [] for name in (*VISITS, *CHANGES)}
    for page in tqdm(pages, unit="page", desc="visits", leave=False):
        url = page.sample.url
        for name, visit in VISITS.items():
            both = [prints(_html(visit(page, random.Random(f"{seed} {page.sample.id} {i}"))), url) for i in (1, 2)]
            _compare(columns[name], *both)
        before = prints(_html(page.tree()[0]), url)
        for name, change in CHANGES.items():
            root = change(page, random.Random(f"{seed} {page.sample.id}"))
            if root is not None:
                _compare(columns[name], before, prints(_html(root), url))
    names = list(next(iter(columns.values()))[0])
    rows = [
        [name.lstrip("~"), *(f"{sum(one[name] for one in found) / len(found):.0%}" for found in columns.values())]
        for name in names
    ]
    return ["", *(f"{name} ({len(found)})" for name, found in columns.items())], rows


def _compare(column: list[dict[str, bool]], one: Prints | None, other: Prints | None) -> None:
    if one and other:
        column.append({name: same(name, one[name], other[name]) for name in one})


def pairs(samples: list[Sample], prints: Callable[[str, str], Prints | None]) -> str:
    """Return the table of all pairs of different pages."""
    found = {}
    for sample in tqdm(samples, unit="page", desc="pages", leave=False):
        made = prints(decode_html(sample.path.read_bytes(), None), sample.url)
        if made:
            found[sample.id] = made
    truths = {sample.id: _shingles(sample.truth) for sample in samples if sample.id in found}
    alike = {pair for pair in combinations(sorted(found), 2) if _jaccard(*(truths[name] for name in pair)) >= ALIKE}
    rows = []
    for name in next(iter(found.values())):
        hits = {pair for pair in combinations(sorted(found), 2) if same(name, *(found[one][name] for one in pair))}
        rows.append([name.lstrip("~"), str(len(hits)), str(len(hits - alike)), str(len(hits & alike))])
    count = len(found) * (len(found) - 1) // 2
    return "\n".join(
        [
            f"All {count:,} pairs of {len(found):,} different pages. {len(alike)} are near duplicates by their ground "
            f"truth ({ALIKE:.0%} of the runs of three words in common).",
            "",
            table(["", "the same", "wrongly", "rightly"], rows),
        ]
    )


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = run_of_words(text).split()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _jaccard(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    small, large = sorted((len(one), len(other)))
    return len(one & other) / len(one | other) if small >= ALIKE * large and small else 0.0


def load(folder: Path, count: int, seed: int) -> tuple[list[Original], list[Sample]]:
    """Return pages with at least four paragraphs in the ground truth, in a random order, and all pages."""
    try:
        samples = load_pages(folder)
    except DataError as error:
        raise SystemExit(str(error)) from None
    titles = tuple(sorted({sample.title for sample in samples if len(sample.title.split()) > 3}))
    random.Random(seed).shuffle(samples)
    found: list[Original] = []
    for sample in samples:
        html, truth = decode_html(sample.path.read_bytes(), None), run_of_words(sample.truth)
        words = [run_of_words(text_of(p)) for p in parse(html).iter("p")]
        inside = tuple(i for i, run in enumerate(words) if run.count(" ") > LEAST_WORDS // 2 and run in truth)
        if len(inside) >= 4 and len(titles) >= 5:
            found.append(Original(sample, html, inside, titles))
        if len(found) == count:
            break
    return found, samples


def main() -> None:
    """Measure, print the report and write it to ``results/``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA / "wcxb-dev", help="folder of annotated pages")
    parser.add_argument("--pages", type=int, default=80, help="how many to visit again (default: 80)")
    parser.add_argument("--pairs", type=int, default=400, help="how many to compare in pairs (default: 400)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and the changes (default: 0)")
    parser.add_argument("--peers", default=",".join(rag_peers.CHUNKERS), help="other tools ('' for none)")
    parser.add_argument("--output", type=Path, default=RESULT, help="where the report goes")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # Trafilatura warns of every page without content
    peers = [name for name in arguments.peers.split(",") if name]
    rag_peers.check(peers)
    pages, samples = load(arguments.data, arguments.pages, arguments.seed)
    extractor = Extractor(Config())
    prints = fingerprints(extractor, peers)
    head, rows = visits(pages, prints, arguments.seed)
    report = "\n\n".join(
        [
            heading("revisits.py", ["scrapy-dripper", *peers]),
            "Share of pages with the same fingerprint before and after. In the first five columns, 100% is right: "
            "nothing that a reader came for has changed. In the last four, 0% is right for what detects changes, and a "
            "high share for what finds near duplicates. The number of pages is in brackets.",
            table(head, rows),
            pairs(samples[: arguments.pairs], prints),
        ]
    )
    extractor.close()
    publish(report, arguments.output)


if __name__ == "__main__":
    main()
