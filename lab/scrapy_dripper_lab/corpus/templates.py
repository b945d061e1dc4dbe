"""Steps of datatrove's pipelines that learn the templates of hosts: layouts of pages, and rules for their clusters."""

from __future__ import annotations

import os
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document as Row
from datatrove.pipeline.base import PipelineStep

from scrapy_dripper.config import Config
from scrapy_dripper.corpus.records import charset, recorded_at
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.rules import host_of
from scrapy_dripper.sites import Hosts
from scrapy_dripper.sites.templates import ALIKE, MOST_TEMPLATES, Outcome, Templates, layout, write_rules

LAYOUTS = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "url", "host", "file_path", "record")),
        ("offset", pa.int64()),
        ("layout", pa.binary()),
        ("coverage", pa.list_(pa.int32())),
    ]
)
"""The columns of :class:`LayoutStep`."""
LEAST_CLUSTER = 8
"""Minimum number of pages of a cluster. The engine labels at least four of them."""
MOST_CLUSTERED = 10_000
"""Maximum number of pages of a host that are clustered, chosen at random."""
MOST_CLUSTERS = 256
"""Maximum number of clusters of a host, of which most have a single page."""
MOST_LABELLED = 16
"""Maximum number of pages of a cluster that the engine labels."""
ENOUGH = 3
"""Number of pages that the rules of a cluster have to answer, after which no others are labelled."""
HOSTS_TOGETHER = 64
"""Number of hosts whose pages are labelled together."""


