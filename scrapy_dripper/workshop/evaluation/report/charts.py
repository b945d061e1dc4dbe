"""The charts of a report."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scrapy_dripper.workshop.dataset.bootstrap import Interval
from scrapy_dripper.workshop.evaluation.blocks import Reliability
from scrapy_dripper.workshop.evaluation.report.svg import Markup, drawing, hint, join, label, tag

COLOURS = ("#0b62a4", "#d1690a", "#2a8a57", "#8a4fb5", "#b8860b", "#c23b64", "#5b6770")
"""Colours of the systems, ours first. People with common kinds of colour blindness can distinguish them."""

_WIDTH = 960.0
_BINS = 20


def colour(index: int) -> str:
    """Return the colour of a system by its number."""
    return COLOURS[index % len(COLOURS)]


def legend(names: Sequence[str]) -> Markup:
    """Return the names of systems with their colours."""
    items = [tag("span", tag("i", style=f"background:{colour(i)}"), name) for i, name in enumerate(names)]
    return tag("p", *items, class_="legend")


def distributions(systems: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Return a histogram of page scores for each system, with its mean, all on the same scale."""
    left, right, row, gap = 170.0, 20.0, 60.0, 18.0
    width = _WIDTH - left - right
    counts = [_histogram(values) for _, values in systems]
    shares = [[n / max(1, len(values)) for n in count] for count, (_, values) in zip(counts, systems, strict=True)]
    top = max((share for one in shares for share in one), default=1.0) or 1.0
    parts: list[Markup] = []
    for i, (name, values) in enumerate(systems):
        base = gap + i * (row + gap) + row
        mean = sum(values) / max(1, len(values))
        for k, share in enumerate(shares[i]):
            height = share / top * row
            title = hint(f"{counts[i][k]} pages ({share:.1%}) from {k / _BINS:.2f} to {(k + 1) / _BINS:.2f}")
            step = width / _BINS
            x = left + k * step
            parts.append(tag("rect", title, x=x + 1, y=base - height, width=step - 2, height=height, fill=colour(i)))
        at = left + mean * width
        poor = sum(value < 0.5 for value in values) / max(1, len(values))
        parts += [
            tag("line", x1=left, y1=base, x2=left + width, y2=base, class_="axis"),
            tag("line", x1=at, y1=base - row, x2=at, y2=base + 4, class_="mean"),
            label(at - 5, base - row + 9, f"mean {mean:.3f}", "end", "small"),
            label(left - 12, base - row / 2, name, "end"),
            label(left - 12, base - row / 2 + 17, f"{poor:.1%} under 0.5", "end", "small"),
        ]
    bottom = gap + len(systems) * (row + gap)
    parts += [label(left + t / 5 * width, bottom + 14, f"{t / 5:.1f}", "middle", "small") for t in range(6)]
    parts.append(label(left + width / 2, bottom + 32, "word F1 of a page", "middle", "small"))
    return drawing(_WIDTH, bottom + 40, "Distribution of word F1 over pages, for each system", *parts)


