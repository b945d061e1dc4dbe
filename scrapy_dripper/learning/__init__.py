"""Learn from pages that a user has corrected, to improve the model on the sites of these pages.

A site's weights are a regularised logistic regression on top of the model. The offset is the model's log-odds, reduced
by a factor, so the weights only learn where the model is wrong. They are found by Newton's method, with conjugate
gradients for each step. The loss is strictly convex, so the same pages always give the same weights.

The gain of a site is measured by cross-validation. One fold of its pages at a time is held out. The weights are fitted
to the other pages, and the held-out pages are extracted with them from bytes to text. A site is left as it was if its
gain plus a standard error is still too small. The standard error is added because few pages say little, and because the
weights from all pages are better than those that were measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.files import hashes, sha256
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.columns import Doubles
from scrapy_dripper.engines.tagger.engine import GRAPHS, MANIFEST, TaggerModel
from scrapy_dripper.engines.tagger.features import features
from scrapy_dripper.engines.tagger.learnt import LEARNT, PLACES, Learnt, Places, SiteWeights, Vocabulary, trusted
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.inspection.answers import LabelsError, Record, Sheet, main_blocks
from scrapy_dripper.learning.metrics import Interval, mean_interval, neutral_prf
from scrapy_dripper.page import read
from scrapy_dripper.page.page import Page
from scrapy_dripper.paths import replace_file
from scrapy_dripper.rules import hosts_of


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """A page of n blocks with its right labels and its true main content."""

    name: str
    """Name of the page in messages."""
    sha256: str
    """Hash of the page's bytes."""
    document: Document
    host: str
    """Host of the URL without ``www.``."""
    main: npt.NDArray[np.bool_]
    """The right labels, shape (n,)."""
    truth: str
    """The main content as text."""
    title: str


def of_record(record: Record, page: Sheet) -> Correction:
    """Return the correction of a page that a person has labelled.

    Raise :exc:`LabelsError` if the blocks are not those that were labelled, or the URL is unknown.
    """
    main = main_blocks(record, page)
    document = replace(page.document, url=record.url)
    truth = page.page.text_of(main)
    return Correction(page.name, page.sha256, document, _host(record.url), main, truth, page.title)


def by_site(corrections: Iterable[Correction]) -> dict[str, list[Correction]]:
    """Return corrections by site, in an order that does not depend on the order of the argument.

    The site of a host is the host itself, or the topmost domain above it that is also the host of a correction.
    """
    every = sorted(corrections, key=lambda one: one.sha256)
    known = {one.host for one in every}
    sites: dict[str, list[Correction]] = {host: [] for host in sorted(known)}
    for one in every:
        sites[[host for host in hosts_of(f"//{one.host}") if host in known][-1]].append(one)
    return {site: pages for site, pages in sites.items() if pages}


def _host(url: str) -> str:
    hosts = hosts_of(url)
    if not hosts:
        raise LabelsError(
            "its URL is unknown, and so is its site: set it with --url when you inspect or annotate the page"
        )
    return hosts[0]


HEAVIEST = 2.0
"""Maximum weight of a block for its words, in units of its page's main content."""