class LayoutStep(PipelineStep):  # type: ignore[misc]
    """Replace each page by its layout and the place of its record, for :class:`TemplateLearner`."""

    type = "LAYOUT"
    name = "Layouts"

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def run(self, data: Iterable[Row], rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Yield a document for each page that has a host and can be read."""
        for row in data:
            url = str(row.metadata["url"])
            try:
                page = read(Document(row.text, url), self.config)
            except PageError:
                continue
            if host := host_of(url):
                found = {"host": host, "layout": layout(page).tobytes(), "coverage": coverage(page)}
                row.text, row.metadata = "", row.metadata | found
                yield row


class TemplateLearner(PipelineStep):  # type: ignore[misc]
    """Learn the templates of hosts, and write them as rules (:func:`~scrapy_dripper.sites.write_rules`).

    The pages of a host are clustered by their layouts (AICC, section 2.1.2). The engine labels the page of a cluster
    that covers most of what its pages have (:func:`representative`), and then others, until the rules that are made of
    its labels agree with it, but :data:`MOST_LABELLED` pages at most. Each rank has its share of the hosts. Stats:
    ``hosts``, ``clusters``, ``labelled``, ``templates`` and, for pages that have changed since, ``gone``.
    """

    type = "TEMPLATES"
    name = "Templates"

    def __init__(self, layouts: str | os.PathLike[str], folder: str | os.PathLike[str], config: Config) -> None:
        """``layouts`` is the folder of the layouts, and ``folder`` that of the rules."""
        super().__init__()
        self.layouts, self.folder, self.config = Path(layouts), Path(folder), replace(config, processes=0)

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Write the rules of a share of the hosts. Yields nothing."""
        hosts = sorted(self._pages(rank, world_size).items())
        templates = Templates(HOSTS_TOGETHER)
        with Extractor(self.config, hosts=Hosts(templates=templates)) as extractor:
            for first in range(0, len(hosts), HOSTS_TOGETHER):
                some = dict(hosts[first : first + HOSTS_TOGETHER])
                self._learn(extractor, [cluster for pages in some.values() for cluster in self._clusters(pages)])
                about = f"learnt from the labels of {extractor.engine.name}"
                own = {name: known for name, known in templates if name in some}
                written = [write_rules(self.folder, name, known, about) for name, known in own.items()]
                self.stat_update("hosts", value=len(some))
                self.stat_update("templates", value=sum(written))
        yield from ()

    def _pages(self, rank: int, world_size: int) -> dict[str, list[dict[str, Any]]]:
        """Return the pages of the hosts of a rank that have enough of them."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in sorted(self.layouts.glob("*.parquet")):
            for row in pq.read_table(file).to_pylist():
                if zlib.crc32(row["host"].encode("utf-8", "replace")) % world_size == rank:
                    found[row["host"]].append(row)
        return {host: pages for host, pages in found.items() if len(pages) >= LEAST_CLUSTER}

    def _clusters(self, pages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Return the pages to label of each cluster that is large enough, in their order."""
        pages = random.Random(pages[0]["host"]).sample(pages, min(len(pages), MOST_CLUSTERED))
        found = []
        for members in clustered(np.array([np.frombuffer(page["layout"], np.uint8) for page in pages])):
            if len(members) >= LEAST_CLUSTER:
                own = [pages[i] for i in members]
                first = own.pop(representative([page["coverage"] for page in own]))
                found.append([first, *own][:MOST_LABELLED])
        self.stat_update("clusters", value=len(found))
        return found

    def _learn(self, extractor: Extractor, clusters: list[list[dict[str, Any]]]) -> None:
        """Label the next page of each cluster, all of them together, until the templates answer."""
        answered = [0] * len(clusters)
        for turn in range(MOST_LABELLED):
            left = [i for i, pages in enumerate(clusters) if turn < len(pages) and answered[i] < ENOUGH]
            read = [(i, document) for i in left if (document := self._document(clusters[i][turn])) is not None]
            for (i, _), one in zip(read, extractor.extract([document for _, document in read]), strict=True):
                is_answer = one.details.get("template") == Outcome.ANSWERED.value
                answered[i] += is_answer
                self.stat_update("labelled", value=int(not is_answer))

    def _document(self, page: dict[str, Any]) -> Document | None:
        wanted = page["record"], page["url"]
        found = recorded_at(page["file_path"], page["offset"], wanted, 10 * self.config.limits.bytes)
        if found is None:
            self.stat_update("gone")
            return None
        return Document(decode_html(found.body, charset(found)), page["url"])


def coverage(page: Page) -> list[int]:
    """Return what the paper chooses representatives by: how many tags with classes and how many names of attributes a
    page has, its depth, and its width, the most elements of one depth.
    """
    tree = page.tree
    attributes = {name for node in tree.nodes for name in node.keys()}  # noqa: SIM118 (of lxml)
    wide = np.bincount(tree.depth)
    return [len(np.unique(tree.tag_class)), len(attributes), len(wide), int(wide.max())]


def representative(covered: Sequence[Sequence[int]]) -> int:
    """Return the number of the page that covers most: whose measures are the largest shares of the cluster's maxima."""
    counts = np.array(covered, dtype=np.float64)
    return int((counts / np.maximum(counts.max(axis=0), 1)).sum(axis=1).argmax())


def clustered(vectors: npt.NDArray[np.uint8]) -> list[list[int]]:
    """Return clusters of vectors of shape (n, size), as their numbers, the largest cluster first.

    A vector joins the cluster to whose sum its cosine is greatest, if that is at least
    :data:`~scrapy_dripper.sites.ALIKE`. There are at most :data:`~scrapy_dripper.sites.MOST_TEMPLATES` clusters.
    """
    sums = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    found: list[list[int]] = []
    for i, vector in enumerate(vectors.astype(np.float32)):
        unit = vector / max(float(np.linalg.norm(vector)), 1.0)
        cosines = sums @ unit / np.linalg.norm(sums, axis=1)
        best = int(cosines.argmax()) if len(found) else -1
        if best >= 0 and cosines[best] >= ALIKE:
            sums[best] += unit
            found[best].append(i)
        elif len(found) < MOST_CLUSTERS:
            sums, found = np.vstack([sums, unit]), [*found, [i]]
    return sorted(found, key=len, reverse=True)[:MOST_TEMPLATES]
