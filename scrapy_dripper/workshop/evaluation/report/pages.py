"""The section of a report about a page: its blocks, with their labels and the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import PageError, read
from scrapy_dripper.workshop.dataset.neutral import page_title
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.evaluation.blocks import BlockResult
from scrapy_dripper.workshop.evaluation.figures import Evaluation
from scrapy_dripper.workshop.evaluation.report.svg import Markup, join, tag

FOLD = 4
"""If more consecutive blocks than this are correctly left out, they are folded."""
LONGEST = 700
"""Number of characters to show of a block."""
LONGEST_TRUTH = 5_000
"""Number of characters to show of the true text."""

_SAID = {"hit": "hit", "missed": "missed", "wrong": "wrongly kept", "other": "left out", "copy": "copy"}


def page_section(evaluation: Evaluation, sample: Sample, config: Config, anchor: str) -> Markup:
    """Return the section of a page, which is shown when its link is followed."""
    result = evaluation.ours.results[sample.id]
    row = result.row
    facts = [
        f"{sample.page_type}, {evaluation.levels[sample.id]}, {evaluation.words[sample.id]:,} true words",
        f"ours: F1 {row.f1:.3f}, precision {row.precision:.3f}, recall {row.recall:.3f} ({result.source})",
        *(
            f"{peer.label}: F1 {peer.results[sample.id].row.f1:.3f}"
            + (f" ({error})" if (error := peer.results[sample.id].error) else "")
            for peer in evaluation.systems[1:]
        ),
    ]
    return tag(
        "section",
        tag("h2", f"Page {sample.id}: ", title_of(sample)),
        tag("p", sample.url, class_="soft"),
        tag("p", *(join(fact, tag("br")) for fact in facts)),
        _blocks(sample, config, result.blocks),
        _truth(sample),
        tag("p", tag("a", "Back to the list of pages", href="#worst")),
        id=anchor,
        class_="page",
    )


def title_of(sample: Sample) -> str:
    """Return the title from the annotation, the page's own title, or another name for it."""
    title = sample.title or page_title(sample.path.read_bytes()) or sample.url or sample.path.name
    return " ".join(title.split())[:200]


def _blocks(sample: Sample, config: Config, result: BlockResult | None) -> Markup:
    try:
        texts = read(Document(sample.path.read_bytes(), sample.url), config).blocks.text
    except PageError as error:
        return tag("p", f"The page has no blocks to show: {error}.")
    if result is None or len(result.main) != len(texts):
        return tag("p", "The page has no labels to show.")
    kinds = [_kind(*marks) for marks in zip(result.main, result.truth, result.copies, strict=True)]
    counts = ", ".join(f"{kinds.count(kind)} {said}" for kind, said in _SAID.items() if kind in kinds)
    inferred = " The labels were inferred from the extracted text." if result.inferred else ""
    return join(
        tag("p", f"{len(texts)} blocks: {counts}.{inferred}"),
        tag("ol", *_items(texts, kinds, result.probabilities), class_="blocks"),
    )


def _truth(sample: Sample) -> Markup:
    text = sample.truth.strip()
    if not text:
        return tag("p", "The page has no true text: nothing on it is main content.")
    return tag("details", tag("summary", "The true text"), tag("pre", _cut(text, LONGEST_TRUTH)))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


def _kind(main: bool, truth: bool, copy: bool) -> str:
    if copy:
        return "copy"
    if main:
        return "hit" if truth else "wrong"
    return "missed" if truth else "other"


def _items(texts: Sequence[str], kinds: Sequence[str], probabilities: Sequence[float] | None) -> Iterator[Markup]:
    for folds, numbers in groupby(range(len(texts)), lambda i: kinds[i] == "other"):
        items = [_item(texts[i], kinds[i], probabilities[i] if probabilities else None) for i in numbers]
        if folds and len(items) > FOLD:
            summary = tag("summary", f"{len(items)} blocks rightly left out")
            yield tag("li", tag("details", summary, tag("ol", *items, class_="blocks")), class_="other")
        else:
            yield from items


def _item(text: str, kind: str, probability: float | None) -> Markup:
    return tag(
        "li",
        tag("span", _SAID[kind], class_="what"),
        tag("span", "" if probability is None else f"{probability:.2f}", class_="p"),
        tag("span", _cut(text, LONGEST), class_="text"),
        class_=kind,
    )
