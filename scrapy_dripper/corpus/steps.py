"""Steps of datatrove's pipelines: read archives, extract their pages, and write rows of Parquet."""

from __future__ import annotations

import json
import logging
import os
import platform
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document as Row
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers.base import BaseDiskReader
from datatrove.pipeline.writers.parquet import ParquetWriter

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.arrow import about_page
from scrapy_dripper.corpus.processes import extracting
from scrapy_dripper.corpus.records import charset, pages, recorded_at
from scrapy_dripper.corpus.tasks import local
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import PageError, read
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.sites import Hosts, Outcome, Templates, clustered, host_of, layout, write_rules

MAX_BYTES = 100_000_000
"""Size limit of a record in bytes, before and after decompression: ten times ``DRIPPER_LIMITS["bytes"]``."""
OUTPUTS = ("markdown", "text", "main_html")
"""Forms of the main content for the text of a document."""
ON_ERROR = ("keep", "drop")

# A batch of large pages can exceed the offsets of a plain string column (2 GiB).
_LONG = pa.large_string()
_COLUMNS = {
    "id": pa.string(),
    "url": pa.string(),
    "date": pa.string(),
    "title": pa.string(),
    "text": _LONG,
    "main_html": _LONG,
    "content": _LONG,
    "page": pa.string(),
    "page_type": pa.string(),
    "quality": pa.float32(),
    "source": pa.string(),
    "reason": pa.string(),
    "error": pa.string(),
    "truncated": pa.string(),
    "digest": pa.string(),
    "file_path": pa.string(),
    "language": pa.string(),
    "language_score": pa.float32(),
}
LAYOUTS = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "url", "host", "file_path", "record")),
        ("offset", pa.int64()),
        ("layout", pa.binary()),
    ]
)
"""The columns of :class:`LayoutStep`."""
LEAST_CLUSTER = 8
"""Minimum number of pages of a cluster. The engine labels at least four of them."""
MOST_CLUSTERED = 10_000
"""Maximum number of pages of a host that are clustered, chosen at random."""
MOST_LABELLED = 16
"""Maximum number of pages of a cluster that the engine labels."""
ENOUGH = 3
"""Number of pages that the rules of a cluster have to answer, after which no others are labelled."""
HOSTS_TOGETHER = 64
"""Number of hosts whose pages are labelled together."""
_OPTIONAL = ("main_html", "content", "page", "language", "language_score")
ROWS_TOGETHER = 256
"""Number of rows to hold in memory before they are written."""


class FastWarcReader(BaseDiskReader):  # type: ignore[misc]
    """Read the HTML pages of WARC files, uncompressed or compressed with gzip, zstd or lz4, with FastWARC.

    The text of a document is the page's HTML, decoded as in a crawl (:mod:`scrapy_dripper.page.charset`). Its metadata
    are ``url``, ``date``, ``digest`` (the payload digest of the record), ``truncated`` (why the archive only holds a
    part of the page; None if it is complete), ``file_path``, and ``offset`` and ``record``, the place and the id of the
    record in the file. Its id is that of the record.

    Pages are counted as ``pages``, and also as ``truncated`` if they are. Other records are counted as
    ``skipped/REASON``.
    """

    name = "FastWARC"
    _requires_dependencies = ["fastwarc"]  # noqa: RUF012 (datatrove's)

    def __init__(self, data_folder: Any, paths_file: Any = None, *, max_bytes: int = MAX_BYTES, **options: Any) -> None:
        """``max_bytes`` is the size limit of a record. Other options are those of datatrove's readers."""
        super().__init__(data_folder, paths_file, **options)
        self.max_bytes = max_bytes

    def read_file(self, filepath: str) -> Iterator[Row]:
        """Yield the documents of one file."""
        with self.data_folder.open(filepath, "rb") as stream:
            skip = lambda reason: self.stat_update(f"skipped/{reason}")  # noqa: E731
            for number, (record, page) in enumerate(pages(stream, self.max_bytes, skip, filepath)):
                with self.track_time():
                    segment = "segment" if "WARC-Segment-Number" in record.headers else None
                    truncated = record.headers.get("WARC-Truncated") or segment
                    self.stat_update("pages", *(["truncated"] if truncated else []))
                    data = {
                        "text": decode_html(page.body, charset(page)),
                        "url": page.url,
                        "date": record.headers.get("WARC-Date") or "",
                        "digest": record.headers.get("WARC-Payload-Digest"),
                        "truncated": truncated,
                        "offset": record.stream_pos,
                        "record": record.headers.get("WARC-Record-ID"),
                    }
                    if id_ := record.headers.get("WARC-Record-ID"):
                        data["id"] = id_
                    document = self.get_document_from_dict(data, filepath, number)
                if document is not None:
                    yield document


