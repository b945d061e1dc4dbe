"""Draw pages that are balanced by language and format (section 4.1 of the Dripper paper, stage 2)."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

OTHER = "other"
"""The entry of the weights that is shared by all languages without a weight of their own."""

T = TypeVar("T", bound=Hashable)


def shares(counts: Mapping[T, int], n: int, weights: Mapping[T, float] | None = None) -> dict[T, int]:
    """Divide n among groups in proportion to their weights, but give no group more than its count.

    The rest of a group that is too small is divided among the others. By default, all weights are equal. If all counts
    add up to less than n, each group gets its count. Of groups with equal remainders, the first ones get one more.
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
    """Return the indexes of n pages in order, or of all pages if there are fewer.

    Each language has a weight in ``weights``; languages that are not in it share the weight of :data:`OTHER`. By
    default, all languages have the same weight. Within a language, all formats have the same weight. Within a format,
    no host gets a second page before every host has one.
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
