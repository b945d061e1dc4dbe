"""Count the tokens that simplified HTML and labels save a language model (Dripper paper, section 5.2, table 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scrapy_dripper.data import Extraction
from scrapy_dripper.page import Page
from scrapy_dripper.page.simplify import FOOT, HEAD, simplify
from scrapy_dripper.workshop.dataset.text_table import aligned

ALL = "all"
FORMS = ("raw HTML", "simplified HTML", "Main-HTML", "Markdown")


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a decoder. The defaults are those of Qwen3-0.6B."""

    layers: int = 28
    width: int = 1024

    def flops(self, read: float, written: float) -> float:
        """Return the FLOPs for reading N tokens and writing M tokens, as the paper estimates them (equation 1).

        They are L d (N² + MN + M²) + L d² (N + M) for L layers of width d.
        """
        attention = read**2 + written * read + written**2
        return self.layers * self.width * attention + self.layers * self.width**2 * (read + written)


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


def tokens_of(
    html: str, page: Page, extraction: Extraction, count: Callable[[str], int], truncate_chars: int | None = 200
) -> Tokens:
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
        count(HEAD + "".join(simplify(page, truncate_chars)) + FOOT),
        count(extraction.main_html or ""),
        count(extraction.markdown or ""),
        count("{" + answer + "}"),
    )


@dataclass(frozen=True, slots=True)
class Line:
    """Mean and median of one quantity."""

    mean: float
    median: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Line:
        """Return the mean and the median of one or more values."""
        some = list(values)
        return cls(fmean(some), median(some))

    def over(self, other: Line) -> Line:
        """Return the ratio of the means, and the ratio of the medians."""
        return Line(self.mean / max(other.mean, 1e-9), self.median / max(other.median, 1e-9))


@dataclass(frozen=True, slots=True)
class Savings:
    """The paper's table 1: input, output and cost of a model that reads the page, and of one that labels its blocks."""

    without: tuple[Line, Line, Line]
    """Raw HTML in, Markdown out, and the cost in FLOPs."""
    with_: tuple[Line, Line, Line]
    """Simplified HTML in, labels out, and the cost."""

    @property
    def ratio(self) -> tuple[Line, Line, Line]:
        """``with_`` divided by ``without``, for each of the three."""
        first, second, third = (a.over(b) for a, b in zip(self.with_, self.without, strict=True))
        return first, second, third


def savings(pages: Sequence[Tokens], shape: Shape | None = None) -> Savings:
    """Return the table for one or more pages."""
    flops = (shape or Shape()).flops

    def lines(pairs: list[tuple[int, int]]) -> tuple[Line, Line, Line]:
        return Line.of(a for a, _ in pairs), Line.of(b for _, b in pairs), Line.of(flops(a, b) for a, b in pairs)

    naive = [(one.raw, one.markdown) for one in pages]
    return Savings(lines(naive), lines([(one.simplified, one.answer) for one in pages]))


def by_type(pages: Iterable[Tokens]) -> dict[str, list[Tokens]]:
    """Return all pages, followed by the pages of each type, the most frequent type first."""
    found: dict[str, list[Tokens]] = {}
    every = list(pages)
    for one in every:
        found.setdefault(one.page_type, []).append(one)
    return {ALL: every, **dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))}


def report(pages: Iterable[Tokens], unit: str, shape: Shape | None = None) -> str:
    """Return the tables as text."""
    groups = by_type(pages)
    head = ["page type", "pages", *FORMS, *(f"{form}, %" for form in FORMS[1:])]
    body = [[name, f"{len(some):,}", *_cells(some)] for name, some in groups.items()]
    found = savings(groups[ALL], shape)
    rows = [["without", *_numbers(found.without)], ["with", *_numbers(found.with_)]]
    ratio = [f"{value:.2%}" for line in found.ratio for value in (line.mean, line.median)]
    names = [f"{name}, {what}" for name in ("input", "output", "cost") for what in ("mean", "median")]
    return (
        f"Mean length in {unit}, and in per cent of the raw HTML\n{aligned(head, body)}\n\n"
        "A language model that reads raw HTML and writes Markdown, and one that reads simplified HTML and labels "
        f"blocks; the cost in FLOPs is an estimate\n{aligned(['pre-processing', *names], [*rows, ['ratio', *ratio]])}"
    )


def to_json(pages: Iterable[Tokens], unit: str, shape: Shape | None = None) -> Mapping[str, object]:
    """Return the figures as JSON values."""
    groups = by_type(pages)
    found = savings(groups[ALL], shape)
    return {
        "unit": unit,
        "page_types": {
            name: {
                "pages": len(some),
                **{form: _plain(Line.of(one.forms[k] for one in some)) for k, form in enumerate(FORMS)},
            }
            for name, some in groups.items()
        },
        **{
            name: {what: _plain(line) for what, line in zip(("input", "output", "flops"), lines, strict=True)}
            for name, lines in (("without", found.without), ("with", found.with_), ("ratio", found.ratio))
        },
    }


def _plain(line: Line) -> dict[str, float]:
    return {"mean": line.mean, "median": line.median}


def _cells(some: Sequence[Tokens]) -> list[str]:
    lines = [Line.of(one.forms[k] for one in some) for k in range(len(FORMS))]
    return [*(f"{line.mean:,.0f}" for line in lines), *(f"{100 * line.over(lines[0]).mean:.1f}" for line in lines[1:])]


def _numbers(lines: tuple[Line, Line, Line]) -> list[str]:
    read, written, cost = lines
    lengths = [f"{value:,.1f}" for line in (read, written) for value in (line.mean, line.median)]
    return [*lengths, f"{cost.mean:.3e}", f"{cost.median:.3e}"]
