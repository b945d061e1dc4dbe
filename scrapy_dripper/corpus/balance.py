"""Draw pages that are balanced by language and format (section 4.1 of the Dripper paper, stage 2)."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

OTHER = "other"
"""The name under which the languages without a weight share one."""

T = TypeVar("T", bound=Hashable)


def shares(counts: Mapping[T, int], n: int, weights: Mapping[T, float] | None = None) -> dict[T, int]:
    """Divide n among groups, in proportion to their weights but to none more than it has.

    What a group cannot take is divided among the others. By default, all weights are equal. If all groups together
    have less than n, each gets what it has. Of equal remainders, the groups that come first get one more.
    """
    given = dict.fromkeys(counts, 0)
    weight = {name: 1.0 if weights is None else weights.get(name, 0.0) for name in counts}
    left = min(n, sum(count for name, count in counts.items() if weight[name] > 0))
    while left:
        open_ = [name for name, count in counts.items() if given[name] < count and weight[name] > 0]
        whole = sum(weight[name] for name in open_)
        wanted = {name: left * weight[name] / whole for name in open_}
        full = {name: counts[name] - given[name] for name in open_ if counts[name] - given[name] <= wanted[name]}
        if full:
            for name, room in full.items():
                given[name] += room
            left -= sum(full.values())
            continue
        for name in open_:
            given[name] += int(wanted[name])
            left -= int(wanted[name])
        order = sorted(open_, key=lambda name: int(wanted[name]) - wanted[name])
        for name in order[:left]:
            given[name] += 1
        left = 0
    return given


def balanced(
    languages: Sequence[str],
    formats: Sequence[str],
    hosts: Sequence[str],
    n: int,
    weights: Mapping[str, float] | None = None,
    seed: int = 0,
) -> list[int]:
    """Return the indexes of n pages, in order: fewer if there are not as many.

    The languages have ``weights``, and those without one share that of :data:`OTHER`; by default, all languages have
    the same. Within a language all formats have the same, and within a format as many hosts as possible have a page
    before one of them has a second.
    """
    groups: dict[str, dict[str, list[int]]] = {}
    for index, (language, kind) in enumerate(zip(languages, formats, strict=True)):
        name = language if weights is None or language in weights else OTHER
        groups.setdefault(name, {}).setdefault(kind, []).append(index)
    ordered = {name: dict(sorted(kinds.items())) for name, kinds in sorted(groups.items())}
    by_language = shares({name: sum(map(len, kinds.values())) for name, kinds in ordered.items()}, n, weights)
    chosen = []
    for name, kinds in ordered.items():
        by_format = shares({kind: len(some) for kind, some in kinds.items()}, by_language[name])
        for kind, some in kinds.items():
            rng = random.Random(f"{seed} {name} {kind}")
            chosen += _by_host(some, hosts, rng)[: by_format[kind]]
    return sorted(chosen)


def _by_host(some: Sequence[int], hosts: Sequence[str], rng: random.Random) -> list[int]:
    """Return the pages in random order, first one of each host, then the second of each, and so on."""
    order = list(some)
    rng.shuffle(order)
    seen: dict[str, int] = {}
    rounds = {}
    for index in order:
        rounds[index] = seen[hosts[index]] = seen.get(hosts[index], 0) + 1
    return sorted(order, key=rounds.__getitem__)
