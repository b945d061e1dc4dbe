"""The pages of hosts, in a fixed random order, with a model that was not trained on them."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page import Page
from scrapy_dripper.workshop.dataset.pages import Sample, related_hosts
from scrapy_dripper.workshop.dataset.sets import PAGES, SetChoice, load_sets

SEED = 20261123


class Once:
    """Labels a page with a tagger, and caches the answer."""

    name, profile, limits = Tagger.name, Tagger.profile, Limits()

    def __init__(self, model: Path) -> None:
        self._tagger = Tagger.load(Config(model=str(model)))
        self.answer: Labels | EngineError | None = None
        self.page: Page | None = None
        """The page that was labelled last."""
        self.seconds = 0.0
        """The CPU time of its labels."""
        self.asked = False
        """True after a call."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the only page of a call."""
        self.asked = True
        if self.answer is None:
            start = time.process_time()
            (self.answer,) = self._tagger.label(pages)
            self.seconds = time.process_time() - start
            (self.page,) = pages
        return [self.answer]

    def close(self) -> None:
        """Release the model."""
        self._tagger.close()


def hosts(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Yield the pages of each host that has more than one, in a fixed random order."""
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.host:
            groups[sample.part, sample.host].append(sample)
    for (_, name), pages in sorted(groups.items()):
        if len(pages) > 1:
            pages.sort(key=lambda sample: sample.id)
            random.Random(f"{SEED} {name}").shuffle(pages)
            yield pages


def loaded(choices: Sequence[str]) -> list[Sample]:
    """Return the pages of sets, including those without ground truth, which are only seen."""
    samples = []
    for one in load_sets(map(SetChoice.parse, choices)):
        samples += [replace(sample, part=one.name) for sample in one.samples if sample.measure]
        listed = one.folder / PAGES
        if listed.is_file():
            with listed.open(encoding="utf-8") as lines:
                records = [json.loads(line) for line in lines if line.strip()]
            of_id = {record["id"]: record for record in records if "site" in record}
            samples = [replace(s, host=of_id[s.id]["site"]) if s.id in of_id else s for s in samples]
            sites = {s.host: s for s in samples if s.part == one.name}
            for record in records:
                if record.get("kind") == "other" and record.get("site") in sites:
                    path = one.folder / "html" / f"{record['id']}.html"
                    like = sites[record["site"]]
                    samples.append(replace(like, id=record["id"], url=record["url"], path=path, measure=False))
    return samples


def models(folds: Path | None, model: Path, samples: Sequence[Sample]) -> Mapping[str, Path]:
    """Return the model for each page, by its id: one that was not trained on its host."""
    if folds is None:
        return dict.fromkeys((sample.id for sample in samples), model)
    of_page: dict[str, int] = json.loads((folds / "folds.json").read_text(encoding="utf-8"))
    names = dict(zip((s.id for s in samples), related_hosts([s.host for s in samples]), strict=True))
    of_host = {names[sample.id]: of_page[sample.id] for sample in samples if sample.id in of_page}
    return {name: folds / str(of_page.get(name, of_host.get(host, 0))) for name, host in names.items()}
