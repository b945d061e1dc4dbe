"""Write the results of a benchmark: command, date, machine and versions, followed by tables."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from scrapy_dripper.workshop.evaluation.report.svg import Markup, join, tag


def heading(script: str, packages: Sequence[str]) -> str:
    """Return the facts that are needed to repeat a run."""
    arguments = shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]])
    return "\n".join(
        [
            f"$ {arguments}",
            f"{datetime.date.today().isoformat()}, {_processor()}, {os.cpu_count()} cores, {platform.system()}",
            f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages),
        ]
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned text, with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in (head, ["-" * width for width in widths], *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def publish(text: str, path: Path) -> None:
    """Print a report and write it to a file."""
    print(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def publish_svg(path: Path, width: float, height: float, style: str, parts: Sequence[Markup]) -> None:
    """Write a standalone SVG file, with a white background."""
    svg = tag(
        "svg",
        tag("style", Markup(style)),
        tag("rect", width=width, height=height, fill="#fff"),
        join(*parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg + "\n", encoding="utf-8")
