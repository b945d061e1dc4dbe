"""Measure a training recipe: the models of the folds, and other extractors, on the measured pages of all sets."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_dripper.workshop.dataset.facts import kept, visible
from scrapy_dripper.workshop.dataset.metrics import ScoreRow, format_table, summaries
from scrapy_dripper.workshop.dataset.neutral import words
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.sets import PageSet
from scrapy_dripper.workshop.dataset.text_table import aligned, markdown_table
from scrapy_dripper.workshop.evaluation.measure import OURS, scored
from scrapy_dripper.workshop.evaluation.peers import installed_peers
from scrapy_dripper.workshop.evaluation.set_table import SetTable, set_table
from scrapy_dripper.workshop.training.crossvalidate import out_of_fold, peer_texts
from scrapy_dripper.workshop.training.page_figures import PageFigures, Told
from scrapy_dripper.workshop.training.prepare import Example
from scrapy_dripper.workshop.training.stack import Split, Stack

CACHE = Path(".cache")
PEERS = ("trafilatura", "trafilatura-no-comments", "readability", "resiliparse")
"""Other extractors to measure if they are installed."""
TRAFILATURA = PEERS[0]


@dataclass(frozen=True, slots=True)
class FactRow:
    """The facts of a kind that a system keeps."""

    name: str
    system: str
    pages: int
    kept: float
    """Mean share over the pages."""
    under_half: float
    """Share of the pages that lose more than half of them."""
    words: float
    """Mean number of words of the extractions. Junk makes it easy to keep facts."""


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
    facts: Sequence[FactRow]
    """The shares of the facts that are kept, by kind and system, ours first."""
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
            *([f"facts that are kept\n{self.facts_text()}\n"] if self.facts else []),
            *(self._reason(name, ids) for name, ids in sorted(self.reasons.items())),
        ]
        return "\n".join(parts) + "\n"

    def facts_text(self, *, markdown: bool = False) -> str:
        """Return the table of facts."""
        rows = [
            (row.name, row.system, str(row.pages), f"{row.kept:.3f}", f"{row.under_half:.1%}", f"{row.words:.0f}")
            for row in self.facts
        ]
        return (markdown_table if markdown else aligned)(("facts", "", "pages", "kept", "pages < 0.5", "words"), rows)

    def _reason(self, name: str, ids: Sequence[str]) -> str:
        mine, theirs = (np.mean([self.scores[one][i].f1 for i in ids]) for one in (OURS, TRAFILATURA))
        return f"{name}: {len(ids)} pages, word F1 {mine:.4f}, Trafilatura {theirs:.4f}"

    def notes(self) -> dict[str, Any]:
        """Return the figures for the manifest."""
        return {
            "word_f1": round(float(np.mean([row.f1 for row in self.rows(OURS)])), 4),
            "trafilatura_word_f1": round(float(np.mean([row.f1 for row in self.rows(TRAFILATURA)])), 4),
            "set_f1": {row.name: round(row.systems[OURS].neutral.f1, 4) for row in self.table.groupings["set"]},
            "facts_kept": {row.name: round(row.kept, 4) for row in self.facts if row.system == OURS},
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
    texts_of: dict[str, dict[str, str]] = {OURS: {}}
    for sample, extraction in out_of_fold(samples, examples, folds, stack):
        if extraction.fallback_reason and not sample.facts:
            reasons.setdefault(extraction.fallback_reason.value, []).append(sample.id)
        if sample.facts:
            texts_of[OURS][sample.id] = extraction.text or ""
        else:
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
        texts = texts_of[peer] = peer_texts(sets, peer, version, CACHE, jobs)
        scores[peer] = {name: scored(s, texts[name], s.path.read_bytes()) for name, s in samples.items() if not s.facts}
    chosen = [sample for sample in samples.values() if not sample.facts]
    ours, theirs = scores[OURS], scores[TRAFILATURA]
    figures = PageFigures(
        [
            Told(s.part, told[s.id][0], s.page_type, told[s.id][1], ours[s.id].neutral.f1, theirs[s.id].neutral.f1)
            for s in chosen
            if s.id in told
        ]
    )
    table = set_table(chosen, scores)
    facts = fact_rows([sample for sample in samples.values() if sample.facts], texts_of)
    return Measured(chosen, scores, versions, reasons, table, figures, facts, [lines[name] for name in samples])


def fact_rows(samples: Sequence[Sample], texts: Mapping[str, Mapping[str, str]]) -> list[FactRow]:
    """Return the facts that the texts of each system keep. ``texts`` are by system and then by the page's id."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for sample in samples:
        page = visible(sample.read_html())
        for system, of_page in texts.items():
            text = of_page[sample.id]
            for name, share in kept(sample.facts, page, text).items():
                found[name, system].append((share, len(words(text))))
    names = dict.fromkeys(name for name, _ in found)
    return [
        FactRow(
            name,
            system,
            len(some),
            float(np.mean([share for share, _ in some])),
            float(np.mean([share < 0.5 for share, _ in some])),
            float(np.mean([size for _, size in some])),
        )
        for name in names
        for system in texts
        if (some := found[name, system])
    ]
