"""Predict pages with a model in training: the labels as the engine would decode them, and the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tqdm import tqdm
from transformers import Qwen3ForCausalLM

from scrapy_dripper.config import Config
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.engines.qwen3.windows import average, windows
from scrapy_dripper.output import write
from scrapy_dripper.workshop.dataset.alignment import align
from scrapy_dripper.workshop.dataset.metrics import ScoreRow, score
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.training.qwen3.model import decode
from scrapy_dripper.workshop.training.qwen3.pages import LabelledPage, sample_page
from scrapy_dripper.workshop.training.qwen3.sequences import Encoder


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The model's answer for a sample."""

    sample: Sample
    text: str
    probabilities: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]
    """Labels from the ground truth."""

    @property
    def row(self) -> ScoreRow:
        """The score of the text."""
        sample = self.sample
        return score(
            sample.id, sample.page_type, self.text, sample.truth, sample.with_snippets, sample.without_snippets
        )


def predict(model: Qwen3ForCausalLM, encoder: Encoder, page: LabelledPage, longest: int) -> npt.NDArray[np.float64]:
    """Return p(main) of each block of a page. Pages with over ``longest`` tokens are read in overlapping windows."""

    def fits(start: int, end: int) -> bool:
        return len(encoder.encode(page, start, end).ids) <= longest

    labels = (encoder.grammar.main, encoder.grammar.other)
    n = len(page.blocks)
    parts = [range(n)] if fits(0, n) else windows(encoder.costs(page), longest - encoder.around, fits)
    found = [decode(model, encoder.encode(page, part.start, part.stop), labels) for part in parts]
    return average(parts, found, n)


def predictions(
    model: Qwen3ForCausalLM,
    encoder: Encoder,
    samples: Iterable[Sample],
    profile: str,
    truncate_chars: int | None,
    longest: int,
) -> Iterator[Prediction]:
    """Yield the model's answer for each sample that has blocks."""
    model.eval()
    for sample in tqdm(list(samples), desc="held-out pages", unit="page"):
        page = sample_page(sample, profile)
        if page is None:
            continue
        blocks = simplify(page, truncate_chars)
        unlabelled = LabelledPage(sample.id, sample.host, sample.page_type, blocks, [False] * len(blocks), [])
        probabilities = predict(model, encoder, unlabelled, longest)
        main = probabilities > 0.5
        text = write(page, main, Config()).text if main.any() else ""
        yield Prediction(sample, text, probabilities, align(page.blocks.text, sample.truth).main)