def cumulative(systems: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Return the cumulative share of pages by score, with a line for each system. Lower is better."""
    left, right, top, height = 170.0, 20.0, 12.0, 300.0
    width = _WIDTH - left - right
    parts: list[Markup] = []
    for k in range(6):
        x, y = left + k / 5 * width, top + height - k / 5 * height
        parts += [
            tag("line", x1=left, y1=y, x2=left + width, y2=y, class_="grid"),
            label(left - 10, y + 4, f"{k * 20} %", "end", "small"),
            label(x, top + height + 18, f"{k / 5:.1f}", "middle", "small"),
        ]
    steps = 100
    for i, (name, values) in enumerate(systems):
        ordered = sorted(values)
        shares = [bisect_right(ordered, k / steps) / max(1, len(ordered)) for k in range(steps + 1)]
        path = " ".join(
            f"{left + k / steps * width:.1f},{top + height - share * height:.1f}" for k, share in enumerate(shares)
        )
        parts.append(tag("polyline", hint(name), points=path, fill="none", stroke=colour(i), stroke_width=2.2))
    parts.append(
        label(
            left + width / 2,
            top + height + 37,
            "word F1 (a line shows the share of pages with at most that)",
            "middle",
            "small",
        )
    )
    return drawing(_WIDTH, top + height + 46, "Share of pages up to each word F1, for each system", *parts)


def _histogram(values: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for value in values:
        counts[min(int(value * _BINS), _BINS - 1)] += 1
    return counts


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a dot plot: a name, and a mean with its interval for each system."""

    name: str
    note: str
    values: Sequence[Interval]


def dots(title: str, rows: Sequence[Row], names: Sequence[str]) -> Markup:
    """Return a dot plot of means with intervals on a scale from 0 to 1: a row for each group, a dot for each system."""
    return _dots(title, "mean word F1, with its 95 % interval", rows, names, (0.0, 1.0), 0, lambda v: f"{v:.3f}")


def differences(title: str, rows: Sequence[Row], names: Sequence[str]) -> Markup:
    """Return a plot of differences with intervals around zero. Ours is better on the right side."""
    edges = [edge for row in rows for value in row.values for edge in (value.low, value.high)]
    low, high = min([0.0, *edges]), max([0.0, *edges])
    low, high = math.floor(low * 20 - 0.2) / 20, math.ceil(high * 20 + 0.2) / 20
    axis = "ours less the peer, in word F1 (right of zero: ours is better)"
    return _dots(title, axis, rows, names, (low, high), 1, lambda v: f"{v:+.3f}")


def _dots(
    title: str,
    axis: str,
    rows: Sequence[Row],
    names: Sequence[str],
    domain: tuple[float, float],
    first: int,
    shown: Callable[[float], str],
) -> Markup:
    left, right, line, gap = 170.0, 70.0, 14.0, 14.0
    width = _WIDTH - left - right
    low, high = domain

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * width

    height = line * len(names) + gap
    bottom = 8 + len(rows) * height
    parts: list[Markup] = []
    ticks = _ticks(low, high)
    for tick in ticks:
        kind = "zero" if abs(tick) < 1e-9 and low < 0 else "grid"
        parts.append(tag("line", x1=at(tick), y1=4, x2=at(tick), y2=bottom, class_=kind))
        parts.append(label(at(tick), bottom + 15, f"{tick:+.1f}" if low < 0 else f"{tick:.1f}", "middle", "small"))
    for r, row in enumerate(rows):
        top = 8 + r * height
        middle = top + line * len(names) / 2
        if r:
            parts.append(tag("line", x1=8, y1=top - gap / 2, x2=_WIDTH - 8, y2=top - gap / 2, class_="rule"))
        parts.append(label(left - 14, middle + (0 if row.note and len(names) > 1 else 5), row.name, "end"))
        if row.note and len(names) > 1:
            parts.append(label(left - 14, middle + 15, row.note, "end", "small"))
        for i, value in enumerate(row.values):
            y = top + line * i + line / 2
            paint = colour(i + first)
            said = f"{names[i]}, {row.name}: {shown(value.mean)} [{shown(value.low)}, {shown(value.high)}]"
            parts += [
                tag("line", x1=at(value.low), y1=y, x2=at(value.high), y2=y, stroke=paint, class_="interval"),
                tag("circle", hint(said), cx=at(value.mean), cy=y, r=4.2, fill=paint),
                label(_WIDTH - right + 14, y + 4, shown(value.mean), "start", "small"),
            ]
    parts.append(label(left + width / 2, bottom + 33, axis, "middle", "small"))
    return drawing(_WIDTH, bottom + 42, title, *parts)


def _ticks(low: float, high: float) -> list[float]:
    step = 0.1 if high - low <= 0.8 else 0.2
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def calibration(columns: Sequence[tuple[str, Reliability]]) -> Markup:
    """Return a reliability diagram for each column, side by side, with the size of each bin below."""
    side, gap, left = 340.0, 100.0, 64.0
    parts: list[Markup] = []
    for c, (name, one) in enumerate(columns):
        x0, y0 = left + c * (side + gap), 40.0
        total = sum(one.weight) or 1.0
        most = max(one.weight, default=1.0) or 1.0
        n = len(one.weight)
        parts.append(label(x0, y0 - 16, f"by {name}: expected calibration error {one.error:.3f}"))
        for tick in (0, 0.25, 0.5, 0.75, 1):
            x, y = x0 + tick * side, y0 + side - tick * side
            parts += [
                tag("line", x1=x0, y1=y, x2=x0 + side, y2=y, class_="grid"),
                label(x0 - 8, y + 4, f"{tick:g}", "end", "small"),
                label(x, y0 + side + 112, f"{tick:g}", "middle", "small"),
            ]
        parts.append(tag("line", x1=x0, y1=y0 + side, x2=x0 + side, y2=y0, class_="ideal"))
        points = []
        for k in range(n):
            bar = one.weight[k] / most * 70
            title = f"{one.weight[k]:,.0f} {name} ({one.weight[k] / total:.1%})"
            step = side / n
            parts.append(
                tag(
                    "rect",
                    hint(title),
                    x=x0 + k * step + 1,
                    y=y0 + side + 94 - bar,
                    width=step - 2,
                    height=bar,
                    class_="bar",
                )
            )
            if one.weight[k]:
                x, y = x0 + one.probability[k] * side, y0 + side - one.share[k] * side
                said = f"predicted {one.probability[k]:.3f}, actual {one.share[k]:.3f}: {title}"
                points.append((x, y, said))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(tag("polyline", points=path, fill="none", stroke=COLOURS[0], stroke_width=2))
        parts += [tag("circle", hint(said), cx=x, cy=y, r=4.2, fill=COLOURS[0]) for x, y, said in points]
        parts.append(
            label(x0 + side / 2, y0 + side + 130, "probability of main that the model gave", "middle", "small")
        )
        middle = y0 + side / 2
        parts.append(
            tag(
                "text",
                f"share that is main ({name})",
                text_anchor="middle",
                class_="small",
                transform=f"translate({x0 - 42:.0f} {middle:.0f}) rotate(-90)",
            )
        )
    return drawing(_WIDTH, 530, "Reliability of the probabilities", join(*parts))
