"""Markdown of real pages: CPU time compared with html2text, and the content that remains after rendering it.

A renderer for CommonMark with the tables and the strikethrough of GitHub turns our Markdown into HTML. The words of
that HTML are compared with those of the Main-HTML, and its structures with those of the content list.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import html2text
import lxml.html
from corpus import DEFAULT, sample
from lxml import etree
from markdown_it import MarkdownIt
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.items import Audio, Cell, CodeBlock, Footnote, Formula, Image, Link, ListItem, Table, Video
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.tags import KINDS, Kind

URL = "https://example.org/"
STRUCTURES = ("code blocks", "formulas", "tables", "images", "links")
OURS, PEER = "scrapy-dripper", "html2text"

_renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_words = re.compile(r"\w+").findall
_inline = {tag for tag, kind in KINDS.items() if kind is Kind.INLINE} | {"img"}
_code = re.compile(r"(?ms)^[ >]*(`{3,})[^`\n]*\n.*?^[ >]*\1[ \t]*$|(?<!`)(`+)(?!`)[^\n]*?[^`\n]\2(?!`)")
# Inline as Pandoc reads it: text right after the first sign and right before the second, and no digit after that.
_formula = re.compile(
    r"(?<![\\$])\$\$(?!\$).+?(?<!\\)\$\$|(?<![\\$])\$(?![\s$])[^$\n]*?(?<=[^\s\\$])\$(?!\d)", re.DOTALL
)
_target = re.compile(r"\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|<[a-z]+:[^>\n]*>")
_footnote = re.compile(r"\[\^(\w+)\]:?")


def parse(main_html: str) -> etree._Element:
    """Return the tree of a document."""
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    tree: etree._Element = etree.fromstring(main_html.encode("utf-8", "replace"), parser)
    return tree


def ours(main_html: str) -> str:
    """Return our Markdown of a document, including parsing."""
    return markdown(content_list(parse(main_html), URL))


def peer(main_html: str) -> str:
    """Return the Markdown of html2text."""
    writer = html2text.HTML2Text(baseurl=URL, bodywidth=0)
    written: str = writer.handle(main_html)
    return written


def text_of(tree: etree._Element) -> str:
    """Return the visible text of a tree, with spaces between blocks."""
    pieces: list[str] = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        tag = element.tag
        if not isinstance(tag, str) or tag == "script":
            pieces.append((element.tail or "") if event == "end" else "")
            continue
        if tag not in _inline:
            pieces.append(" ")
        pieces.append((element.text if event == "start" else element.tail) or "")
    return "".join(pieces)


def f1(one: str, other: str) -> float:
    """Return how well two bags of words agree."""
    a, b = Counter(_words(one.lower())), Counter(_words(other.lower()))
    if not a and not b:
        return 1.0
    return 2 * (a & b).total() / (a.total() + b.total())


def rendered(written: str) -> etree._Element:
    """Return rendered Markdown. Footnotes, which CommonMark does not support, lose their marks."""
    html = _renderer.render(_footnote.sub(r"\1 ", written))
    return lxml.html.fragment_fromstring(html, create_parent="div")


def parts(value: object) -> Iterator[object]:
    """Yield the items, runs and parts of a content list, at any depth."""
    if isinstance(value, tuple):
        for one in value:
            yield from parts(one)
    elif hasattr(value, "type") or isinstance(value, (Cell, ListItem, Footnote)):
        yield value
        for name in ("items", "runs", "rows", "terms", "caption", "notes"):
            yield from parts(getattr(value, name, ()))


def wanted(content: object) -> Counter[str]:
    """Count the structures of a content list."""
    counts: Counter[str] = Counter()
    for part in parts(content):
        counts["code blocks"] += isinstance(part, CodeBlock)
        counts["formulas"] += isinstance(part, Formula)
        counts["tables"] += isinstance(part, Table)
        counts["images"] += isinstance(part, Image)
        counts["links"] += isinstance(part, (Link, Video, Audio)) or (isinstance(part, Image) and bool(part.href))
    return counts


def got(written: str, tree: etree._Element) -> Counter[str]:
    """Count the structures of Markdown and of its rendering."""
    counts: Counter[str] = Counter()
    counts["code blocks"] = sum(1 for _ in tree.iter("pre"))
    counts["formulas"] = len(_formula.findall(_target.sub("]", _code.sub(" ", written))))
    counts["tables"] = sum(1 for _ in tree.iter("table"))
    counts["images"] = sum(1 for _ in tree.iter("img"))
    counts["links"] = sum(1 for _ in tree.iter("a"))
    return counts


def run(arguments: argparse.Namespace) -> str:
    """Measure and return the report."""
    samples, _ = sample(arguments.data, arguments.pages, arguments.seed)
    chance = random.Random(arguments.seed)
    extractor = Extractor(Config(threads=1))
    contestants: dict[str, Callable[[str], str]] = {OURS: ours, PEER: peer}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    similar: list[tuple[float, str]] = []
    total, found, pages_equal = Counter[str](), Counter[str](), Counter[str]()
    different: list[str] = []
    for page in tqdm(samples, unit="page", desc="markdown"):
        (extraction,) = extractor.extract([Document(page.path.read_bytes(), URL)])
        main_html = extraction.main_html
        if not main_html:
            continue
        for name in chance.sample(list(contestants), len(contestants)):
            start = time.process_time()
            contestants[name](main_html)
            seconds[name].append(time.process_time() - start)
        tree = parse(main_html)
        content = content_list(tree, URL)
        written = markdown(content)
        back = rendered(written)
        similar.append((f1(text_of(back), text_of(tree)), page.path.stem))
        here, there = wanted(content), got(written, back)
        total += here
        found += there
        for name in STRUCTURES:
            pages_equal[name] += here[name] == there[name]
            if here[name] != there[name]:
                different.append(f"{page.path.stem}: {name} {here[name]} -> {there[name]}")
    extractor.close()
    n = len(similar)
    mean = {name: 1000 * statistics.mean(values) for name, values in seconds.items()}
    median = {name: 1000 * statistics.median(values) for name, values in seconds.items()}
    speed = [
        [name, f"{mean[name]:.2f}", f"{median[name]:.2f}", f"{mean[PEER] / mean[name]:.2f}"] for name in contestants
    ]
    structures = [[name, str(total[name]), str(found[name]), f"{pages_equal[name]} of {n}"] for name in STRUCTURES]
    values = [value for value, _ in similar]
    low = [f"{stem} {value:.3f}" for value, stem in sorted(similar)[:5]]
    return "\n\n".join(
        [
            heading("markdown.py", ["scrapy-dripper", "html2text", "lxml", "markdown-it-py"]),
            f"The Main-HTML of {n} pages, {arguments.pages} looked at, seed {arguments.seed}; CPU milliseconds per\n"
            "page, one thread, parsing included.",
            table(["Markdown", "mean", "median", "speed / html2text"], speed),
            f"Words of the rendered Markdown against the words of the Main-HTML: F1 {statistics.mean(values):.4f} in\n"
            f"the mean, {statistics.median(values):.4f} in the median; the lowest: {', '.join(low)}.",
            table(["structure", "content list", "rendered", "pages with the same number"], structures),
            "Pages that differ: " + ("; ".join(different[:20]) or "none") + ".",
        ]
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Markdown: CPU time beside html2text, and whether it renders back.")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of *.html; default: .cache/wcxb-dev/html")
    parser.add_argument("--pages", type=int, default=300, help="default: 300")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "markdown.txt", help="where the report goes"
    )
    arguments = parser.parse_args()
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    publish(run(arguments), arguments.output)


if __name__ == "__main__":
    main()
