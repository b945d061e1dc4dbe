"""What a model of this recipe is worth on pages of hosts that it has not seen, beside Trafilatura on the same pages."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger.decode import Decoding
from scrapy_dripper.evaluation.metrics import ScoreRow, score
from scrapy_dripper.extraction import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.training.data import Sample, grouped_folds
from scrapy_dripper.training.export import export
from scrapy_dripper.training.prepare import Example
from scrapy_dripper.training.stack import Split, Stack

BATCH = 32


def splits(
    samples: Sequence[Sample], extra: Sequence[Sample], known: Container[str], folds: int
) -> tuple[list[Split], Split]:
    """Return the folds, grouped by host, and the split that holds nothing back.

    Every fold sees the other folds, and the pages of ``extra`` whose hosts are not its own. Pages that are not in
    ``known`` have no blocks to learn from. The folds depend on the data alone, so that seeds can be compared.
    """
    fold_of = grouped_folds([s.host for s in samples], [s.page_type for s in samples], folds, 0)
    found: list[Split] = []
    for fold in range(folds):
        hosts = {s.host for s, f in zip(samples, fold_of, strict=True) if f == fold}
        seen = [s for s, f in zip(samples, fold_of, strict=True) if f != fold]
        seen += [s for s in extra if s.host not in hosts]
        held = [s.id for s, f in zip(samples, fold_of, strict=True) if f == fold]
        found.append(Split(tuple(s.id for s in seen if s.id in known), tuple(name for name in held if name in known)))
    return found, Split(tuple(s.id for s in [*samples, *extra] if s.id in known), ())


def out_of_fold(
    samples: Sequence[Sample], examples: Mapping[str, Example], folds: Sequence[Split], stack: Stack
) -> Iterator[tuple[Sample, Extraction]]:
    """Yield each sample with what the whole way, from its bytes to its text, makes of it without having seen its host.

    Each fold's model is exported and loaded like any other; pages that cannot go through it take the default fallback,
    as in a crawl. Pages without blocks need no model, and come with the first fold.
    """
    fold_of = {name: k for k, split in enumerate(folds) for name in split.held}
    bar = tqdm(total=len(samples), desc=f"{len(folds)} folds", unit="page")
    for k, (split, fitted) in enumerate(zip(folds, stack.folds, strict=True)):
        held = [s for s in samples if fold_of.get(s.id, 0) == k]
        probe = examples[split.seen[0]]
        with TemporaryDirectory() as folder:
            export(fitted, probe.features.names, Path(folder), Decoding(), probe)
            extractor = Extractor(Config(model=folder))
            waiting = iter(held)
            while batch := list(islice(waiting, BATCH)):
                documents = [Document(sample.path.read_bytes(), sample.url) for sample in batch]
                yield from zip(batch, extractor.extract(documents), strict=True)
                bar.update(len(batch))
            extractor.close()
    bar.close()


def scored(sample: Sample, text: str | None) -> ScoreRow:
    """Return the score of a text for a sample."""
    return score(sample.id, sample.page_type, text or "", sample.truth, sample.with_snippets, sample.without_snippets)


def trafilatura_texts(samples: Sequence[Sample], cache: Path, jobs: int) -> dict[str, str]:
    """Return what Trafilatura, with its defaults, makes of each sample; from the cache if it is of this version."""
    import trafilatura

    version: str = trafilatura.__version__
    texts: dict[str, str] = {}
    if cache.is_file():
        stored = json.loads(cache.read_text(encoding="utf-8"))
        texts = stored["texts"] if stored.get("version") == version else {}
    missing = [sample for sample in samples if sample.id not in texts]
    if missing:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            found = pool.map(_trafilatura, [str(sample.path) for sample in missing], chunksize=8)
            bar = tqdm(found, total=len(missing), desc=f"trafilatura {version}", unit="page")
            texts |= {sample.id: text for sample, text in zip(missing, bar, strict=True)}
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({"version": version, "texts": texts}), encoding="utf-8")
    return texts


def _trafilatura(path: str) -> str:
    import trafilatura

    return trafilatura.extract(Path(path).read_bytes()) or ""
