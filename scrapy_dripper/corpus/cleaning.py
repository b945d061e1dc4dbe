"""Clean a corpus: the steps of AICC (arXiv:2511.16397, section 4.1.3) as stages of datatrove pipelines.

The steps are exact duplicates, language, quality, lists and near duplicates, in this order. Duplicates are searched
among all documents, so the ranks of a stage have to wait for all ranks of the previous one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from datatrove.data import Document
from datatrove.pipeline.dedup.exact_dedup import (
    ExactDedupConfig,
    ExactDedupFilter,
    ExactDedupSignature,
    ExactFindDedups,
)
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.utils.hashing import HashConfig

from scrapy_dripper.corpus.figures import totals
from scrapy_dripper.corpus.filters import Language, Quality, Repetition, UrlList, WordList, Words
from scrapy_dripper.corpus.ranks import RankProcesses
from scrapy_dripper.corpus.table import Publish, RowReader, RowWriter, schema

MOST_FINDERS = 64
"""Maximum number of ranks that search for exact duplicates. Each of them opens a file of every task."""
HASH = HashConfig(precision=64, hash_fc="sha1")


@dataclass(frozen=True)
class Rules:
    """The rules for documents to keep. ``urls`` and ``words`` are files of entries to drop. By default, keep all."""

    languages: tuple[str, ...] = ()
    least_score: float = 0.65
    urls: str | None = None
    words: str | None = None


class Stage(NamedTuple):
    """A pipeline that runs when all stages before it are complete."""

    name: str
    executor: RankProcesses


class Step(NamedTuple):
    """The numbers of documents in and out of a step, and of those that it dropped, by reason."""

    name: str
    before: int
    after: int
    dropped: dict[str, int]


class NearPairs(MinhashDedupBuckets):  # type: ignore[misc]
    """Find near duplicates with any number of ranks. Each rank processes several buckets."""

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the pairs of the buckets of this rank."""
        for bucket in range(rank, self.config.num_buckets, world_size):
            super().run(data, bucket, self.config.num_buckets)


def _text(document: Document) -> str:
    return str(document.text)


def stages(files: Sequence[str], folder: Path, columns: Iterable[str], rules: Rules, workers: int) -> list[Stage]:
    """Return the stages that clean the documents of Parquet files, into a folder with a file for each of them.

    ``columns`` are the optional columns that the files have. The folder ``work`` can be removed after the last stage.
    """
    work, tasks = folder / "work", len(files)
    columns = [*columns, "language", "language_score"]
    exact = ExactDedupConfig(_text, hash_config=HASH)
    near = MinhashConfig(hash_config=HASH)
    finders = min(tasks, MOST_FINDERS)
    kept = [str(work / "kept" / f"{rank:05d}.parquet") for rank in range(tasks)]
    lists = [kind(file) for kind, file in ((UrlList, rules.urls), (WordList, rules.words)) if file]

    def at(name: str) -> str:
        return str(work / name)

    pipelines: list[tuple[str, int, list[Any]]] = [
        ("hashes", tasks, [RowReader(files), ExactDedupSignature(at("hashes"), exact, finders)]),
        ("duplicates", finders, [ExactFindDedups(at("hashes"), at("duplicates"), exact)]),
        (
            "filters",
            tasks,
            [
                RowReader(files),
                ExactDedupFilter(at("duplicates"), exact),
                Language(rules.languages, rules.least_score),
                Quality(),
                Repetition(),
                *lists,
                RowWriter(work / "kept", schema(columns)),
                Publish(work / "kept"),
                MinhashDedupSignature(at("signatures"), near, Words()),
            ],
        ),
        ("pairs", min(tasks, near.num_buckets), [NearPairs(at("signatures"), at("pairs"), config=near)]),
        ("clusters", 1, [MinhashDedupCluster(at("pairs"), at("clusters"), near)]),
        (
            "write",
            tasks,
            [
                RowReader(kept),
                MinhashDedupFilter(at("clusters")),
                RowWriter(folder, schema(columns)),
                Publish(folder),
            ],
        ),
    ]
    return [
        Stage(name, RankProcesses(steps, ranks, min(workers, ranks), str(folder / "logs" / name)))
        for name, ranks, steps in pipelines
    ]


def run(found: Sequence[Stage], finished: Callable[[str], None]) -> None:
    """Run the stages, and call ``finished`` with the name of its stage for each rank that is complete.

    Raise :exc:`~scrapy_dripper.corpus.ranks.RanksFailedError` if ranks of a stage fail. The next run resumes with them.
    """
    for name, executor in found:
        executor.run(lambda _, name=name: finished(name))  # type: ignore[misc]


def account(folder: Path) -> list[Step]:
    """Return the numbers of each step, from the stats of all ranks."""
    filters = totals(folder / "logs" / "filters" / "stats")
    last = totals(folder / "logs" / "write" / "stats")
    rows, empty = filters["rows"]["rows"], filters["rows"]["empty"]
    steps = [Step("text", rows, rows - empty, {"empty": empty} if empty else {})]
    for name, counted in [*filters.items(), *last.items()]:
        if name in _NAMES:
            dropped = {
                reason.removeprefix("dropped_"): count
                for reason, count in sorted(counted.items())
                if reason.startswith("dropped_")
            }
            steps.append(Step(_NAMES[name], counted["total"], counted["forwarded"], dropped))
    return steps


_NAMES = {
    ExactDedupFilter.name: "exact duplicates",
    **{kind.name: kind.name for kind in (Language, Quality, Repetition, UrlList, WordList)},
    MinhashDedupFilter.name: "near duplicates",
}
