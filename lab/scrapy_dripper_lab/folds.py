"""Several sets of pages at once, and folds of their pages in which no host is twice."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from scrapy_dripper.rules import same_host
from scrapy_dripper_lab.sets import DataError, PageSet, SetChoice, load_set


def grouped_folds(hosts: Sequence[str], types: Sequence[str], k: int) -> npt.NDArray[np.int64]:
    """Return the fold of each page, 0 to k - 1. No host is in two folds, and the folds are balanced.

    Folds are balanced in the number of pages and in page types as far as the hosts allow. ``www.`` is ignored; a page
    without a host is treated as a host of its own. The same arguments give the same folds.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for page, host in enumerate(hosts):
        groups[same_host(host) or page].append(page)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    order.sort(key=len, reverse=True)  # small hosts come last, to even out the folds
    totals = Counter(types)
    sizes = [0] * k
    mixes: list[Counter[str]] = [Counter() for _ in range(k)]
    fold_of = np.empty(len(hosts), dtype=np.int64)
    for pages in order:
        mix = Counter(types[page] for page in pages)

        def cost(fold: int, mix: Counter[str] = mix) -> tuple[float, int, int]:
            # How full the fold is of these page types, as shares of all pages of the type and of all pages.
            by_type = sum(n * mixes[fold][kind] / totals[kind] for kind, n in mix.items()) / mix.total()
            return by_type + sizes[fold] / len(hosts), sizes[fold], fold

        chosen = min(range(k), key=cost)
        sizes[chosen] += len(pages)
        mixes[chosen].update(mix)
        fold_of[pages] = chosen
    return fold_of


def related_hosts(hosts: Sequence[str]) -> list[str]:
    """Return for each host the shortest of these hosts that equals it or is a parent domain of it.

    So ``edition.news.example`` of one set and ``news.example`` of another are the same host for :func:`grouped_folds`.
    """
    known = {same_host(host) for host in hosts}

    def top(host: str) -> str:
        labels = host.split(".")
        return next(name for i in range(len(labels), -1, -1) if (name := ".".join(labels[i:])) in known and name)

    return [top(same_host(host)) if host else "" for host in hosts]


def load_sets(choices: Iterable[SetChoice], learn_only: Iterable[SetChoice] = ()) -> list[PageSet]:
    """Return several sets. Raise :exc:`DataError` if two sets have the same name, or two pages the same id."""
    sets = [load_set(choice) for choice in choices] + [load_set(choice, measure=False) for choice in learn_only]
    owner: dict[str, str] = {}
    for one in sets:
        if [other.name for other in sets].count(one.name) > 1:
            raise DataError(f"two sets are named {one.name!r}: give one of them another name, with NAME=FOLDER")
        same = [sample.id for sample in one.samples if sample.id in owner]
        if same:
            raise DataError(f"{one.folder} has page ids that other sets also have: {', '.join(sorted(same)[:5])}")
        owner |= {sample.id: one.name for sample in one.samples}
    return sets
