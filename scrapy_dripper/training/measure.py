"""Measure a training recipe: the models of the folds, and other extractors, on the measured pages of all sets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.dataset.metrics import ScoreRow, format_table, summaries
from scrapy_dripper.dataset.pages import Sample
from scrapy_dripper.dataset.sets import PageSet
from scrapy_dripper.evaluation.measure import OURS, scored
from scrapy_dripper.evaluation.peers import installed_peers
from scrapy_dripper.evaluation.set_table import SetTable, set_table
from scrapy_dripper.training.crossvalidate import out_of_fold, peer_texts
from scrapy_dripper.training.page_figures import PageFigures, Told
from scrapy_dripper.training.prepare import Example
from scrapy_dripper.training.stack import Split, Stack

CACHE = Path(".cache")
PEERS = ("trafilatura", "trafilatura-no-comments", "readability", "resiliparse")
"""Other extractors to measure if they are installed."""
TRAFILATURA = PEERS[0]


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores on the measured pages of all sets."""

    samples: Sequence[Sample]
    scores: Mapping[str, Mapping[str, ScoreRow]]
    """Scores by system, ours first, and then by the page's id."""
    versions: Mapping[str, str]
    """The versions of the other extractors."""
    reasons: Mapping[str, Sequence[str]]
    """The ids of the pages without an answer of the model, by reason."""
    table: SetTable
    pages: PageFigures
    lines: Sequence[str]
    """The extracted texts, as JSON Lines for ``scrapy-dripper evaluate --predictions``."""

    @property
    def main_part(self) -> str:
        """The row of the first set's first page, for which page types are known."""
        return self.samples[0].part

    def rows(self, system: str) -> list[ScoreRow]:
        """Return the scores of a system on the first set."""
        return [self.scores[system][s.id] for s in self.samples if s.part == self.main_part]

    def report(self, folds: int) -> str:
        """Return all figures as text."""
        parts = [
            f"\nsets, {folds} folds grouped by host, from HTML to text",
            self.table.text(),
            *(
                f"\n{self.main_part} by page type, {name}\n{format_table(summaries(self.rows(name)))}"
                for name in (OURS, TRAFILATURA)
            ),
            f"\npages as a whole\n{self.pages.text(TRAFILATURA)}\n",
            *(self._reason(name, ids) for name, ids in sorted(self.reasons.items())),
        ]
        return "\n".join(parts) + "\n"

    def _reason(self, name: str, ids: Sequence[str]) -> str:
        mine, theirs = (np.mean([self.scores[one][i].f1 for i in ids]) for one in (OURS, TRAFILATURA))
        return f"{name}: {len(ids)} pages, word F1 {mine:.4f}, Trafilatura {theirs:.4f}"

    def notes(self) -> dict[str, Any]:
        """Return the figures for the manifest."""
        return {
            "word_f1": round(float(np.mean([row.f1 for row in self.rows(OURS)])), 4),
            "trafilatura_word_f1": round(float(np.mean([row.f1 for row in self.rows(TRAFILATURA)])), 4),
            "set_f1": {row.name: round(row.systems[OURS].neutral.f1, 4) for row in self.table.groupings["set"]},
            "quality_correlation": round(self.pages.correlation, 4),
            "page_type_accuracy": round(self.pages.accuracy, 4),
            "peers": dict(self.versions),
        }


def measure(
    sets: Sequence[PageSet], examples: Mapping[str, Example], folds: Sequence[Split], stack: Stack, jobs: int
) -> Measured:
    """Measure the models of the folds on pages that they have not seen."""
    samples = {sample.id: sample for one in sets for sample in one.samples if sample.measure}
    scores: dict[str, dict[str, ScoreRow]] = {OURS: {}}
    reasons: dict[str, list[str]] = {}
    lines: dict[str, str] = {}
    told: dict[str, tuple[str, float]] = {}
    for sample, extraction in out_of_fold(samples, examples, folds, stack):
        if extraction.fallback_reason:
            reasons.setdefault(extraction.fallback_reason.value, []).append(sample.id)
        scores[OURS][sample.id] = scored(sample, extraction.text or "", sample.path.read_bytes())
        if extraction.page_type is not None and extraction.quality is not None:
            told[sample.id] = extraction.page_type, extraction.quality
        line = {
            "id": sample.id,
            "page_type": extraction.page_type,
            "quality": extraction.quality,
            "text": extraction.text or "",
            "labels": extraction.labels,
            "probabilities": [round(p, 4) for p in extraction.probabilities],
        }
        lines[sample.id] = json.dumps(line, ensure_ascii=False)
    versions = installed_peers(PEERS)
    for peer, version in versions.items():
        texts = peer_texts(sets, peer, version, CACHE, jobs)
        scores[peer] = {name: scored(s, texts[name], s.path.read_bytes()) for name, s in samples.items()}
    chosen = list(samples.values())
    ours, theirs = scores[OURS], scores[TRAFILATURA]
    figures = PageFigures(
        [
            Told(s.part, told[s.id][0], s.page_type, told[s.id][1], ours[s.id].neutral.f1, theirs[s.id].neutral.f1)
            for s in chosen
            if s.id in told
        ]
    )
    table = set_table(chosen, scores)
    return Measured(chosen, scores, versions, reasons, table, figures, [lines[s.id] for s in chosen])
