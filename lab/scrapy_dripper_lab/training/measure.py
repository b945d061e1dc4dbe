"""Measure a training recipe: the models of the folds, on pages of unseen hosts, beside other extractors."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.engines.tagger.later_stages import PAGE_TYPES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.learning.metrics import words
from scrapy_dripper_lab.evaluation.figures import set_tables, type_table
from scrapy_dripper_lab.evaluation.measure import OURS, scored
from scrapy_dripper_lab.evaluation.peers import PEERS, installed_peers, quiet
from scrapy_dripper_lab.folds import grouped_folds, related_hosts
from scrapy_dripper_lab.scores import ReportTable, kept, mean, visible
from scrapy_dripper_lab.sets import AnnotatedPage, DataError, PageSet
from scrapy_dripper_lab.training.fit import Split
from scrapy_dripper_lab.training.prepare import in_processes

BATCH = 32


def splits(samples: Sequence[AnnotatedPage], known: Container[str], folds: int) -> tuple[list[Split], Split]:
    """Return the folds, grouped by host across all sets, and the split that trains on all pages.

    Every fold measures its own pages. It trains on those of the others that may be used for training and whose hosts
    are not in the fold. A copy belongs to the fold of its page. Pages that are not in ``known`` have no blocks to train
    on. The folds only depend on the measured pages with a complete truth, and not on weights or training pages, so that
    seeds and recipes can be compared. Raise :exc:`DataError` if the hosts do not allow this number of folds.
    """
    hosts = dict(zip((s.id for s in samples), related_hosts([s.host for s in samples]), strict=True))
    measured = [s for s in samples if s.measure and not s.facts]
    most = len({hosts[s.id] or s.id for s in measured})
    if not 2 <= folds <= most:
        raise DataError(f"--folds must be from 2 to the number of hosts, {most} (got {folds})")
    kinds = [f"{s.part}: {s.page_type}" for s in measured]
    fold_of = grouped_folds([hosts[s.id] for s in measured], kinds, folds).tolist()
    # Pages of facts do not change the folds of the others.
    fold_at = {hosts[s.id]: fold for s, fold in zip(measured, fold_of, strict=True)}
    of_facts = [s for s in samples if s.measure and s.facts]
    for s in of_facts:
        host = hosts[s.id] or s.id
        fold_of.append(fold_at.setdefault(host, crc32(host.encode()) % folds))
    measured += of_facts
    learnt = [s for s in samples if s.learn and s.id in known]
    found: list[Split] = []
    for fold in range(folds):
        own = [s for s, f in zip(measured, fold_of, strict=True) if f == fold]
        ids, shut = {s.id for s in own}, {hosts[s.id] for s in own} - {""}
        found.append(
            Split(
                seen=tuple(s.id for s in learnt if (s.copy_of or s.id) not in ids and hosts[s.id] not in shut),
                held=tuple(s.id for s in learnt if (s.copy_of or s.id) in ids),
                measured=tuple(s.id for s in own),
            )
        )
    return found, Split(tuple(s.id for s in learnt), ())


def out_of_fold(
    samples: Mapping[str, AnnotatedPage], fold_of: Mapping[str, int], folder: Path
) -> Iterator[tuple[AnnotatedPage, Extraction]]:
    """Yield each measured sample with its complete extraction, from bytes to text.

    The model has not seen the sample's host: ``fold_of`` is the fold of each page, and ``folder`` has the model of each
    fold, which is loaded like any other. Pages that it cannot process go to the default fallback, as in a crawl.
    """
    folds = sorted(set(fold_of.values()))
    bar = tqdm(total=len(fold_of), desc=f"{len(folds)} folds", unit="page")
    for fold in folds:
        waiting = (samples[name] for name, own in fold_of.items() if own == fold)
        with Extractor(Config(model=str(folder / str(fold)))) as extractor:
            while batch := list(islice(waiting, BATCH)):
                documents = [Document(sample.path.read_bytes(), sample.url) for sample in batch]
                yield from zip(batch, extractor.extract(documents), strict=True)
                bar.update(len(batch))
    bar.close()


COMPARED = ("trafilatura", "trafilatura-no-comments", "readability", "resiliparse")
"""Other extractors to measure if they are installed."""
TRAFILATURA = COMPARED[0]


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores on the measured pages of all sets."""

    versions: Mapping[str, str]
    """The versions of the other extractors."""
    tables: Sequence[ReportTable]
    """The figures by set, the first one first, by language, by length, and, for the first set, by page type."""
    facts: ReportTable
    """The shares of the facts that are kept, by kind and system, ours first."""
    correlation: float
    """Pearson's correlation of quality and word F1; 0 if one of them is constant."""
    accuracy: float
    """Share of correct types among the pages of known types; 0 without any."""
    lines: Sequence[str]
    """The extracted texts, as JSON Lines for ``scrapy-dripper evaluate --predictions``."""

    def report(self, folds: int) -> str:
        """Return all figures as text."""
        tables = [*self.tables, *([self.facts] if self.facts.rows else [])]
        parts = [f"\n{folds} folds grouped by host, from HTML to text", *(table.text() for table in tables)]
        parts.append(f"Quality and F1 correlate with {self.correlation:.3f}; {self.accuracy:.3f} of types are right.")
        return "\n\n".join(parts) + "\n"

    def notes(self) -> dict[str, Any]:
        """Return the figures for the manifest."""
        first = self.tables[0].records()[0]
        return {
            "word_f1": round(first["word F1"], 4),
            "wcxb_f1": round(first["WCXB F1"], 4),
            "trafilatura_word_f1": round(first[TRAFILATURA], 4),
            "set_f1": {row[0]: round(row[2], 4) for row in self.tables[0].rows},
            "facts_kept": {row[0]: round(row[3], 4) for row in self.facts.rows if row[1] == OURS},
            "quality_correlation": round(self.correlation, 4),
            "page_type_accuracy": round(self.accuracy, 4),
            "peers": dict(self.versions),
        }


