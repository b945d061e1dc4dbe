"""Steps of datatrove's pipelines, and their run: read archives, extract their pages, and write rows of Parquet.

The tasks of a pipeline run on this machine, and show how many documents they have read.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, TypeVar

import dill
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document as Row
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers.base import BaseDiskReader
from datatrove.pipeline.writers.parquet import ParquetWriter
from fsspec.implementations.local import LocalFileSystem
from tqdm import tqdm

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.processes import LINE_SECONDS, extracting
from scrapy_dripper.corpus.records import charset, pages
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.page.charset import decode_html
from scrapy_dripper.sites import Hosts
from scrapy_dripper.sites.templates import Templates
from scrapy_dripper.workers import spawned

logger = logging.getLogger(__name__)

MAX_BYTES = 100_000_000
"""Size limit of a record in bytes, before and after decompression: ten times ``DRIPPER_LIMITS["bytes"]``."""
OUTPUTS = ("markdown", "text", "main_html")
"""Forms of the main content for the text of a document."""

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

    A page without content is kept as a document without text. Stats count the results: ``pages``, ``source/NAME``,
    ``reason/NAME``, ``template/OUTCOME``, ``page_type/NAME``, and ``extracted`` or ``empty``.

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
        processes: int = 0,
        templates: str | os.PathLike[str] | None = None,
    ) -> None:
        """``templates`` is a folder of :class:`TemplateLearner`: its rules label the pages for which there are any.

        Raise :exc:`~scrapy_dripper.config.ConfigError` for an invalid value.
        """
        super().__init__()
        if output not in OUTPUTS:
            raise ConfigError(f"output must be one of {', '.join(map(repr, OUTPUTS))} (got {output!r})")
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 0:
            raise ConfigError(f"processes must be a whole number of at least 0 (got {processes!r})")
        self.config = replace(config or Config(), content_field="content" if content else None)
        self.output, self.content, self.processes = output, content, processes
        self.templates = None if templates is None else Path(templates)

    def run(self, data: Iterable[Row], rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Yield the documents in order, with their main content."""
        # Silences Trafilatura, because the metadata hold the reasons.
        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
        hosts = None if self.templates is None else Hosts(templates=Templates(folder=self.templates))
        with extracting(self.config, self.processes, hosts) as extract:
            for rows, extractions in extract(self._batches(data)):
                for row, one in zip(rows, extractions, strict=True):
                    self._fill(row, one)
                    yield row

    def _batches(self, data: Iterable[Row]) -> Iterator[tuple[list[Row], list[Document]]]:
        rows = iter(data)
        while batch := list(islice(rows, self.config.batch_size)):
            yield batch, [Document(row.text, str(row.metadata.get("url") or "")) for row in batch]

    def _fill(self, row: Row, extraction: Extraction) -> None:
        """Write an extraction into its document and count it."""
        about = about_page(extraction)
        row.text = getattr(extraction, self.output) or ""
        row.metadata |= about | {"main_html": extraction.main_html}
        self.stat_update("pages", "extracted" if row.text else "empty")
        about["template"] = extraction.details.get("template")
        for name in ("source", "reason", "template", "page_type"):
            if about[name]:
                self.stat_update(f"{name}/{about[name]}")
        if self.content:
            content = extraction.content
            row.metadata["content"] = None if content is None else json.dumps(content, ensure_ascii=False)
        if extraction.metadata:
            row.metadata["page"] = json.dumps(extraction.metadata.as_dict(), ensure_ascii=False)
        self.update_doc_stats(row)


def about_page(extraction: Extraction) -> dict[str, Any]:
    """Return what a table says about a page, apart from its text."""
    values = {name: getattr(extraction, name) for name in ("title", "page_type", "quality", "source", "error")}
    return values | {"reason": extraction.fallback_reason and extraction.fallback_reason.value}


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


def local(path: str | Path) -> tuple[str, LocalFileSystem]:
    """Return a path so that datatrove takes it as it is. A text could be a URL, or several of them (``a::b``)."""
    return str(path), LocalFileSystem()


