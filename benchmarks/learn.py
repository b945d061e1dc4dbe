"""Measure the gain of ``scrapy-dripper learn`` on the other pages of corrected sites, and on pages of other sites.

The base models are those of folds, which have not seen the site of a page. ``make train`` writes them with
``ARGS="--fold-models DIR"``. The sites are those on which these models are weakest. For each site, random pages are
corrected, with labels from the ground truth. The command learns from them, and all other pages of the site are
measured, from bytes to text. Sites whose corrected pages do not gain are left as they were, as by the command.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from report import heading, publish, table
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.dataset.bootstrap import paired_interval
from scrapy_dripper.dataset.neutral import neutral_prf
from scrapy_dripper.dataset.pages import Sample
from scrapy_dripper.dataset.sets import SetChoice, load_sets
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.learnt import Learnt, Site
from scrapy_dripper.engines.tagger.model import Model
from scrapy_dripper.extraction import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.learning.corrections import Correction, CorrectionError, of_sample
from scrapy_dripper.learning.fit import Lesson, fit
from scrapy_dripper.learning.learn import learn
from scrapy_dripper.page import read
from scrapy_dripper.rules import hosts_of

DATA = Path(__file__).parents[1] / ".cache"
SETS = [str(DATA / name) for name in ("wcxb-dev", "elsewhere", "sites")]
CHECK_ONLY = ("daniel", "dragnet", "cleaneval")
OUTPUT = Path(__file__).parent / "results" / "learn.txt"
LEAST_PAGES = 7
"""Minimum number of pages of a site: four to correct, and at least three to measure."""
OTHERS = {"wcxb-dev": 200, "elsewhere": 150}
"""Number of pages of other sites to measure, by the beginning of a set's name."""
STRONG = 20
"""Number of random other sites that are also corrected."""
REPLAYED = 20
"""Number of correct pages of other sites that are added to the corrected pages of a site."""
BATCH = 16
SEED = 20261123

NOTHING = Learnt({})

F1 = Mapping[str, float]


class Everywhere(Learnt):
    """The weights of one site, applied to the pages of every site."""

    def site_of(self, url: str) -> Site | None:  # noqa: ARG002
        return next(iter(self.sites.values()), None)


class Folds:
    """The models of the folds, and the pages that each has not seen."""

    def __init__(self, folder: Path) -> None:
        self.of: dict[str, int] = json.loads((folder / "folds.json").read_text(encoding="utf-8"))
        self.models = {k: Model(folder / str(k)) for k in sorted(set(self.of.values()))}

    def measured(self, samples: Iterable[Sample], learnt: Learnt) -> dict[str, float]:
        """Return the word F1 of pages by id, with learnt weights, each by the model that has not seen the page."""
        found: dict[str, float] = {}
        by_fold: dict[int, list[Sample]] = defaultdict(list)
        for sample in samples:
            by_fold[self.of[sample.id]].append(sample)
        for k, some in by_fold.items():
            extractor = Extractor(Config(), engine=Tagger(self.models[k], learnt))
            for start in range(0, len(some), BATCH):
                batch = some[start : start + BATCH]
                documents = [Document(sample.path.read_bytes(), sample.url) for sample in batch]
                for sample, page in zip(batch, extractor.extract(documents), strict=True):
                    found[sample.id] = neutral_prf(page.text or "", sample.truth, [sample.title, page.title or ""]).f1
        return found

    def learnt(self, samples: Sequence[Sample], every: bool) -> dict[str, Site]:
        """Return the weights learnt from the pages of one site."""
        corrections = [found for sample in samples if (found := corrected(sample)) is not None]
        return learn(corrections, self.models[self.of[samples[0].id]], every=every)[0]

    def learnt_everywhere(self, samples: Sequence[Sample]) -> Learnt:
        """Return the weights learnt from pages as if they were of one site, for the pages of all sites."""
        model, vocabulary = self.models[self.of[samples[0].id]], {}
        lessons = [
            Lesson.of(found, read(found.document, Config()), model, vocabulary)
            for sample in samples
            if (found := corrected(sample)) is not None
        ]
        return Everywhere({"all": fit(lessons, vocabulary)})


def corrected(sample: Sample) -> Correction | None:
    """Return the correction of a page, or None for a page without blocks."""
    try:
        return of_sample(sample)
    except CorrectionError:
        return None


