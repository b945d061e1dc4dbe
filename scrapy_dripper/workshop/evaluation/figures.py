"""Compute figures from the results of pages: group means with intervals, paired differences, block scores,
calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from scrapy_dripper.workshop.dataset.bootstrap import Interval, mean_interval, paired_interval
from scrapy_dripper.workshop.dataset.metrics import ALL, PAGE_TYPES, Summary, summarize
from scrapy_dripper.workshop.dataset.pages import Sample
from scrapy_dripper.workshop.dataset.prf import PRF
from scrapy_dripper.workshop.evaluation.blocks import Reliability, block_prf, pooled, reliability
from scrapy_dripper.workshop.evaluation.complexity import LEVELS, Complexity, levels
from scrapy_dripper.workshop.evaluation.measure import PAGE, Result, truth_words
from scrapy_dripper.workshop.evaluation.run import Found
from scrapy_dripper.workshop.evaluation.set_table import SetTable, set_table
from scrapy_dripper.workshop.evaluation.study import Study

LENGTHS = ((0, "no words"), (99, "1-99"), (299, "100-299"), (999, "300-999"), (2999, "1,000-2,999"))
LONGEST = "3,000 or more"
TIE = 1e-9
GROUPINGS = ("type", "level", "length")


@dataclass(frozen=True, slots=True)
class Group:
    """The results of a system on a group of pages."""

    summary: Summary
    f1: Interval
    rouge: PRF | None
    nodes: PRF | None
    study: Study | None
    seconds: float | None
    """Mean CPU time of an extraction, in seconds. None for stored texts, and in runs without the measures of the
    study.
    """
    tokens: float | None
    cost: float | None
    """Mean number of tokens of a language model for a page, and their price."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between our result and a peer's on the same pages."""

    peer: str
    metric: str
    group: str
    pages: int
    delta: Interval
    better: int
    worse: int
    tied: int


@dataclass(frozen=True, slots=True)
class BlockFigures:
    """Scores of our block labels."""

    by_type: dict[str, PRF]
    """Means over pages: for all pages and for each type."""
    pages: dict[str, int]
    pooled: PRF
    """Score over all blocks together, so that long pages count more."""
    inferred: int
    """Number of pages whose labels were inferred from the text."""
    blocks: Reliability | None
    words: Reliability | None
    """Calibration, with blocks weighted equally or by their words; None without probabilities."""


@dataclass(frozen=True, slots=True)
class System:
    """The results of a system on all pages and by group."""

    name: str
    label: str
    results: Mapping[str, Result]
    whole: Group
    groups: Mapping[str, Mapping[str, Group]]
    """Groups by grouping (:data:`GROUPINGS`), and then by name."""
    errors: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of a run."""

    data: str
    """The names of the sets."""
    data_sha256: str
    samples: Sequence[Sample]
    words: Mapping[str, int]
    levels: Mapping[str, str]
    systems: Sequence[System]
    """The systems, ours first."""
    differences: Sequence[Difference]
    blocks: BlockFigures | None
    sets: SetTable
    notes: Sequence[str]
    """Caveats that readers must know."""

    @property
    def ours(self) -> System:
        """Our own system."""
        return self.systems[0]

    def worst(self, n: int) -> list[Sample]:
        """Return the n pages with our lowest F1. Among equals, pages with more true words come first."""
        rows = self.ours.results
        return sorted(self.samples, key=lambda s: (rows[s.id].row.f1, -self.words[s.id], s.id))[:n]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON values. NaN becomes None."""
        systems = [
            {
                "name": system.name,
                "label": system.label,
                "errors": system.errors,
                "all": _plain(system.whole),
                **{f"by_{name}": _plain(system.groups[name]) for name in GROUPINGS},
            }
            for system in self.systems
        ]
        pages = [
            {
                "id": sample.id,
                "type": sample.page_type,
                "level": self.levels[sample.id],
                "words": self.words[sample.id],
                "source": self.ours.results[sample.id].source,
                "f1": {system.name: round(system.results[sample.id].row.f1, 6) for system in self.systems},
            }
            for sample in self.samples
        ]
        return {
            "data": {"folder": self.data, "sha256": self.data_sha256, "pages": len(self.samples)},
            "notes": list(self.notes),
            "systems": systems,
            "differences": _plain(self.differences),
            "blocks": _plain(self.blocks),
            "sets": _plain(self.sets.groupings),
            "pages": pages,
        }


