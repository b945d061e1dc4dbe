"""Learn the weights of each site, and measure its gain by cross-validation.

One fold of a site's pages at a time is held out. The weights are fitted to the other pages, and the held-out pages are
extracted with them from bytes to text. A site is left as it was if its gain plus a standard error is still too small.
The standard error is added because few pages say little, and because the weights from all pages are better than those
that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import stdev

from scrapy_dripper.config import Config
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.learnt import Learnt, Site, Vocabulary
from scrapy_dripper.engines.tagger.model import TaggerModel
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import read
from scrapy_dripper.workshop.dataset.metrics import neutral_prf
from scrapy_dripper.workshop.learning.corrections import Correction, by_site
from scrapy_dripper.workshop.learning.fit import SiteLesson, fit

FOLDS = 5
"""Default number of folds. A site with fewer pages has one fold for each page."""
LEAST = 0.005
"""Minimum gain in word F1 for a site to be learnt."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a site: the word F1 of each of its pages before, and with weights fitted to the other pages."""

    site: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    """Empty if the site has a single page, because it cannot be held out."""
    learnt: bool

    @property
    def mean(self) -> float:
        """The mean gain of the held-out pages, 0 if there are none."""
        return (sum(self.after) - sum(self.before)) / len(self.after) if self.after else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean gain, 0 if there are no held-out pages."""
        if len(self.after) < 2:
            return 0.0
        changes = [new - old for old, new in zip(self.before, self.after, strict=True)]
        return stdev(changes) / sqrt(len(changes))


def learn(
    corrections: Iterable[Correction],
    model: TaggerModel,
    *,
    folds: int = FOLDS,
    every: bool = False,
    done: Callable[[int], object] | None = None,
) -> tuple[dict[str, Site], list[Gain]]:
    """Return the weights of the sites that gained, and the gains of all sites.

    With ``every``, sites that did not gain or could not be measured are also learnt. ``done`` is called after each site
    with the number of its pages. Raise ValueError if ``folds`` is less than 2.
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2 (got {folds})")
    sites: dict[str, Site] = {}
    gains: list[Gain] = []
    for name, pages in by_site(corrections).items():
        vocabulary: Vocabulary = {}
        lessons = [SiteLesson.of(one, read(one.document, Config()), model, vocabulary) for one in pages]
        before, after = _f1(pages, model, Learnt({})), [0.0] * len(pages)
        k = min(folds, len(pages))
        for fold in range(k if k > 1 else 0):
            held = range(fold, len(pages), k)
            site = fit([lesson for i, lesson in enumerate(lessons) if i not in held], vocabulary)
            for i, f1 in zip(held, _f1([pages[i] for i in held], model, Learnt({name: site})), strict=True):
                after[i] = f1
        gain = Gain(name, tuple(before), tuple(after) if k > 1 else (), every)
        if every or gain.mean + gain.error >= LEAST:
            sites[name] = fit(lessons, vocabulary)
            gain = Gain(name, gain.before, gain.after, True)
        gains.append(gain)
        if done is not None:
            done(len(pages))
    return sites, gains


def _f1(pages: Sequence[Correction], model: TaggerModel, learnt: Learnt) -> list[float]:
    """Return the word F1 of each page's extraction. Headlines are neutral."""
    extractor = Extractor(Config(), engine=Tagger(model, learnt))
    found = extractor.extract([one.document for one in pages])
    return [
        neutral_prf(extraction.text or "", one.truth, [one.title]).f1
        for one, extraction in zip(pages, found, strict=True)
    ]