def block_weights(words: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the weights of the n blocks of a page in training. ``words`` are in units of those of the main content.

    A constant is added, so that short blocks and pages without main content count as well.
    """
    weights: npt.NDArray[np.floating] = np.minimum(HEAVIEST, words) + 0.5 / max(20, len(words))
    return weights


PAGE_WEIGHT = 20.0
"""Total weight of the blocks of a page in the loss, to which the regularisation adds half the squared weights."""
_STEPS, _INNER = 30, 100
_GAIN, _RESIDUAL = 1e-9, 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class SiteExample:
    """The training data of a corrected page of n blocks."""

    places: Places
    odds: Doubles
    """The reduced log-odds of the model, shape (n,)."""
    main: npt.NDArray[np.float64]
    """The right labels, 0 or 1, shape (n,)."""
    weight: Doubles
    """The weight of each block, shape (n,). The sum is :data:`PAGE_WEIGHT`."""

    @classmethod
    def of(cls, correction: Correction, page: Page, model: TaggerModel, vocabulary: Vocabulary) -> SiteExample:
        """Return the training data of a page, and add its names to the vocabulary of its site.

        Long blocks count more, as in the word F1, but only with the square root of their length.
        """
        batch = features([page])
        words = batch.size.astype(np.float64)
        share = words / max(30.0, float(words[correction.main].sum()))
        weight = np.sqrt(block_weights(share))
        return cls(
            Places.of(page, vocabulary, grow=True),
            trusted(model(batch).probabilities),
            correction.main.astype(np.float64),
            PAGE_WEIGHT * weight / max(float(weight.sum()), 1e-9),
        )


def fit(examples: Sequence[SiteExample], vocabulary: Vocabulary) -> SiteWeights:
    """Return the weights that fit the pages of a site. Takes time linear in the size of the pages."""
    places = Places.joined([one.places for one in examples])
    odds, main, weight = (
        np.concatenate([getattr(one, name) for one in examples]) for name in ("odds", "main", "weight")
    )
    size = len(vocabulary)
    found = np.zeros(len(PLACES) * size + 1)

    def loss(weights: Doubles) -> float:
        said = odds + places.odds(weights)
        return float(weight @ (np.logaddexp(0, said) - main * said) + weights @ weights / 2)

    now = loss(found)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(odds + places.odds(found), -500, 500)))
        gradient = places.gathered(weight * (p - main), size) + found
        if not gradient.any():
            break
        step = _solve(places, weight * p * (1 - p), -gradient, size)
        length = 1.0
        while (then := loss(found + length * step)) > now and length > 1e-9:
            length /= 2
        if then > now:
            break
        found, gained, now = found + length * step, now - then, then
        if gained < _GAIN * now:
            break
    return SiteWeights(dict(vocabulary), found)


def _solve(places: Places, curvature: Doubles, right: Doubles, size: int) -> Doubles:
    """Return the step of Newton's method, by conjugate gradients.

    ``curvature`` is the second derivative of the loss by the log-odds of each block, shape (n,). ``right`` is the right
    side of the equation: the negative gradient.
    """
    step, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), float(residual @ residual)
    end = _RESIDUAL * square
    for _ in range(_INNER):
        product = places.gathered(curvature * places.odds(direction), size) + direction
        length = square / float(direction @ product)
        step, residual = step + length * direction, residual - length * product
        new = float(residual @ residual)
        if new < end:
            break
        direction, square = residual + new / square * direction, new
    return step


FOLDS = 5
"""Number of folds. A site with fewer pages has one fold for each page."""
LEAST_GAIN = 0.005
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
    corrections: Iterable[Correction], model: TaggerModel, *, every: bool = False
) -> tuple[dict[str, SiteWeights], list[Gain]]:
    """Return the weights of the sites that gained, and the gains of all sites.

    With ``every``, sites that did not gain or could not be measured are also learnt.
    """
    sites: dict[str, SiteWeights] = {}
    gains: list[Gain] = []
    for name, pages in tqdm(by_site(corrections).items(), desc="learn", unit="site", disable=None):
        vocabulary: Vocabulary = {}
        examples = [SiteExample.of(one, read(one.document, Config()), model, vocabulary) for one in pages]
        before, after = _f1(pages, model, Learnt({})), [0.0] * len(pages)
        k = min(FOLDS, len(pages))
        for fold in range(k if k > 1 else 0):
            held = range(fold, len(pages), k)
            site = fit([example for i, example in enumerate(examples) if i not in held], vocabulary)
            for i, f1 in zip(held, _f1([pages[i] for i in held], model, Learnt({name: site})), strict=True):
                after[i] = f1
        gain = Gain(name, tuple(before), tuple(after) if k > 1 else (), every)
        if every or gain.mean + gain.error >= LEAST_GAIN:
            sites[name] = fit(examples, vocabulary)
            gain = Gain(name, gain.before, gain.after, True)
        gains.append(gain)
    return sites, gains


def _f1(pages: Sequence[Correction], model: TaggerModel, learnt: Learnt) -> list[float]:
    """Return the word F1 of each page's extraction. Headlines are neutral."""
    extractor = Extractor(Config(), engine=Tagger(model, learnt))
    found = extractor.extract([one.document for one in pages])
    return [
        neutral_prf(extraction.text or "", one.truth, [one.title]).f1
        for one, extraction in zip(pages, found, strict=True)
    ]


NOTES = "learnt"
"""Key of the manifest for the learnt sites, the number of pages, and the gain."""
TRAINING_PAGES = "training_pages"
"""Key of a model's manifest: the SHA-256 of each page that the model was trained on, by set."""
CORRECTIONS = "corrections"
"""Name of the set of corrected pages in the manifest's list of training pages."""


def total_gain(gains: Sequence[Gain]) -> tuple[float, float, Interval] | None:
    """Return the word F1 before and after over all held-out pages, and the 95 % interval of the difference.

    Sites that are not learnt count as unchanged. Return None if no page was held out.
    """
    pairs = [
        (old, new if gain.learnt else old)
        for gain in gains
        if gain.after
        for old, new in zip(gain.before, gain.after, strict=True)
    ]
    if not pairs:
        return None
    before, after = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return before, after, mean_interval([new - old for old, new in pairs])


def gain_rows(gains: Sequence[Gain]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of the table of gains."""
    head = ["site", "pages", "before", "after", "gain", ""]
    body = []
    for gain in gains:
        before = f"{sum(gain.before) / len(gain.before):.3f}"
        after = f"{sum(gain.after) / len(gain.after):.3f}" if gain.after else "-"
        sure = gain.mean >= LEAST_GAIN
        said = ("learnt" if sure else "learnt, unsure") if gain.learnt else "left as it was"
        body.append([gain.site, str(len(gain.before)), before, after, f"{gain.mean:+.3f}" if gain.after else "-", said])
    return head, body


def write_model(
    folder: Path, base: Path, sites: Mapping[str, SiteWeights], gains: Sequence[Gain], corrections: Sequence[Correction]
) -> None:
    """Write the folder of a model with the weights of sites. Weights of the base for other sites are kept.

    The same base and corrections give the same bytes. Raise OSError if a file cannot be written.
    """
    manifest = _manifest(base)
    known = TaggerModel(base).learnt
    learnt = Learnt({**(known.sites if known else {}), **sites})
    folder.mkdir(parents=True, exist_ok=True)
    for name in GRAPHS:
        if not (folder / name).exists() or not (folder / name).samefile(base / name):
            replace_file(folder / name, (base / name).read_bytes())
    learnt.write(folder)
    figures = total_gain(gains)
    notes = {
        "sites": sorted(sites),
        "pages": len(corrections),
        "held_word_f1": [round(value, 4) for value in figures[:2]] if figures else None,
        "base": sha256(base / MANIFEST),
    }
    seen = training_pages(manifest)
    seen[CORRECTIONS] = sorted({*seen.get(CORRECTIONS, ()), *(one.sha256 for one in corrections)})
    values = {
        **manifest,
        "weights_sha256": hashes(folder, (*GRAPHS, LEARNT)),
        NOTES: notes,
        TRAINING_PAGES: seen,
    }
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    replace_file(folder / MANIFEST, text)


def training_pages(manifest: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the SHA-256 of each page that a model was trained on, by set, if its manifest has them."""
    sets = manifest.get(TRAINING_PAGES)
    return (
        {name: list(pages) for name, pages in sets.items() if isinstance(pages, list)} if isinstance(sets, dict) else {}
    )


def trained_on(base: Path) -> set[str]:
    """Return the SHA-256 of the pages that the graphs of a model were trained on, as listed in its manifest.

    Corrections of the base are not included, because its graphs were not trained on them.
    """
    return {page for name, pages in training_pages(_manifest(base)).items() if name != CORRECTIONS for page in pages}


def is_ours(folder: Path) -> bool:
    """Return True if a folder was written by :func:`write_model`, so that it may be overwritten."""
    return (folder / MANIFEST).is_file() and isinstance(_manifest(folder).get(NOTES), dict)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
