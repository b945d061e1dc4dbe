"""The answer for a page does not depend on the pages beside it, bit for bit."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper.choose import ScoredPage, choose
from scrapy_dripper.engines.base import Labels, quality_of
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper.testing import page
from tests.html_strategies import documents
from tests.programs import python

BATCHES = int(os.environ.get("BATCHES", "40"))
"""Number of random batches. Twenty thousand take about ten minutes."""
EXAMPLES = Path(__file__).parents[2] / "example_project" / "example" / "website" / "pages"


def made(seed: int) -> str:
    """Return a page with a random number of paragraphs, lists, tables and menus."""
    rng = random.Random(seed)
    word = "tide harbour moon sailor 12 Price, read more, © 2026. Home contact".split()
    parts = []
    for _ in range(rng.randint(1, 60)):
        text = " ".join(rng.choices(word, k=rng.choice((1, 3, 12, 60))))
        tag = rng.choice(("p", "li", "h2", "div class=menu", "td", "div class=comment", "pre"))
        inner = f"<a href=/x>{text}</a>" if rng.random() < 0.3 else text
        parts.append(f"<{tag}>{inner}</{tag.partition(' ')[0]}>")
    return f"<title>{text}</title><body>{''.join(parts)}"


def pages() -> list[Page]:
    real = [path.read_bytes() for path in sorted(EXAMPLES.rglob("*.html"))]
    return [page(html, "https://a.example/x") for html in (*real, *map(made, range(120)))]


def values(page: Page, answer: object) -> tuple[bytes, bytes, Mapping[str, float], float | None]:
    assert isinstance(answer, Labels)
    return (
        answer.probabilities.tobytes(),
        (main := choose(ScoredPage(page, answer)).by_page).tobytes(),
        answer.page_types,
        quality_of(answer, main),
    )


def test_any_batch(tagger: Tagger) -> None:
    known = pages()
    alone = [values(page, tagger.label([page])[0]) for page in known]
    assert len({one[:2] for one in alone}) > 100
    rng = random.Random(0)
    for i in range(BATCHES):
        some = rng.choices(range(len(known)), k=rng.choice((2, 3, 8, 32)))
        for k, answer in zip(some, tagger.label([known[k] for k in some]), strict=True):
            assert values(known[k], answer) == alone[k], f"batch {i}, page {k}"


THREADS = """
from scrapy_dripper import Extractor
from tests.engines.test_batches import made
for found in Extractor().extract([made(i) for i in range(20)]):
    print(found.labels, found.probabilities, found.quality)
"""


def test_any_number_of_threads() -> None:
    """The libraries for numbers take it from the environment, and from the number of cores."""
    said = set()
    for threads in ("1", "3"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        said.add(python("-c", THREADS, **dict.fromkeys(names, threads)).stdout)

    assert len(said) == 1
    assert max(said).count("\n") == 20


@settings(max_examples=25, deadline=None)
@given(st.lists(documents(), min_size=2, max_size=8))
def test_odd_pages_in_a_batch(tagger: Tagger, htmls: list[str]) -> None:
    some = [cut(parse(html)) for html in htmls]
    some = [one for one in some if len(one.blocks)]
    if some:
        together = [values(page, answer) for page, answer in zip(some, tagger.label(some), strict=True)]
        assert together == [values(page, tagger.label([page])[0]) for page in some]


def test_numbers_of_a_page_far_down_a_batch(tagger: Tagger) -> None:
    """Sums over a page are exact, however much stands before it in the batch."""
    long = page("<body>" + "".join(f"<p>{'tide ' * (i % 37 + 1)}{i / 7}</p>" for i in range(3_000)))
    short = page(made(7))

    *_, last = tagger.label([long, long, long, short])
    assert values(short, last) == values(short, tagger.label([short])[0])
    assert np.isfinite(last.probabilities).all() if isinstance(last, Labels) else False
