"""Compare the labels of pages that a Qwen3 model reads whole with those of the same pages in windows.

    python benchmarks/windows.py FOLDER [--data .cache/wcxb-dev]

FOLDER is a prepared model that was trained on pages. The pages are those of the fold that its training held out. Each
page is cut to the blocks that fit into the model's context, so that it can be read whole. Much shorter pages are left
out. Draft labels never affect the result, so all of them are "other" here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from corpus import DEFAULT
from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper.dataset.alignment import align
from scrapy_dripper.dataset.pages import load_pages
from scrapy_dripper.engines.base import Engine, EngineError, Labels, Limits
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.front import Front
from scrapy_dripper.engines.qwen3.prepared import load_prepared
from scrapy_dripper.page.page import Page, Wishes
from scrapy_dripper.training.qwen3.pages import sample_page, split

OUTPUT = Path(__file__).parent / "results" / "windows.txt"
SHARES = (2 / 3, 1 / 2, 1 / 3, 1 / 6)
"""Sizes of a window, as shares of the whole page."""
LEAST = 0.6
"""Share of the context that a page must fill."""


class Nothing:
    """A tagger that says other throughout."""

    name, profile, limits = "nothing", "native", Limits()

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page."""
        sizes = [len(page.blocks) for page in pages]
        return [Labels(np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.bool_)) for n in sizes]

    def close(self) -> None:
        """Do nothing."""


def main() -> None:
    """Print the report and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="prepared model")
    parser.add_argument("--data", type=Path, default=DEFAULT.parent, help="annotated pages (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=80, help="most pages (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file to write (default: %(default)s)")
    options = parser.parse_args()
    prepared = load_prepared(options.model)
    decoder = Decoder(prepared)
    tagger: Engine = Nothing()
    sizes = [round(share * prepared.context) for share in SHARES]
    fronts = [Front(prepared, tagger, max_tokens=size) for size in (None, *sizes)]

    whole: list[npt.NDArray[np.bool_]] = []
    right: list[npt.NDArray[np.bool_]] = []
    divided: list[list[npt.NDArray[np.bool_]]] = [[] for _ in sizes]
    parts = [0] * len(sizes)
    _, held = split(load_pages(options.data), 5, 0)
    with tqdm(total=options.pages, unit="page") as bar:
        for sample in held:
            page = sample_page(sample, prepared.profile)
            if page is None or len(whole) >= options.pages:
                continue
            page = replace(page, oversize="truncate", wishes=Wishes(window_tokens=None))
            (labels,) = fronts[0].label([page], decoder.decode, decoder.limit)
            if not isinstance(labels, Labels) or labels.work["positions"] < LEAST * prepared.context:
                continue
            n = labels.work["draft"]
            page = replace(page.first_blocks(n), oversize="window")
            whole.append(labels.main[:n])
            right.append(align(page.blocks.text, sample.truth).main[:n])
            for k, front in enumerate(fronts[1:]):
                (found,) = front.label([page], decoder.decode, decoder.limit)
                assert isinstance(found, Labels)
                divided[k].append(found.main)
                parts[k] += found.work["windows"]
            bar.update()
    decoder.close()
    a, truth = np.concatenate(whole), np.concatenate(right)
    rows = [["whole", "1.0", "", f"{(a == truth).mean():.3f}", ""]]
    for size, share, answers, windows in zip(sizes, SHARES, divided, parts, strict=True):
        b = np.concatenate(answers)
        per_page = np.array([(x != y).mean() for x, y in zip(whole, answers, strict=True)])
        rows.append(
            [
                f"{size:,} tokens, {share:.2f} of the context",
                f"{windows / len(whole):.1f}",
                f"{(a != b).mean():.1%}",
                f"{(b == truth).mean():.3f}",
                f"{(per_page == 0).mean():.0%}",
            ]
        )
    lines = [
        heading("windows.py", ["scrapy-dripper", "onnxruntime"]),
        f"{prepared.name}, {prepared.attention}, {prepared.dtype}, context {prepared.context:,}: {len(whole)} pages "
        f"that it has not seen, {len(a):,} blocks. Each is cut to what the context holds.",
        table(("read", "windows", "labels that differ", "labels right", "pages without a difference"), rows),
    ]
    publish("\n\n".join(lines), options.output)


if __name__ == "__main__":
    main()
