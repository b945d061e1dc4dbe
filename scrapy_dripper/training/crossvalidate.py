"""What a model of this recipe is worth on pages of hosts that it has not seen, beside Trafilatura on the same pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
from scrapy_dripper.training.fit import export, fit
from scrapy_dripper.training.prepare import Example

BATCH = 32


def out_of_fold(
    samples: Sequence[Sample],
    examples: Mapping[str, Example],
    extra: Mapping[Sample, Example],
    *,
    folds: int = 5,
    seed: int = 0,
    threads: int = 2,
) -> Iterator[tuple[Sample, Extraction]]:
    """Yield each sample with what the whole way, from its bytes to its text, makes of it without having seen its host.

    Each fold's model is fitted on the other folds, and on the pages of ``extra`` whose hosts are not in the fold, then
    exported and loaded like any other; pages that cannot go through the model take the default fallback, as in a crawl.
    """
    fold_of = grouped_folds([s.host for s in samples], [s.page_type for s in samples], folds, seed)
    bar = tqdm(total=len(samples), desc=f"{folds} folds", unit="page")
    for fold in range(folds):
        held = [s for s, f in zip(samples, fold_of, strict=True) if f == fold]
        seen = [examples[s.id] for s, f in zip(samples, fold_of, strict=True) if f != fold and s.id in examples]
        hosts = {s.host for s in held}
        more = [one for sample, one in extra.items() if sample.host not in hosts]
        booster = fit([*seen, *more], seed=seed, threads=threads)
        with TemporaryDirectory() as folder:
            export(booster, seen[0].names, Path(folder), Decoding(), probe=seen[0])
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