def sites_of(samples: Iterable[Sample], folds: Folds) -> dict[str, list[Sample]]:
    """Return the pages of each site that has enough of them, all in one fold."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.part not in CHECK_ONLY and sample.id in folds.of and hosts_of(sample.url):
            found[hosts_of(sample.url)[0]].append(sample)
    return {
        site: sorted(pages, key=lambda page: page.id)
        for site, pages in sorted(found.items())
        if len(pages) >= LEAST_PAGES and len({folds.of[page.id] for page in pages}) == 1
    }


def mean(values: Iterable[float]) -> float:
    """Return the mean of numbers."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


class Trial:
    """Random draws of pages to correct from some sites, and the gains of the other pages of these sites."""

    def __init__(self, folds: Folds, sites: Mapping[str, Sequence[Sample]], base: F1, corrected: int) -> None:
        self.folds, self.sites, self.base, self.corrected = folds, sites, base, corrected

    def chosen(self, draw: int, site: str) -> list[Sample]:
        """Return the pages of a site that are corrected."""
        pages = self.sites[site]
        return random.Random(f"{SEED} {draw} {site}").sample(pages, min(self.corrected, len(pages) - 2))

    def gains(
        self, draws: int, what: str, *, every: bool = False
    ) -> tuple[dict[str, list[tuple[float, float]]], dict[str, Site]]:
        """Return F1 before and after of the other pages, by site, over all draws; and the weights of the first draw."""
        found: dict[str, list[tuple[float, float]]] = {site: [] for site in self.sites}
        first: dict[str, Site] = {}
        for draw, (site, pages) in tqdm(
            [(draw, item) for draw in range(draws) for item in self.sites.items()], desc=what, unit="site", disable=None
        ):
            chosen = self.chosen(draw, site)
            learnt = self.folds.learnt(chosen, every)
            if draw == 0:
                first |= learnt
            others = [page for page in pages if page not in chosen]
            after = self.folds.measured(others, Learnt(learnt)) if learnt else self.base
            found[site] += [(self.base[page.id], after[page.id]) for page in others]
        return found, first


def gain_table(
    found: Mapping[str, Sequence[tuple[float, float]]], sites: Mapping[str, Sequence[Sample]], draws: int
) -> str:
    """Return a line for each site, and their mean."""
    rows = []
    for site, pairs in found.items():
        before, after = (mean(column) for column in zip(*pairs, strict=True))
        rows.append([site, str(len(sites[site])), f"{len(pairs) // draws}", before, after, after - before])
    whole = [mean(float(row[i]) for row in rows) for i in (3, 4, 5)]
    rows.append(["mean of sites", "", "", *whole])
    cells = [[*map(str, row[:3]), f"{row[3]:.3f}", f"{row[4]:.3f}", f"{row[5]:+.3f}"] for row in rows]
    return table(["site", "pages", "measured", "before", "after", "gain"], cells)