def measure(sets: Sequence[PageSet], fold_of: Mapping[str, int], folder: Path, jobs: int) -> Measured:
    """Measure the models of the folds on pages that they have not seen (see :func:`out_of_fold`)."""
    samples = {sample.id: sample for one in sets for sample in one.samples if sample.measure}
    lines: dict[str, str] = {}
    predicted: dict[str, tuple[str, float]] = {}
    texts: dict[str, dict[str, str]] = {OURS: {}}
    for sample, extraction in out_of_fold(samples, fold_of, folder):
        if extraction.page_type is not None and extraction.quality is not None:
            predicted[sample.id] = extraction.page_type, extraction.quality
        texts[OURS][sample.id] = extraction.text or ""
        line = {
            "id": sample.id,
            "page_type": extraction.page_type,
            "quality": extraction.quality,
            "text": extraction.text or "",
            "labels": extraction.labels,
            "probabilities": [round(p, 4) for p in extraction.probabilities],
        }
        lines[sample.id] = json.dumps(line, ensure_ascii=False)
    versions = installed_peers(COMPARED)
    paths = [sample.path for sample in samples.values()]
    found = list(in_processes(partial(peer_texts, list(versions)), paths, jobs, "other extractors"))
    texts |= {peer: dict(zip(samples, of_peer, strict=True)) for peer, *of_peer in zip(versions, *found, strict=True)}
    chosen = [sample for sample in samples.values() if not sample.facts]
    html = {sample.id: sample.path.read_bytes() for sample in chosen}
    scores = {system: {s.id: scored(s, some[s.id], html[s.id]) for s in chosen} for system, some in texts.items()}
    known = [s for s in chosen if s.id in predicted]
    quality, f1 = np.array([(predicted[s.id][1], scores[OURS][s.id].word.f1) for s in known]).reshape(-1, 2).T
    varies = len(known) > 1 and quality.std() > 0 and f1.std() > 0
    typed = [predicted[s.id][0] == s.page_type for s in known if s.page_type in PAGE_TYPES]
    return Measured(
        versions,
        [*set_tables(chosen, scores), type_table([s for s in chosen if s.part == chosen[0].part], scores)],
        fact_table([sample for sample in samples.values() if sample.facts], texts),
        float(np.corrcoef(quality, f1)[0, 1]) if varies else 0.0,
        mean(typed) if typed else 0.0,
        [lines[name] for name in samples],
    )


def peer_texts(names: Sequence[str], path: Path) -> list[str]:
    """Return the text of each named extractor, with its default options, for a page. If one raises, it is empty."""
    quiet()
    texts = []
    for name in names:
        text = ""
        with suppress(Exception):  # errors of a peer are part of its result
            text = PEERS[name].load()(path.read_bytes())
        texts.append(text)
    return texts


def fact_table(samples: Sequence[AnnotatedPage], texts: Mapping[str, Mapping[str, str]]) -> ReportTable:
    """Return the share of the facts that the texts of each system keep, the share of the pages that lose more than
    half of them, and the mean number of words. ``texts`` are by system and then by the page's id.
    """
    found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for sample in samples:
        page = visible(sample.read_html())
        for system, of_page in texts.items():
            text = of_page[sample.id]
            for name, share in kept(sample.facts, page, text).items():
                found[name, system].append((share, len(words(text))))
    rows = [
        [
            name,
            system,
            len(some),
            mean([share for share, _ in some]),
            mean([share < 0.5 for share, _ in some]),
            mean([size for _, size in some]),
        ]
        for name in dict.fromkeys(name for name, _ in found)
        for system in texts
        if (some := found[name, system])
    ]
    columns = {"facts": "", "system": "", "pages": ",", "kept": ".3f", "pages < 0.5": ".1%", "words": ".0f"}
    return ReportTable("Facts that are kept", columns, rows)
