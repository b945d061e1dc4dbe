"""Convert annotated pages to training data for a language model: the simplified HTML and the label of each block."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.page import Page, PageError
from scrapy_dripper.workshop.dataset.alignment import align, tokens
from scrapy_dripper.workshop.dataset.pages import DataError, Sample, grouped_folds

SHARE = 0.5
"""Weight of every block in addition to its words, so that short blocks and pages without main content count as well."""
MAX_BLOCKS = 10_000
"""Later blocks of a page are left out, like in a crawl by default."""
HEAVIEST = 2.0
"""Maximum weight of a block for its words, in units of its page's main content."""


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """The n blocks of one page, ready for any tokenizer."""

    id: str
    host: str
    page_type: str
    blocks: list[str]
    """Simplified HTML, with ``_item_id`` 1 to n."""
    main: list[bool]
    weights: list[float]
    """Weight of each block in the loss, 1 on average."""


def labelled_page(sample: Sample, profile: str, truncate_chars: int | None) -> LabelledPage | None:
    """Return the blocks of a sample and their labels, or None for a page without blocks."""
    page = sample_page(sample, profile)
    if page is None:
        return None
    alignment = align(page.blocks.text, sample.truth)
    sizes = alignment.words
    weights = [min(HEAVIEST, size / max(30, len(tokens(sample.truth)))) + SHARE / max(20, len(sizes)) for size in sizes]
    weights = [weight * trust * sample.sure for weight, trust in zip(weights, alignment.weight.tolist(), strict=True)]
    mean = sum(weights) / len(weights) or 1.0
    return LabelledPage(
        id=sample.id,
        host=sample.host,
        page_type=sample.page_type,
        blocks=simplify(page, truncate_chars),
        main=alignment.main.tolist(),
        weights=[round(weight / mean, 4) for weight in weights],
    )


def sample_page(sample: Sample, profile: str) -> Page | None:
    """Return the page of a sample, cut by a profile, or None if it has no blocks."""
    rules = PROFILES[profile]
    try:
        page = rules.cut(rules.parse(sample.read_html()), sample.url)
    except PageError:
        return None
    return page.first_blocks(MAX_BLOCKS) if len(page.blocks) else None


def split(samples: list[Sample], folds: int, seed: int) -> tuple[list[Sample], list[Sample]]:
    """Return the samples for training, and those of the held-out fold, which is empty if ``folds`` is 0.

    Both keep their order, and share no host. Raise :exc:`DataError` if the hosts do not allow this number of folds.
    """
    if folds == 0:
        return samples, []
    if not 2 <= folds <= len({sample.host or sample.id for sample in samples}):
        raise DataError(f"--folds must be 0 or from 2 to the number of hosts (got {folds})")
    fold_of = grouped_folds([s.host for s in samples], [s.page_type for s in samples], folds, seed)
    learn = [sample for sample, fold in zip(samples, fold_of, strict=True) if fold]
    return learn, [sample for sample, fold in zip(samples, fold_of, strict=True) if not fold]


def write_pages(path: Path, samples: Sequence[Sample], profile: str, truncate_chars: int | None, jobs: int) -> int:
    """Write the labelled pages of samples as JSON Lines, using ``jobs`` processes, and return their number.

    Raise :exc:`DataError` if there are none.
    """
    work = partial(labelled_page, profile=profile, truncate_chars=truncate_chars)
    part = path.with_suffix(".part")
    written = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool, part.open("w", encoding="utf-8") as out:
        found: Iterable[LabelledPage | None] = pool.map(work, samples, chunksize=8)
        for page in tqdm(found, total=len(samples), desc="blocks", unit="page"):
            if page is not None:
                out.write(json.dumps(asdict(page), ensure_ascii=False) + "\n")
                written += 1
    if not written:
        part.unlink()
        raise DataError("no page has visible text")
    part.replace(path)
    return written


def read_pages(path: Path) -> Iterator[LabelledPage]:
    """Yield the pages of a file written by :func:`write_pages`. Raise :exc:`DataError` if it is damaged."""
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 - for the message
                yield LabelledPage(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise DataError(f"line {number} of {path} is not a labelled page ({error}): build it again") from None
