"""The HTML page of a corpus report, without scripts and without external files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy_dripper.evaluation.report.style import STYLE
from scrapy_dripper.evaluation.report.svg import Markup, drawing, hint, join, label, tag

if TYPE_CHECKING:
    from scrapy_dripper.corpus.figures import Ratios, Texts

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
OURS, KEPT = "#0b62a4", "#2a8a57"
MOST_BARS = 25
"""Maximum number of bars of a plot. All further values share one bar."""
_WIDTH, _LEFT, _RIGHT = 960.0, 190.0, 190.0


@dataclass
class Corpus:
    """The content of a report: the counts of the tasks, the texts before and after cleaning, and the cleaning steps."""

    name: str
    files: int
    totals: Mapping[str, Counter[str]]
    texts: Texts
    steps: Sequence[Mapping[str, Any]]
    kept: Texts | None
    ratios: Ratios | None = None


def page(corpus: Corpus) -> str:
    """Return the report."""
    reader = corpus.totals.get("FastWARC", Counter())
    skipped = _with_prefix(reader, "skipped/")
    counts, kept = corpus.texts.counts, corpus.kept
    lengths = [("extracted", corpus.texts.lengths, OURS), *([("clean", kept.lengths, KEPT)] if kept else [])]
    qualities = [("extracted", corpus.texts.qualities, OURS), *([("clean", kept.qualities, KEPT)] if kept else [])]
    body = tag(
        "main",
        tag("h1", "What is in the corpus"),
        tag("p", _sentence(corpus), class_="soft"),
        _section("Documents in and out of each step", "", _steps(corpus, sum(skipped.values()))),
        _section("Records that are not pages", "Records of the archives, by reason.", bars(skipped)),
        _section("Who decided", "Documents by the engine or fallback that extracted them.", bars(counts["source"])),
        _section("Why the model did not decide", "Documents of a fallback, by reason.", bars(counts["reason"])),
        _section("Page types", "Documents before cleaning.", bars(counts["page_type"])),
        _section("Languages", "Documents after cleaning.", bars(kept.counts["language"])) if kept else "",
        _section("Length", "Characters of a text; the scale is logarithmic.", histogram(lengths, _length)),
        _section("Quality", "The word F1 that the model expects of itself.", histogram(qualities, _quality)),
        _ratios(corpus.ratios) if corpus.ratios is not None else "",
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"scrapy-dripper: {corpus.name}"),
        tag("style", Markup(STYLE)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def bars(values: Mapping[str, int], notes: Mapping[str, str] | None = None, *, ordered: bool = False) -> Markup:
    """Return a plot with a bar for each value and its share, the greatest first or in the given order."""
    if not any(values.values()):
        return tag("p", "None.")
    shown = list(values.items()) if ordered else sorted(values.items(), key=lambda item: (-item[1], item[0]))
    if len(shown) > MOST_BARS:
        rest = sum(number for _, number in shown[MOST_BARS:])
        shown = [*shown[:MOST_BARS], (f"{len(shown) - MOST_BARS} more", rest)]
    most, total = max(number for _, number in shown), sum(number for _, number in shown)
    parts: list[Markup] = []
    for at, (name, number) in enumerate(shown):
        y = 6.0 + at * 24
        width = number / most * (_WIDTH - _LEFT - _RIGHT)
        said = (notes or {}).get(name, "") if ordered else f"({number / total:.1%})"
        parts += [
            label(_LEFT - 12, y + 14, name if len(name) <= 26 else name[:25] + "…", "end"),
            tag("rect", hint(f"{name}: {number:,}"), x=_LEFT, y=y, width=max(width, 1.0), height=18.0, fill=OURS),
            label(_LEFT + width + 8, y + 14, f"{number:,} {said}".strip(), "start", "small"),
        ]
    return drawing(_WIDTH, 12.0 + len(shown) * 24, "Bars", *parts)


def histogram(series: Sequence[tuple[str, Sequence[int], str]], name: Any) -> Markup:
    """Return a histogram for each series, one below the other. ``name`` returns the labels of bins."""
    parts: list[Markup] = []
    height, gap = 90.0, 42.0
    for at, (title, counts, colour) in enumerate(series):
        base = 16 + at * (height + gap) + height
        most, total = max(counts) or 1, sum(counts) or 1
        step = (_WIDTH - _LEFT - 50) / len(counts)
        parts.append(label(_LEFT - 12, base - height / 2, title, "end"))
        parts.append(label(_LEFT - 12, base - height / 2 + 17, f"{sum(counts):,}", "end", "small"))
        parts.append(tag("line", x1=_LEFT, y1=base, x2=_WIDTH - 50, y2=base, class_="axis"))
        for bin_, number in enumerate(counts):
            x, tall = _LEFT + bin_ * step, number / most * height
            said = hint(f"{number:,} ({number / total:.1%})")
            parts.append(tag("rect", said, x=x + 1, y=base - tall, width=step - 2, height=tall, fill=colour))
            if name(bin_):
                parts.append(label(x, base + 16, name(bin_), "middle", "small"))
        if name(len(counts)):
            parts.append(label(_WIDTH - 50, base + 16, name(len(counts)), "middle", "small"))
    return drawing(_WIDTH, 16 + len(series) * (height + gap), "Histogram", *parts)


def _sentence(corpus: Corpus) -> str:
    texts, kept = corpus.texts, corpus.kept
    said = (
        f"{corpus.name}: {texts.rows:,} documents in {corpus.files:,} files, {texts.characters:,} characters of text."
    )
    return said if kept is None else said + f" Clean: {kept.rows:,} documents, {kept.characters:,} characters."


def _steps(corpus: Corpus, skipped: int) -> Markup:
    dripper = corpus.totals.get("Dripper", Counter())
    pages, texts = dripper["pages"], corpus.texts
    values = {"records": pages + skipped, "pages": pages, "with content": texts.rows - texts.empty}
    notes = {"pages": _lost(values["records"], pages), "with content": _lost(pages, values["with content"])}
    rows = []
    for step in corpus.steps:
        reasons = ", ".join(f"{name} {number:,}" for name, number in step["dropped"].items())
        rows.append([step["name"], f"{step['before']:,}", f"{step['after']:,}", reasons])
        if step["name"] != "text":  # the same as "with content"
            name = f"after {step['name']}"
            values[name], notes[name] = step["after"], _lost(step["before"], step["after"])
    head = [tag("th", name) for name in ("step of cleaning", "in", "out")] + [tag("th", "dropped", class_="left")]
    body = [tag("tr", *(tag("td", one) for one in row[:3]), tag("td", row[3], class_="text left")) for row in rows]
    table = tag("div", tag("table", tag("tr", *head), *body), class_="scroll") if rows else ""
    return join(bars(values, notes, ordered=True), table)


def _lost(before: int, after: int) -> str:
    return f"(−{(before - after) / before:.1%})" if after < before else ""


def _ratios(ratios: Ratios) -> Markup:
    counts = [0] * 20
    for value in ratios.values:
        counts[min(int((value + 1) * 10), 19)] += 1
    said = (
        "The difference between the lengths of our text and Trafilatura's, divided by the greater one: right of zero, "
        f"ours is longer (AICC, arXiv:2511.16397, figure 3). The sample has {len(ratios.values):,} documents; "
        f"{ratios.left_out:,} more could not be compared. Documents without any text are left out. Our texts have "
        f"{ratios.ours:,} characters in total, and those of Trafilatura {ratios.theirs:,}"
        + (f": ours are {ratios.ours / ratios.theirs:.2f} times as long." if ratios.theirs else ".")
        + " Longer is not better: Trafilatura may have missed main content, or our texts may have too much clutter."
    )
    plot = histogram([("documents", counts, OURS)], lambda at: f"{at / 10 - 1:+.1f}" if at % 2 == 0 else "")
    return _section("Length beside Trafilatura", said, plot)


def _section(title: str, said: str, *content: object) -> Markup:
    return tag("section", tag("h2", title), tag("p", said) if said else "", *content)


def _with_prefix(counter: Counter[str], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): number for name, number in counter.items() if name.startswith(prefix)}


def _length(at: int) -> str:
    return "" if at % 4 else f"{10 ** (at // 4):,}"


def _quality(at: int) -> str:
    return "" if at % 4 else f"{at / 20:.1f}"
