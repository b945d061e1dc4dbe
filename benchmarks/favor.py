"""Effect of DRIPPER_FAVOR: precision and recall of each set for a range of recall weights.

The curve of a set shows the bundled model, or another one, with different weights in its manifest. The three marks on
it are the values of the setting. Pages are extracted completely, from their bytes to their text.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from report import heading, publish, publish_svg, table
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.pages import DataError, Sample
from scrapy_dripper.dataset.prf import PRF
from scrapy_dripper.dataset.sets import SetChoice, load_sets
from scrapy_dripper.engines.tagger.model import MANIFEST, bundled
from scrapy_dripper.evaluation.measure import scored
from scrapy_dripper.evaluation.report.charts import colour
from scrapy_dripper.evaluation.report.svg import Markup, label, tag
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor

WEIGHTS = (0.125, 0.25, 0.4, 0.6, 1.0, 1.6, 2.5, 4.0, 8.0)
FAVORS = ("precision", "balanced", "recall")
MEAN = "mean of sets"
DATA = Path(__file__).parents[1] / ".cache"
SETS = [str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")]
OUTPUT = Path(__file__).parent / "results" / "favor.txt"
BATCH = 32
SEED = 20261122

STYLE = """
text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1d2329; }
text.small { font-size: 12px; fill: #5b6770; } .grid { stroke: #e6eaed; } .axis { stroke: #6b7680; }
"""
INK = "#1d2329"
WIDTH, HEIGHT, LEFT, TOP, SIDE = 960.0, 560.0, 66.0, 24.0, 470.0

Figures = Mapping[str, PRF]
"""Figures by set; the last one is the mean."""


def with_weight(model: Path, folder: Path, weight: float) -> Path:
    """Return a copy of a model folder in which the balanced weight of recall is multiplied by ``weight``."""
    copy = folder / f"{weight:g}"
    shutil.copytree(model, copy)
    manifest = json.loads((copy / MANIFEST).read_text(encoding="utf-8"))
    weights = manifest["decoding"]["recall_weights"]
    manifest["decoding"]["recall_weights"] = {name: weight * value for name, value in weights.items()}
    (copy / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return copy


def measured(samples: Sequence[Sample], config: Config, what: str) -> Figures:
    """Return precision, recall and F1 of each set, and their mean."""
    rows: dict[str, list[PRF]] = {sample.part: [] for sample in samples}
    extractor = Extractor(config)
    for start in tqdm(range(0, len(samples), BATCH), desc=what, unit="batch", leave=False, disable=None):
        batch = samples[start : start + BATCH]
        html = [sample.path.read_bytes() for sample in batch]
        documents = [Document(body, sample.url) for body, sample in zip(html, batch, strict=True)]
        for sample, body, found in zip(batch, html, extractor.extract(documents), strict=True):
            rows[sample.part].append(scored(sample, found.text or "", body).neutral)
    extractor.close()
    figures = {name: mean(some) for name, some in rows.items()}
    return {**figures, MEAN: mean(list(figures.values()))}


def mean(rows: Sequence[PRF]) -> PRF:
    """Return the means of the three figures."""
    return PRF(*(sum(column) / len(rows) for column in zip(*rows, strict=True)))


def chosen(samples: Sequence[Sample], most: int) -> list[Sample]:
    """Return at most ``most`` pages of each set, in a fixed random order; all for 0."""
    parts: dict[str, list[Sample]] = {}
    for sample in samples:
        parts.setdefault(sample.part, []).append(sample)
    return [s for part in parts.values() for s in random.Random(SEED).sample(part, min(most or len(part), len(part)))]


def report(curve: Mapping[float, Figures], points: Mapping[str, Figures], counts: Mapping[str, int]) -> str:
    """Return a table for each set, with the three points followed by the sweep."""
    parts = []
    for name in next(iter(points.values())):
        rows = [(favor, points[favor][name]) for favor in FAVORS]
        rows += [(f"times {weight:g}", curve[weight][name]) for weight in curve]
        pages = f", {counts[name]} pages" if name in counts else ""
        head = [name + pages, "precision", "recall", "F1"]
        parts.append(table(head, [[what, *(f"{value:.4f}" for value in prf)] for what, prf in rows]))
    return "\n\n".join(parts)


def draw(curve: Mapping[float, Figures], points: Mapping[str, Figures], path: Path) -> None:
    """Write precision over recall as an SVG file: a line for each set, and the three points on it."""
    values = [value for figures in (*curve.values(), *points.values()) for prf in figures.values() for value in prf[:2]]
    low = min(int(min(values) * 20) / 20, 0.95)

    def at(prf: PRF) -> tuple[float, float]:
        return LEFT + (prf.recall - low) / (1 - low) * SIDE, TOP + (1 - prf.precision) / (1 - low) * SIDE

    parts: list[Markup] = []
    steps = round((1 - low) / 0.05)
    for k in range(steps + 1):
        share, along = low + k * 0.05, k / steps * SIDE
        x, y = LEFT + along, TOP + SIDE - along
        parts += [
            tag("line", x1=x, y1=TOP, x2=x, y2=TOP + SIDE, class_="grid"),
            tag("line", x1=LEFT, y1=y, x2=LEFT + SIDE, y2=y, class_="grid"),
            label(x, TOP + SIDE + 18, f"{share:.2f}", "middle", "small"),
            label(LEFT - 8, y + 4, f"{share:.2f}", "end", "small"),
        ]
    parts.append(label(LEFT + SIDE / 2, TOP + SIDE + 42, "recall of words", "middle", "small"))
    middle = TOP + SIDE / 2
    turned = f"translate({LEFT - 50:.0f} {middle:.0f}) rotate(-90)"
    parts.append(tag("text", "precision of words", text_anchor="middle", transform=turned))
    side = LEFT + SIDE + 40
    for i, name in enumerate(next(iter(points.values()))):
        ink, width = (INK, 3.2) if name == MEAN else (colour(i), 1.8)
        route = " ".join("{:.1f},{:.1f}".format(*at(figures[name])) for figures in curve.values())
        parts.append(tag("polyline", points=route, fill="none", stroke=ink, stroke_width=width))
        parts += [_mark(favor, *at(points[favor][name]), ink) for favor in FAVORS]
        y = TOP + 14 + 24 * i
        parts += [
            tag("line", x1=side, y1=y, x2=side + 24, y2=y, stroke=ink, stroke_width=width),
            label(side + 34, y + 5, name),
        ]
    for k, favor in enumerate(FAVORS):
        y = TOP + SIDE - 60 + 24 * k
        parts += [_mark(favor, side + 12, y, INK), label(side + 34, y + 5, f'DRIPPER_FAVOR = "{favor}"')]
    publish_svg(path, WIDTH, HEIGHT, STYLE, parts)


def _mark(favor: str, x: float, y: float, fill: str) -> Markup:
    """Return a triangle, a circle or a square."""
    if favor == "balanced":
        return tag("circle", cx=x, cy=y, r=5.0, fill=fill)
    if favor == "recall":
        return tag("rect", x=x - 5, y=y - 5, width=10.0, height=10.0, fill=fill)
    return tag("path", d=f"M{x:.1f} {y - 6:.1f}l6 11h-12z", fill=fill)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="[NAME=]FOLDER", default=SETS, help="annotated pages")
    parser.add_argument("--pages", type=int, default=100, metavar="N", help="of each set, 0 for all (%(default)s)")
    parser.add_argument("--model", type=Path, default=bundled(), help="folder of a tagger (the bundled one)")
    parser.add_argument(
        "--weights", type=float, nargs="+", default=WEIGHTS, metavar="W", help="multiples of the weight of recall"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the report (%(default)s)")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="the plot (beside the report)")
    options = parser.parse_args()
    try:
        sets = load_sets(SetChoice.parse(text) for text in options.sets)
    except (DataError, ValueError) as error:
        parser.error(str(error))
    samples = chosen([sample for one in sets for sample in one.samples if sample.measure], options.pages)
    counts = {part: sum(s.part == part for s in samples) for part in {s.part for s in samples}}
    points = {favor: measured(samples, Config(model=str(options.model), favor=favor), favor) for favor in FAVORS}
    curve = {}
    with TemporaryDirectory() as folder:
        for weight in sorted(options.weights):
            model = with_weight(options.model, Path(folder), weight)
            curve[weight] = measured(samples, Config(model=str(model)), f"times {weight:g}")
    head = heading("favor.py", ["scrapy-dripper", "trafilatura", "lxml", "numpy", "onnxruntime"])
    note = "Words as in scrapy_dripper/dataset/neutral.py; means over pages, so F1 is not that of the two before it."
    publish(f"{head}\n\n{note}\n\n{report(curve, points, counts)}", options.output)
    draw(curve, points, options.plot or options.output.with_suffix(".svg"))


if __name__ == "__main__":
    main()
