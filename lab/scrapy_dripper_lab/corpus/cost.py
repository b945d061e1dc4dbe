"""Count the tokens that simplified HTML and labels save a language model (Dripper paper, section 5.2, table 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scrapy_dripper.data import Extraction
from scrapy_dripper.engines.qwen3.profile import FOOT, HEAD, simplify
from scrapy_dripper.page import Page
from scrapy_dripper_lab.scores import ReportTable

FORMS = ("raw HTML", "simplified HTML", "Main-HTML", "Markdown")
LAYERS, WIDTH = 28, 1024
"""The size of Qwen3-0.6B."""
CONTEXTS = (8_192, 32_768)
"""Lengths of contexts. The second one is that of the published weights."""
TRUNCATE_CHARS = 200
"""Where texts are cut in the simplified HTML of the published weights."""


def flops(read: float, written: float, layers: int = LAYERS, width: int = WIDTH) -> float:
    """Return the FLOPs for reading N tokens and writing M tokens, as the paper estimates them (equation 1).

    They are L d (N² + MN + M²) + L d² (N + M) for L layers of width d.
    """
    attention = read**2 + written * read + written**2
    return layers * width * attention + layers * width**2 * (read + written)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The lengths of the forms of a page."""

    page_type: str
    raw: int
    simplified: int
    main_html: int
    markdown: int
    answer: int
    """Length of the labels of all blocks, as JSON."""

    @property
    def forms(self) -> tuple[int, int, int, int]:
        """The lengths in the order of :data:`FORMS`."""
        return self.raw, self.simplified, self.main_html, self.markdown


def tokens_of(html: str, page: Page, extraction: Extraction, count: Callable[[str], int]) -> Tokens:
    """Return the lengths of the forms of a page.

    ``page`` must be cut by the profile whose simplified HTML is to be measured. The labels are those of the extraction
    if it has one for each block. Otherwise, all of them are ``other``, which hardly changes the number of tokens.
    """
    n = len(page.blocks)
    labels = extraction.labels if len(extraction.labels) == n else (False,) * n
    answer = ",".join(f'"{k}":"{"main" if main else "other"}"' for k, main in enumerate(labels, 1))
    return Tokens(
        extraction.page_type or "other",
        count(html),
        count(HEAD + "".join(simplify(page, TRUNCATE_CHARS)) + FOOT),
        count(extraction.main_html or ""),
        count(extraction.markdown or ""),
        count("{" + answer + "}"),
    )


def lengths(pages: Sequence[Tokens], unit: str) -> ReportTable:
    """Return the mean lengths of all pages, followed by those of each type, the most frequent type first."""
    groups: dict[str, list[Tokens]] = {}
    for page in pages:
        groups.setdefault(page.page_type, []).append(page)
    rows = []
    for name, some in {"all": pages, **dict(sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])))}.items():
        means = [fmean(page.forms[k] for page in some) for k in range(len(FORMS))]
        rows.append([name, len(some), *means, *(mean / max(means[0], 1e-9) for mean in means[1:])])
    shares = {f"{form} / raw": ".1%" for form in FORMS[1:]}
    columns = {"page type": "", "pages": ",", **dict.fromkeys(FORMS, ",.0f"), **shares}
    return ReportTable(f"Mean length in {unit}, and in per cent of the raw HTML", columns, rows)


def savings(pages: Sequence[Tokens]) -> ReportTable:
    """Return the paper's table 1: input, output and cost of a model that reads raw HTML and writes Markdown, and of one
    that reads simplified HTML and labels its blocks.
    """
    figures = []
    for pairs in ([(one.raw, one.markdown) for one in pages], [(one.simplified, one.answer) for one in pages]):
        columns = [*zip(*pairs, strict=True), [flops(*pair) for pair in pairs]]
        figures.append([float(f(column)) for column in columns for f in (fmean, median)])
    without, with_ = figures
    ratio = [one / max(other, 1e-9) for one, other in zip(with_, without, strict=True)]
    names = [f"{name}, {what}" for name in ("input", "output", "FLOPs") for what in ("mean", "median")]
    title = (
        "A language model that reads raw HTML and writes Markdown, and one that reads simplified HTML and labels "
        "blocks; the cost in FLOPs is an estimate"
    )
    rows = [["without", *without], ["with", *with_], ["ratio", *ratio]]
    return ReportTable(title, {"pre-processing": "", **dict.fromkeys(names, ",.4g")}, rows)


def contexts(pages: Sequence[Tokens], instructions: int, unit: str) -> ReportTable:
    """Return how long prompts are with their answers, and the shares of the pages that contexts are too short for."""
    sizes = [instructions + one.simplified + one.answer for one in pages]
    over = [sum(size > most for size in sizes) / len(sizes) for most in CONTEXTS]
    columns = {"mean": ",.0f", "median": ",.0f", "longest": ",", **{f"over {most:,}": ".1%" for most in CONTEXTS}}
    row = [fmean(sizes), median(sizes), max(sizes), *over]
    return ReportTable(
        f"Length in {unit} of a prompt ({instructions:,} without the page) and its answer", columns, [row]
    )
