"""Structures that Markdown preserves: ours compared with html2text, Trafilatura, markdownify and html-to-markdown.

All converters get the pages of ``tests/structured`` with their URLs, and are configured to keep as much as they can.
The checks are also there, in ``features/checks.py``.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from common import RESULTS, options
from tqdm import tqdm
from writers import writers

from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output import write
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.scores import markdown_table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the pages and the checks are part of the tests

try:
    from tests.structured.articles import articles, within
    from tests.structured.features.checks import BASE_URL, FEATURES
except ImportError as error:
    raise SystemExit(
        f"{error}. What the checks need comes with: pip install -e '.[cpu]' -e 'lab[benchmark]'"
    ) from error

OURS = "scrapy-dripper"


def ours(html: str, url: str) -> str:
    """Write the Markdown of a page as the extractor does when all blocks are main."""
    page = cut(parse(html), url)
    return write(page, mask_of(page, np.ones(len(page.blocks), dtype=np.bool_)), Config()).markdown


WRITERS = {OURS: ours, **writers()}


def features() -> list[list[str]]:
    """Return a row for each structure: its name, and yes, part or no for ours, ours in an article, and the others."""
    rows = []
    with Extractor(Config(fallback="none")) as extractor:
        for feature in tqdm(FEATURES, unit="structure", desc="structures"):
            page = f"<!DOCTYPE html><html><body><article>{feature.html}</article></body></html>"
            verdicts = [feature.verdict(writer(page, BASE_URL)) for writer in WRITERS.values()]
            documents = [Document(html, BASE_URL) for html in articles(feature.html)]
            found = [within(one.markdown or "") for one in extractor.extract(documents)]
            labelled = [feature.verdict(markdown) if markdown else "no" for markdown in found]
            worst = max(labelled, key=("yes", "part", "no").index)
            rows.append([feature.title, verdicts[0], worst, *verdicts[1:]])
    return rows


def report() -> str:
    """Return the text of ``benchmarks/results/structures.md``."""
    verdicts = features()
    totals = ["**yes**", *(str(sum(row[i] == "yes" for row in verdicts)) for i in range(1, len(WRITERS) + 2))]
    ours, *others = WRITERS
    versions = ", ".join(f"{name} {version(name)}" for name in WRITERS if name != OURS)
    return f"""# Structures that Markdown keeps

Written by `python benchmarks/structures.py` with {versions}.

In the table, *yes* says that the structure is preserved, *part* that only the content is, and *no* that the content is
lost, duplicated or mixed with other content.

Each structure is a small page in the markup of a real generator, with a check that any correct Markdown passes
(`tests/structured/features`). Wherever possible, the checks look at the rendered Markdown, so every correct way to
write something counts.

scrapy-dripper has two columns. The first is its writer alone, with all blocks main. The second is what users get: the
structure is between two paragraphs of an article, and the tagger labels the blocks. Its verdict is the worst of three
pages: a blog, a documentation page, and a page without telling class names (`tests/structured/articles.py`).

{markdown_table(("structure", ours, f"{ours} in an article", *others), [*verdicts, totals])}

`benchmarks/writers.py` has the options of the others.
"""


def main() -> None:
    """Write the report."""
    parser = options(__doc__)
    parser.set_defaults(output=RESULTS / "structures.md")
    arguments = parser.parse_args()
    text = report()
    print(text)
    arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
