"""Cross-validate the training recipe on pages of unseen hosts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.engines.tagger.expected_f1 import DecisionRule
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workshop.dataset.pages import DataError, Sample, grouped_folds, related_hosts
from scrapy_dripper.workshop.training.export import export
from scrapy_dripper.workshop.training.prepare import Example
from scrapy_dripper.workshop.training.stack import Split, Stack

BATCH = 32


def splits(samples: Sequence[Sample], known: Container[str], folds: int) -> tuple[list[Split], Split]:
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
    fold_of = grouped_folds([hosts[s.id] for s in measured], kinds, folds, 0).tolist()
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
    samples: Mapping[str, Sample], examples: Mapping[str, Example], folds: Sequence[Split], stack: Stack
) -> Iterator[tuple[Sample, Extraction]]:
    """Yield each measured sample with its complete extraction, from bytes to text.

    The model has not seen the sample's host. The model of each fold is exported and loaded like any other. Pages that
    it cannot process go to the default fallback, as in a crawl.
    """
    bar = tqdm(total=sum(len(split.measured) for split in folds), desc=f"{len(folds)} folds", unit="page")
    for split, fitted in zip(folds, stack.folds, strict=True):
        probe = examples[split.seen[0]]
        with TemporaryDirectory() as folder:
            export(fitted, probe.features.names, Path(folder), DecisionRule(), probe)
            extractor = Extractor(Config(model=folder))
            waiting = (samples[name] for name in split.measured)
            while batch := list(islice(waiting, BATCH)):
                documents = [Document(sample.path.read_bytes(), sample.url) for sample in batch]
                yield from zip(batch, extractor.extract(documents), strict=True)
                bar.update(len(batch))
            extractor.close()
    bar.close()
