"""CPU time of the tagger's draft for a model with the profile v1.0, step by step.

    python benchmarks/draft.py [--pages 40]

The tagger reads a copy of the page that is cut by the profile native. The report says what that copy costs.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

from corpus import DEFAULT, sample
from report import heading, publish, table

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.extraction import Document
from scrapy_dripper.page import PageError, read
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.profiles import carry, native_copy
from scrapy_dripper.page.simplify import simplify

OUTPUT = Path(__file__).parent / "results" / "draft.txt"
T = TypeVar("T")


def main() -> None:
    """Print the report and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of the pages (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="file to write (default: %(default)s)")
    options = parser.parse_args()
    tagger = Tagger.load(Config())
    seconds: defaultdict[str, float] = defaultdict(float)

    def timed(step: str, function: Callable[[], T]) -> T:
        start = time.process_time()
        found = function()
        seconds[step] += time.process_time() - start
        return found

    chosen, _ = sample(options.data, options.pages, 0)
    count = 0
    for warm in (True, False):
        seconds.clear()
        for one in chosen:
            document = Document(one.path.read_bytes())
            try:
                page = timed("read and cut by v1.0", lambda: read(document, Config(), "v1.0"))  # noqa: B023
            except PageError:
                continue
            timed("simplify", lambda: simplify(page))  # noqa: B023
            native, nodes = timed("copy, and cut by native", lambda: native_copy(page))  # noqa: B023
            (labels,) = timed("tagger", lambda: tagger.label([native]))  # noqa: B023
            if isinstance(labels, Labels):
                for values in (labels.probabilities, labels.main):
                    timed("carry", lambda: carry(values, native, page, nodes))  # noqa: B023
            root = timed("of these: the copy alone", lambda: deepcopy(page.tree.nodes[0]))  # noqa: B023
            timed("of these: the cut alone", lambda: cut(root))  # noqa: B023
            count += not warm
    total = sum(value for name, value in seconds.items() if not name.startswith("of these"))
    rows = [(name, f"{1000 * value / count:.1f}", f"{value / total:.1%}") for name, value in seconds.items()]
    lines = [
        heading("draft.py", ["scrapy-dripper", "lxml", "onnxruntime"]),
        f"CPU milliseconds a page, mean of {count} pages:",
        table(("step", "ms", "share"), [*rows, ("all", f"{1000 * total / count:.1f}", "")]),
    ]
    publish("\n\n".join(lines), options.output)


if __name__ == "__main__":
    main()