class ListedArchives(FastWarcReader):
    """Read the archives in a folder that a list names: each line is a name as a JSON string, which nothing can change.

    Of a plain name, datatrove takes spaces away.
    """

    def __init__(self, folder: str | Path, listed: str | Path, **options: Any) -> None:
        super().__init__(local(folder), **options)
        self.listed = Path(listed)

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Yield the documents of every ``world_size``-th archive, from number ``rank`` on."""
        with self.listed.open(encoding="ascii") as lines:
            names = [json.loads(line) for line in islice(lines, rank, None, world_size)]
        for row in self.read_files_shard(names):
            self.update_doc_stats(row)
            yield row


class DripperExtractor(PipelineStep):  # type: ignore[misc]
    """Replace the HTML in the text of documents by its main content.

    The id and the metadata are kept, and these keys are added to the metadata: ``title``, ``main_html``, ``page_type``,
    ``quality``, ``source``, ``reason`` (the fallback reason or None) and ``error``; optionally also ``content`` (the
    content list as JSON) and ``page`` (the page's metadata as JSON). The URL is taken from the metadata (``url``).

    A page without content is kept as a document without text (``on_error="keep"``) or dropped (``"drop"``). Stats count
    the results: ``pages``, ``source/NAME``, ``reason/NAME``, ``template/OUTCOME``, ``page_type/NAME``, ``extracted``,
    ``empty`` and ``dropped``. Pages that are not counted as ``extracted`` are ``empty``, and possibly ``dropped``.

    The engine is loaded once per rank. Pages are extracted in this process, and large ones in a worker process. With
    ``processes``, pages are extracted in that many worker processes, so that a page that hangs, crashes or exhausts
    memory does not affect others.
    """

    type = "EXTRAC"
    name = "Dripper"

    def __init__(
        self,
        config: Config | None = None,
        *,
        output: str = "markdown",
        content: bool = False,
        on_error: str = "keep",
        processes: int = 0,
        templates: str | os.PathLike[str] | None = None,
    ) -> None:
        """``templates`` is a folder of :class:`TemplateLearner`: its rules label the pages for which there are any.

        Raise :exc:`~scrapy_dripper.config.ConfigError` for an invalid value.
        """
        super().__init__()
        if output not in OUTPUTS:
            raise ConfigError(f"output must be one of {', '.join(map(repr, OUTPUTS))} (got {output!r})")
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error must be one of {', '.join(map(repr, ON_ERROR))} (got {on_error!r})")
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 0:
            raise ConfigError(f"processes must be a whole number of at least 0 (got {processes!r})")
        self.config = replace(config or Config(), content_field="content" if content else None)
        self.output, self.content, self.on_error, self.processes = output, content, on_error, processes
        self.templates = None if templates is None else Path(templates)

    def run(self, data: Iterable[Row], rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Yield the documents in order, with their main content."""
        # Silences Trafilatura, because the metadata hold the reasons.
        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
        hosts = None if self.templates is None else Hosts(templates=Templates(folder=self.templates))
        with extracting(self.config, self.processes, hosts) as extract:
            for rows, extractions in extract(self._batches(data)):
                yield from (row for row, one in zip(rows, extractions, strict=True) if self._fill(row, one))

    def _batches(self, data: Iterable[Row]) -> Iterator[tuple[list[Row], list[Document]]]:
        rows = iter(data)
        while batch := list(islice(rows, self.config.batch_size)):
            yield batch, [Document(row.text, str(row.metadata.get("url") or "")) for row in batch]

    def _fill(self, row: Row, extraction: Extraction) -> bool:
        """Write an extraction into its document and count it. Return False if the document is to be dropped."""
        about = about_page(extraction)
        row.text = getattr(extraction, self.output) or ""
        row.metadata |= about | {"main_html": extraction.main_html}
        outcome = "extracted" if row.text else "empty" if self.on_error == "keep" else "dropped"
        self.stat_update("pages", outcome)
        about["template"] = extraction.details.get("template")
        for name in ("source", "reason", "template", "page_type"):
            if about[name]:
                self.stat_update(f"{name}/{about[name]}")
        if self.content:
            content = extraction.content
            row.metadata["content"] = None if content is None else json.dumps(content, ensure_ascii=False)
        if extraction.metadata is not None:
            row.metadata["page"] = json.dumps(extraction.metadata.as_dict(), ensure_ascii=False)
        self.update_doc_stats(row)
        return outcome != "dropped"


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
                row.text, row.metadata = "", row.metadata | {"host": host, "layout": layout(page).tobytes()}
                yield row


class TemplateLearner(PipelineStep):  # type: ignore[misc]
    """Learn the templates of hosts, and write them as rules (:func:`~scrapy_dripper.sites.write_rules`).

    The pages of a host are clustered by their layouts (AICC, section 2.1.2). The engine labels the page of a cluster
    with the most kinds of elements, and then others, until the rules that are made of its labels agree with it, but
    :data:`MOST_LABELLED` pages at most. Each rank has its share of the hosts. Stats: ``hosts``, ``clusters``,
    ``labelled``, ``templates`` and, for pages that have changed since, ``gone``.
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
                first = max(own, key=lambda page: int(np.count_nonzero(np.frombuffer(page["layout"], np.uint8))))
                found.append([first, *(page for page in own if page is not first)][:MOST_LABELLED])
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


def schema(optional: Iterable[str] = ()) -> pa.Schema:
    """Return the columns of a document.

    ``main_html``, ``content``, ``page``, ``language`` and ``language_score`` are optional.
    """
    left_out = set(_OPTIONAL) - set(optional)
    return pa.schema([(name, kind) for name, kind in _COLUMNS.items() if name not in left_out])


class RowWriter(ParquetWriter):  # type: ignore[misc]
    """Write the documents of each rank into a file of a folder, which appears once it is complete.

    A Parquet file that was not closed cannot be read at all. Until then, it is in the folder ``unfinished``, and named
    after the process, because a cluster may run a rank twice: it cannot distinguish a dead machine from a machine that
    it no longer reaches. A rank without documents writes a table without rows.
    """

    def __init__(self, folder: str | os.PathLike[str], columns: pa.Schema) -> None:
        self.folder = Path(folder)
        super().__init__(
            local(self.folder / "unfinished"),
            compression="zstd",
            adapter=_row,
            batch_size=ROWS_TOGETHER,
            max_file_size=-1,  # one file per rank
            schema=columns,
        )

    def _get_output_filename(self, document: Row, rank: int | str = 0, **options: Any) -> str:
        if isinstance(rank, str):  # datatrove's name of the stat for this file
            return str(super()._get_output_filename(document, rank, **options))
        return f"{rank:05d}-{platform.node()}-{os.getpid()}.parquet"

    def run(self, data: Iterable[Row], rank: int = 0, world_size: int = 1) -> Iterator[Row]:
        """Yield the documents, close their file and move it. Files that killed processes have left are removed."""
        yield from super().run(data, rank, world_size)
        unfinished = self.folder / "unfinished"
        written = unfinished / self._get_output_filename(Row("", ""), rank)
        if not written.exists():
            unfinished.mkdir(parents=True, exist_ok=True)
            pq.write_table(self.schema.empty_table(), written)
        written.replace(self.folder / f"{rank:05d}.parquet")
        for rest in unfinished.glob(f"{rank:05d}-*.parquet"):
            rest.unlink(missing_ok=True)


def _row(writer: RowWriter, document: Row) -> dict[str, Any]:
    values = {"id": document.id, "text": document.text} | document.metadata
    return {name: values.get(name) for name in writer.schema.names}
