"""Measure a model's predictions for whole pages: page types, and quality compared with the actual F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from scrapy_dripper.engines.tagger.page_stage import PAGE_TYPES
from scrapy_dripper.workshop.dataset.text_table import aligned, markdown_table

EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Edges of the quality bins."""
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Quality thresholds below which a page goes to the other extractor."""


@dataclass(frozen=True, slots=True)
class Told:
    """The predictions of the model for a page, and the truth."""

    part: str
    page_type: str
    true_type: str
    quality: float
    f1: float
    """F1 with a neutral title, 0 to 1."""
    other_f1: float
    """F1 of the extractor to which pages of low quality would go."""


@dataclass(frozen=True, slots=True)
class PageFigures:
    """Figures over the pages with an answer of the model."""

    pages: Sequence[Told]

    @property
    def correlation(self) -> float:
        """Pearson's correlation of quality and F1; 0 if one of them is constant."""
        quality, f1 = (np.array([getattr(page, name) for page in self.pages]) for name in ("quality", "f1"))
        varies = len(self.pages) > 1 and quality.std() > 0 and f1.std() > 0
        return float(np.corrcoef(quality, f1)[0, 1]) if varies else 0.0

    @property
    def accuracy(self) -> float:
        """Share of correct types among the pages of known types; 0 without any."""
        known = [page.page_type == page.true_type for page in self.pages if page.true_type in PAGE_TYPES]
        return float(np.mean(known)) if known else 0.0

    def text(self, other: str, *, markdown: bool = False) -> str:
        """Return all tables as aligned text or as Markdown. ``other`` is the name of the other extractor."""
        table = markdown_table if markdown else aligned
        return "\n\n".join(
            [
                f"Quality and F1 correlate with {self.correlation:.3f}. Page types: {self.accuracy:.3f} are right.",
                table(("quality", "pages", "mean quality", "mean F1"), self._bins()),
                table(("quality under", "pages", "F1", f"F1 of {other}", "F1 of all pages, cascade"), self._cascade()),
                table(("page type", "pages", "found", "recall", "precision"), self._types()),
            ]
        )

    def _bins(self) -> list[list[str]]:
        rows = []
        for low, high in pairwise(EDGES):
            some = [page for page in self.pages if low <= page.quality < high or page.quality == high == EDGES[-1]]
            if some:
                told, true = np.mean([p.quality for p in some]), np.mean([p.f1 for p in some])
                rows.append([f"{low:g} to {high:g}", str(len(some)), f"{told:.3f}", f"{true:.3f}"])
        return rows

    def _cascade(self) -> list[list[str]]:
        rows = []
        for threshold in THRESHOLDS:
            low = [page for page in self.pages if page.quality < threshold]
            if low:
                ours, theirs = np.mean([p.f1 for p in low]), np.mean([p.other_f1 for p in low])
                both = np.mean([p.other_f1 if p.quality < threshold else p.f1 for p in self.pages])
                rows.append([f"{threshold:g}", str(len(low)), f"{ours:.3f}", f"{theirs:.3f}", f"{both:.4f}"])
        every = np.mean([p.f1 for p in self.pages]) if self.pages else float("nan")
        return [["0 (off)", "0", "", "", f"{every:.4f}"], *rows]

    def _types(self) -> list[list[str]]:
        rows = []
        for name in PAGE_TYPES:
            true = [page for page in self.pages if page.true_type == name]
            found = [page for page in self.pages if page.page_type == name and page.true_type in PAGE_TYPES]
            right = sum(page.page_type == name for page in true)
            if true or found:
                shares = (f"{right / n:.3f}" if n else "" for n in (len(true), len(found)))
                rows.append([name, str(len(true)), str(len(found)), *shares])
        return rows