def summary(found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return one line about many sites."""
    pairs = [pair for some in found.values() for pair in some]
    changed = sum(any(a != b for a, b in some) for some in found.values())
    worse = sum(mean(b - a for a, b in some) < -0.002 for some in found.values())
    change = paired_interval([after - before for before, after in pairs])
    before, after = (mean(column) for column in zip(*pairs, strict=True))
    return (
        f"{len(pairs)} other pages of them: {before:.4f} before, {after:.4f} after, {change.mean:+.4f} "
        f"({change.low:+.4f} to {change.high:+.4f}); {changed} sites changed, {worse} of them for the worse"
    )


def some_of(samples: Sequence[Sample], weak: Iterable[str], count: int) -> list[Sample]:
    """Return a fixed selection of pages of other sites than the weak ones."""
    others = [sample for sample in samples if not set(hosts_of(sample.url)) & set(weak)]
    return random.Random(SEED).sample(others, min(count, len(others)))


def difference(samples: Iterable[Sample], before: F1, after: F1) -> str:
    """Return the mean difference on the measured pages."""
    return f"{mean(after[one.id] - before[one.id] for one in samples if one.id in after):+.4f}"


def without_regard(trial: Trial, elsewhere: Mapping[str, Sequence[Sample]], before: F1, replayed: int) -> list[str]:
    """Return the gains on the weak sites and on others if the weights of one site apply to every page.

    ``replayed`` is the number of correct pages of other sites that are added for learning. These are not measured.
    """
    folds, gains = trial.folds, []
    changes: dict[str, list[float]] = {name: [] for name in elsewhere}
    for site, pages in trial.sites.items():
        chosen = trial.chosen(0, site)
        fold = folds.of[pages[0].id]
        known = [one for some in elsewhere.values() for one in some if folds.of[one.id] == fold]
        replay = random.Random(SEED).sample(known, min(replayed, len(known)))
        learnt = folds.learnt_everywhere([*chosen, *replay])
        others = [page for page in pages if page not in chosen]
        after = folds.measured([*others, *(one for one in known if one not in replay)], learnt)
        gains.append(mean(after[page.id] - trial.base[page.id] for page in others))
        for name, some in elsewhere.items():
            changes[name] += [after[one.id] - before[one.id] for one in some if one.id in after]
    return [f"{mean(gains):+.3f}", *(f"{mean(some):+.4f}" for some in changes.values())]


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=SETS, help="sets, as for scrapy-dripper evaluate")
    parser.add_argument("--folds", type=Path, required=True, metavar="DIR", help="what --fold-models has written")
    parser.add_argument("--sites", type=int, default=5, metavar="N", help="weak sites (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=4, metavar="N", help="corrected of a site (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=5, metavar="N", help="of pages to correct (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help="where the report goes")
    arguments = parser.parse_args()

    folds = Folds(arguments.folds)
    samples = [sample for one in load_sets(map(SetChoice.parse, arguments.data)) for sample in one.samples]
    sites = sites_of(samples, folds)
    base: dict[str, float] = {}
    for pages in tqdm(sites.values(), desc="as it was", unit="site", disable=None):
        base |= folds.measured(pages, NOTHING)
    order = sorted(sites, key=lambda site: mean(base[page.id] for page in sites[site]))
    weak = {site: sites[site] for site in order[: arguments.sites]}
    others = order[arguments.sites :]
    drawn = random.Random(SEED).sample(others, min(STRONG, len(others)))

    trial = Trial(folds, weak, base, arguments.pages)
    gained, _ = trial.gains(arguments.draws, "weak sites")
    ungated, learnt = trial.gains(arguments.draws, "every site", every=True)
    strong, _ = Trial(folds, {site: sites[site] for site in drawn}, base, arguments.pages).gains(1, "other sites")

    elsewhere = {
        name: some_of([s for s in samples if s.part.startswith(name) and s.id in folds.of], weak, count)
        for name, count in OTHERS.items()
    }
    before = folds.measured((s for some in elsewhere.values() for s in some), NOTHING)
    after = folds.measured((s for some in elsewhere.values() for s in some), Learnt(learnt))
    first = mean(mean(b - a for a, b in pairs[: len(pairs) // arguments.draws]) for pairs in ungated.values())
    rows = [["for its site", f"{first:+.3f}", *(difference(some, before, after) for some in elsewhere.values())]]
    for name, replayed in (("everywhere", 0), (f"everywhere, with {REPLAYED} right pages of others", REPLAYED)):
        rows.append([name, *without_regard(trial, elsewhere, before, replayed)])
    parts = [
        heading("learn.py", ["scrapy-dripper", "lxml", "numpy", "onnxruntime"]),
        f"Word F1, means over pages of a site. {arguments.pages} pages of each of the {len(weak)} weakest sites are "
        f"corrected, {arguments.pages * len(weak)} in all; the other pages are measured. {arguments.draws} draws.",
        gain_table(gained, weak, arguments.draws),
        "The same where every site is learnt, whether its corrected pages gain or not:",
        gain_table(ungated, weak, arguments.draws),
        f"{len(drawn)} of the {len(others)} other sites with {LEAST_PAGES} pages, {arguments.pages} of each corrected, "
        f"one draw:\n{summary(strong)}",
        f"Gain on the other pages of the weak sites, every one of them learnt, and on pages of other sites, first draw "
        f"({', '.join(f'{len(some)} of {name}' for name, some in elsewhere.items())}):",
        table(["what was learnt holds", "weak sites", *elsewhere], rows),
    ]
    publish("\n\n".join(parts), arguments.output)


if __name__ == "__main__":
    main()
