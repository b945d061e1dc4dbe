"""How much labels depend on what is far away: the share of words whose label changes with the length of a page.

``tail`` removes all that is behind the middle of a page. ``rows`` doubles the longest run of like siblings, with words
from other pages. Labels of the blocks that both pages have are compared, by their words.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from itertools import takewhile

from common import options, publish, sample, table
from lxml import html
from lxml.html import HtmlElement
from tqdm import tqdm

from scrapy_dripper import Config, Document, Extractor
from scrapy_dripper.page import PageError, read

LEAST_ROWS = 4
"""Minimum number of like siblings of a run."""
Blocks = list[tuple[str, bool]]
"""The text and the label of each block of a page."""


def tail(root: HtmlElement, _: list[str], __: random.Random) -> bool:
    """Remove what is behind the middle of a page."""
    texts = [(node, len(node.text_content().split())) for node in root.iter("p", "li", "td", "div") if not len(node)]
    half = sum(size for _, size in texts) / 2
    for node, size in texts:
        half -= size
        if half <= 0:
            for after in node.xpath("following::*[ancestor::body] | following::comment()[ancestor::body]"):
                after.getparent().remove(after)
            return True
    return False


def rows(root: HtmlElement, words: list[str], chance: random.Random) -> bool:
    """Double the longest run of like siblings."""
    best: list[HtmlElement] = []
    for parent in root.iter(html.etree.Element):
        runs: dict[tuple[str, str | None], list[HtmlElement]] = {}
        for child in parent:
            if child.tag in ("p", "li", "tr", "div", "article", "section"):
                runs.setdefault((child.tag, child.get("class")), []).append(child)
        best = max(best, *runs.values(), key=len) if runs else best
    if len(best) < LEAST_ROWS:
        return False
    copies = [deepcopy(one) for one in best]
    for one in copies:
        for node in one.iter(html.etree.Element):
            for name in ("text", "tail"):
                size = len((getattr(node, name) or "").split())
                if size and (node is not one or name == "text"):
                    setattr(node, name, " ".join(chance.choices(words, k=size)))
    for one in reversed(copies):
        best[-1].addnext(one)
    return True


CHANGES: dict[str, Callable[[HtmlElement, list[str], random.Random], bool]] = {"tail": tail, "rows": rows}


def labelled(extractor: Extractor, root: HtmlElement) -> Blocks:
    """Return the labelled blocks of a page."""
    document = Document(html.tostring(root, encoding="utf-8"), "https://example.org/page")
    try:
        texts = read(document, Config()).blocks.text
    except PageError:
        return []
    (found,) = extractor.extract([document])
    return list(zip(texts, found.labels, strict=True)) if len(found.labels) == len(texts) else []


def compared(before: Blocks, after: Blocks) -> tuple[int, int]:
    """Return how many words both pages begin and end with, and how many of them have another label."""
    same = _alike(before, after)
    rest = min(len(before), len(after)) - len(same)
    same += _alike(before[::-1][:rest], after[::-1][:rest])
    sizes = [(len(a[0].split()), a[1] != b[1]) for a, b in same]
    return sum(size for size, _ in sizes), sum(size for size, changed in sizes if changed)


def _alike(before: Blocks, after: Blocks) -> list[tuple[tuple[str, bool], tuple[str, bool]]]:
    """Return the pairs of blocks before the first that have different texts."""
    return list(takewhile(lambda pair: pair[0][0] == pair[1][0], zip(before, after, strict=False)))


def main() -> None:
    """Measure, print and write the report."""
    parser = options(__doc__, 300)
    parser.add_argument("--model", default=None, help="folder of a model (default: the bundled one)")
    arguments = parser.parse_args()
    paths, rest = sample(arguments.data, arguments.pages, arguments.seed)
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in CHANGES}
    words = " ".join(html.fromstring(path.read_bytes()).text_content() for path in rest[:20]).split()
    with Extractor(Config(model=arguments.model)) as extractor:
        for path in tqdm(paths, unit="page"):
            root = html.document_fromstring(path.read_bytes().decode("utf-8", "replace"))
            before = labelled(extractor, root)
            for name, change in CHANGES.items():
                other = deepcopy(root)
                if before and change(other, words, random.Random(path.stem)) and (after := labelled(extractor, other)):
                    found[name].append(compared(before, after))
    lines = []
    for name, some in found.items():
        total, changed = sum(size for size, _ in some), sum(size for _, size in some)
        lines.append([name, f"{len(some)}", f"{total:,}", f"{changed / max(1, total):.2%}"])
    text = table(["change", "pages", "words", "words with another label"], lines)
    publish(arguments, ["scrapy-dripper"], text)


if __name__ == "__main__":
    main()