class LocalTasks(LocalPipelineExecutor):  # type: ignore[misc]
    """Runs tasks in processes that end with this one, even if it is killed.

    Those of datatrove's own class go on alone, and it waits for ever for one of them that was killed.
    """

    def __init__(self, steps: list[Any], tasks: int, workers: int, logs: Path) -> None:
        super().__init__(steps, tasks, min(tasks, workers), local(logs))

    def run(self, ranks: list[int]) -> None:
        """Run tasks. One that fails does not stop the others.

        Raise :exc:`~concurrent.futures.process.BrokenProcessPool` if a process is killed.
        """
        if not ranks:
            return
        self.save_executor_as_json()
        with self._begun(ranks) as ends:
            for end in ends:
                try:
                    end()
                except BrokenProcessPool:  # noqa: PERF203
                    raise
                except Exception:  # of any step; datatrove has logged it
                    logger.debug("a task has failed", exc_info=True)

    @contextmanager
    def _begun(self, ranks: list[int]) -> Iterator[Iterator[Callable[[], object]]]:
        """Give a function for each task that waits for its end, in the order in which they end."""
        if self.workers == 1:
            yield (partial(_run, self, rank) for rank in ranks)
            return
        packed = dill.dumps(self)  # pickle cannot pack steps that have functions
        with spawned(min(self.workers, len(ranks))) as pool:
            yield (task.result for task in as_completed([pool.submit(_unpack_and_run, packed, rank) for rank in ranks]))


def _unpack_and_run(packed: bytes, rank: int) -> None:
    tqdm.set_lock(RLock())  # by default, one for several processes, which Python reports if this one is killed
    _run(dill.loads(packed), rank)


def _run(executor: LocalTasks, rank: int) -> None:
    # Steps count what they do, so each task has its own. Of the log, only errors are shown on the terminal.
    deepcopy(executor)._run_for_rank(rank, local_rank=1)


T = TypeVar("T")

SECONDS = 0.5
"""How often the number is shown on a terminal."""


class Progress:
    """Counts the documents of a pipeline in a file to which each task appends a byte for each of them.

    So it needs no process of its own, and shows what is done, not what a task that is half done would take.
    """

    def __init__(self, path: Path, name: str, say: Callable[[str], None]) -> None:
        """``say`` prints a line above the progress bar."""
        self._path, self._name, self._say = path, name, say

    @property
    def step(self) -> Callable[..., Iterator[object]]:
        """The step of a pipeline that counts the documents that pass it."""
        return partial(_counted, str(self._path))

    @contextmanager
    def shown(self, total: int | None) -> Iterator[None]:
        """Show the number while the pipeline runs, and say at the end how many documents there were, and how fast.

        ``total`` is the number of documents, if it is known before they are read.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")
        began, has_ended = time.monotonic(), Event()
        with tqdm(total=total, desc=self._name, unit="page", disable=None) as bar:
            thread = Thread(target=self._show, args=(bar, total, has_ended), daemon=True)
            thread.start()
            try:
                yield
            finally:
                has_ended.set()
                thread.join()
                count, seconds = self._count(), time.monotonic() - began
                bar.update(count - bar.n)
                self._path.unlink()
        if count:
            self._say(
                f"{self._name}: {_pages(count)} in {tqdm.format_interval(seconds)}, {count / seconds:,.1f} a second"
            )

    def _count(self) -> int:
        return os.stat(self._path).st_size

    def _show(self, bar: tqdm[object], total: int | None, has_ended: Event) -> None:
        before = 0
        while not has_ended.wait(LINE_SECONDS if bar.disable else SECONDS):
            now = self._count()
            bar.update(now - bar.n)
            if bar.disable:
                of = "" if total is None else f" of {total:,}"
                self._say(f"{self._name}: {_pages(now)}{of}, {(now - before) * 60 / LINE_SECONDS:,.0f} a minute")
                before = now


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count:,} pages"


def _counted(path: str, rows: Iterable[T] | None, rank: int, world_size: int) -> Iterator[T]:  # noqa: ARG001
    """Yield what the step before yields."""
    with open(path, "ab", buffering=0) as file:
        for row in rows or ():
            yield row
            file.write(b".")