def evaluate(
    data: str,
    data_sha256: str,
    samples: Sequence[Sample],
    found: Found,
    labels: Mapping[str, str],
    notes: Sequence[str],
    resamples: int,
) -> Evaluation:
    """Return the figures of a run. ``labels`` are the display names of the systems, ours first."""
    words = {sample.id: truth_words(sample) for sample in samples}
    measures = [one for sample in samples if isinstance(one := found[PAGE][sample.id], Complexity)]
    level = dict(zip((sample.id for sample in samples), levels(measures), strict=True))
    members = {
        "type": _members(samples, lambda s: s.page_type, PAGE_TYPES),
        "level": _members(samples, lambda s: level[s.id], LEVELS),
        "length": _members(samples, lambda s: length_of(words[s.id]), [*(name for _, name in LENGTHS), LONGEST]),
    }
    systems = []
    for name, label in labels.items():
        results = {sample.id: one for sample in samples if isinstance(one := found[name][sample.id], Result)}
        systems.append(
            System(
                name,
                label,
                results,
                whole=_group(results.values(), resamples),
                groups={
                    kind: {group: _group([results[i] for i in ids], resamples) for group, ids in parts.items()}
                    for kind, parts in members.items()
                },
                errors=sum(one.error is not None for one in results.values()),
            )
        )
    ours = systems[0]
    differences = [d for peer in systems[1:] for d in _differences(ours, peer, members["type"], resamples)]
    blocks = _blocks(ours, members["type"])
    scores = {system.name: {i: one.row for i, one in system.results.items()} for system in systems}
    sets = set_table(samples, scores, resamples)
    return Evaluation(data, data_sha256, samples, words, level, systems, differences, blocks, sets, notes)


def length_of(words: int) -> str:
    """Return the name of the group for a page with this number of true words."""
    return next((name for most, name in LENGTHS if words <= most), LONGEST)


def _members(samples: Sequence[Sample], kind: Callable[[Sample], str], order: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of each kind: first the kinds in ``order``, then others. Empty kinds are left out."""
    found: dict[str, list[str]] = {}
    for sample in samples:
        found.setdefault(kind(sample), []).append(sample.id)
    names = [name for name in order if name in found] + sorted(set(found) - set(order))
    return {name: found[name] for name in names}


def _group(results: Iterable[Result], resamples: int) -> Group:
    chosen = list(results)
    rows = [one.row for one in chosen]
    rouge, nodes, study = (_means([getattr(one, name) for one in chosen]) for name in ("rouge", "nodes", "study"))
    return Group(
        summarize(rows),
        mean_interval([row.f1 for row in rows], resamples),
        PRF(*rouge) if rouge else None,
        PRF(*nodes) if nodes else None,
        Study(*study) if study else None,
        *(_mean([getattr(one, name) for one in chosen]) for name in ("seconds", "tokens", "cost")),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known, or None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _means(scores: Sequence[Sequence[float] | None]) -> list[float]:
    """Return the mean of each column, without rows that are None."""
    known = [row for row in scores if row is not None]
    return [sum(column) / len(known) for column in zip(*known, strict=True)]


def _differences(ours: System, peer: System, types: Mapping[str, Sequence[str]], resamples: int) -> list[Difference]:
    ids = list(ours.results)
    metrics: dict[str, Callable[[Result], float]] = {
        "F1": lambda one: one.row.f1,
        "P": lambda one: one.row.precision,
        "R": lambda one: one.row.recall,
    }
    if ours.whole.rouge and peer.whole.rouge:
        metrics["ROUGE-5"] = lambda one: one.rouge.f1 if one.rouge else 0.0
    plan = [(ALL, name, ids) for name in metrics] + [(kind, "F1", list(part)) for kind, part in types.items()]
    found = []
    for group, name, part in plan:
        deltas = [metrics[name](ours.results[i]) - metrics[name](peer.results[i]) for i in part]
        better, worse = sum(d > TIE for d in deltas), sum(d < -TIE for d in deltas)
        interval = paired_interval(deltas, resamples)
        found.append(Difference(peer.name, name, group, len(part), interval, better, worse, len(part) - better - worse))
    return found


def _blocks(ours: System, types: Mapping[str, Sequence[str]]) -> BlockFigures | None:
    with_blocks = {i: one.blocks for i, one in ours.results.items() if one.blocks is not None}
    if not with_blocks:
        return None
    scores = {i: blocks.prf() for i, blocks in with_blocks.items()}
    parts = {ALL: list(scores)} | {kind: [i for i in ids if i in scores] for kind, ids in types.items()}
    parts = {kind: ids for kind, ids in parts.items() if ids}
    totals = [sum(column) for column in zip(*(blocks.counts() for blocks in with_blocks.values()), strict=True)]
    p, truth, words = pooled(list(with_blocks.values()))
    return BlockFigures(
        by_type={
            kind: PRF(*(sum(column) / len(ids) for column in zip(*(scores[i] for i in ids), strict=True)))
            for kind, ids in parts.items()
        },
        pages={kind: len(ids) for kind, ids in parts.items()},
        pooled=block_prf(*totals),
        inferred=sum(blocks.inferred for blocks in with_blocks.values()),
        blocks=reliability(p, truth) if len(p) else None,
        words=reliability(p, truth, words) if len(p) else None,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in type(value).__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
