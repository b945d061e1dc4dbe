"""Plot passes and positions against the quality of a draft, as an SVG file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from report import publish_svg

from scrapy_dripper.evaluation.report.charts import colour
from scrapy_dripper.evaluation.report.svg import Markup, label, tag

STYLE = """
text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1d2329; }
text.small { font-size: 12px; fill: #5b6770; } .grid { stroke: #e6eaed; } .axis { stroke: #6b7680; }
"""
WIDTH, HEIGHT, LEFT, TOP, SIDE, GAP = 960, 440, 66.0, 56.0, 380.0, 100.0
PLOT = 300.0
LOWEST = 0.5  # of the share of labels that are right


@dataclass(frozen=True)
class Line:
    """One size of page: (share of the draft that is right, passes, positions), and passes without a draft."""

    name: str
    points: Sequence[tuple[float, float, float]]
    chunked: float


def draw(lines: Sequence[Line], path: Path) -> None:
    """Write the plot: passes on the left, positions beyond the prompt on the right, both on logarithmic scales."""
    positions = [point[2] for line in lines for point in line.points]
    least_positions = max(1.0, min(positions))
    most_passes = max(2.0, *(line.chunked for line in lines))
    most_positions = max(2 * least_positions, *positions)
    parts = [
        *_panel(LEFT, "forward passes", 1.0, most_passes),
        *_panel(LEFT + SIDE + GAP, "positions beyond the prompt", least_positions, most_positions),
    ]
    for i, line in enumerate(lines):
        for x0, column, low, high in (
            (LEFT, 1, 1.0, most_passes),
            (LEFT + SIDE + GAP, 2, least_positions, most_positions),
        ):
            at = [(x0 + _across(point[0]), _up(point[column], low, high)) for point in line.points]
            route = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
            parts.append(tag("polyline", points=route, fill="none", stroke=colour(i), stroke_width=2.2))
            parts += [tag("circle", cx=x, cy=y, r=4.0, fill=colour(i)) for x, y in at]
        y = _up(line.chunked, 1.0, most_passes)
        parts.append(tag("line", x1=LEFT, y1=y, x2=LEFT + SIDE, y2=y, stroke=colour(i), stroke_dasharray="5 5"))
        parts.append(tag("circle", cx=LEFT + 8 + 130 * i, cy=22.0, r=5.0, fill=colour(i)))
        parts.append(label(LEFT + 20 + 130 * i, 27, line.name))
    parts.append(label(LEFT + 20 + 130 * len(lines), 27, "dashed: no draft, one pass per block", class_="small"))
    publish_svg(path, WIDTH, HEIGHT, STYLE, parts)


def _across(accuracy: float) -> float:
    return (accuracy - LOWEST) / (1 - LOWEST) * SIDE


def _up(value: float, low: float, high: float) -> float:
    return TOP + PLOT - math.log(max(value, low) / low) / math.log(high / low) * PLOT


def _panel(x0: float, title: str, low: float, high: float) -> list[Markup]:
    parts = [label(x0 + SIDE / 2, TOP + PLOT + 42, "share of the draft's labels that are right", "middle", "small")]
    for k in range(6):
        share = LOWEST + k * (1 - LOWEST) / 5
        x = x0 + _across(share)
        parts += [
            tag("line", x1=x, y1=TOP, x2=x, y2=TOP + PLOT, class_="grid"),
            label(x, TOP + PLOT + 18, f"{share:.1f}", "middle", "small"),
        ]
    ticks = [m * 10**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5)]
    for value in ticks:
        if low <= value <= high:
            y = _up(value, low, high)
            parts += [
                tag("line", x1=x0, y1=y, x2=x0 + SIDE, y2=y, class_="grid"),
                label(x0 - 8, y + 4, f"{value:,.0f}", "end", "small"),
            ]
    parts.append(tag("line", x1=x0, y1=TOP + PLOT, x2=x0 + SIDE, y2=TOP + PLOT, class_="axis"))
    middle = TOP + PLOT / 2
    parts.append(
        tag("text", title, text_anchor="middle", transform=f"translate({x0 - 50:.0f} {middle:.0f}) rotate(-90)")
    )
    return parts
