"""What a crawl of a site leaves: a folder of Markdown and its index, or one file with all pages."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urldefrag

from w3lib.url import safe_url_string

from scrapy_dripper.cli.inputs import file_name, page_id, unique
from scrapy_dripper.commands.frontier import Frontier, append, is_on, name_of, records
from scrapy_dripper.data import Extraction
from scrapy_dripper.paths import lock, replace_file

INDEX = "index.jsonl"
LEFT = ".crawl"
"""The folder, inside that of the pages, or beside their file with its name before, which an interrupted crawl leaves to
the command that goes on with it."""
FOUND = "found.jsonl"
"""The file of the :class:`Frontier` in that folder."""
ONE_FILE = (".jsonl", ".parquet")
"""Ends of the names of files for all pages. Other names are folders, except those of files of other formats."""
OTHER_FILES = (".csv", ".htm", ".html", ".jl", ".json", ".md", ".ndjson", ".txt", ".xml", ".zip")
RECORD = ("title", "source", "fallback_reason", "error", "page_type", "quality")
"""The attributes of an extraction that are in the index."""
PRINTS = ("content_hash", "simhash")
BITS, BANDS, ALIKE = 64, 4, 3
"""Simhashes of near duplicates differ in at most :data:`ALIKE` of their bits, so they have at least one band of their
bits in common."""


class OutputError(Exception):
    """The output belongs to another crawl, or cannot be made. The message says what to do."""


class Pages:
    """The pages of a crawl, each with a line in the index, and what is needed to go on after any end of the crawl.

    The index is a journal. A page's line is written after all else that belongs to it, and what has no line is asked
    for again. So the command may be killed at any time.
    """

    def __init__(self, path: Path, urls: Sequence[str], *, chunks: bool = False) -> None:
        """Raise :exc:`OutputError` if the output is that of another crawl or of one that is running, and OSError if it
        cannot be written.

        An index, and a crawl that can go on, are not changed before :meth:`begin`: the model may turn out to be wrong.
        """
        self.path, self._urls, self._chunks = path, [urldefrag(safe_url_string(url)).url for url in urls], chunks
        self._form = path.suffix if path.suffix in ONE_FILE and not path.is_dir() else None
        if path.suffix in OTHER_FILES and not path.is_dir():
            raise OutputError(f"{path} cannot be written: name a folder, or a file NAME.jsonl or NAME.parquet")
        self.left = path / LEFT if self._form is None else path.with_name(path.name + LEFT)
        self.index = {None: path / INDEX, ".jsonl": path, ".parquet": self.left / "pages.jsonl"}[self._form]
        self._is_new = not path.exists()
        if (locked := lock(self.left / "lock")) is None:
            raise OutputError(f"another command is writing {path}; wait for its end, or choose another name")
        self._lock = locked
        self._index: IO[str] | None = None
        self.done: set[str] = set()
        """URLs of the pages that have been extracted, or are being extracted."""
        self._told: set[str] = set()
        """URLs with a line in the index."""
        self.pages = self.files = self.failed = 0
        self.by_site: Counter[str | None] = Counter()
        """Number of pages of each site."""
        self._names: dict[str, int] = {}
        self._texts = Texts()
        self.frontier = Frontier(self.left / FOUND)
        self.goes_on = bool(self.frontier.sites)
        try:
            self._read()
        except BaseException:
            self.close(None)
            raise

    def _read(self) -> None:
        """Read what there is. Raise what the constructor does."""
        if others := [site.url for site in self.frontier.sites if site.url not in self._urls]:
            crawl = f"an unfinished crawl of {', '.join(others)}"
            raise OutputError(f"{self.path} holds {crawl}; choose another one, or delete {self.left}")
        if not self.goes_on:
            self._refuse_others()
        for record in records(self.index) if self.goes_on else ():
            self._count(record)
        if self.index.exists():
            self.index.open("a").close()  # raises OSError if begin() could not write it

    @property
    def has_files(self) -> bool:
        """True if each page has a file of its own."""
        return self._form is None

    def _refuse_others(self) -> None:
        """Raise :exc:`OutputError` if there are pages, but none of these sites, or no table in its place."""
        if self._form == ".parquet":
            with no_table(self.path):
                import pyarrow.parquet as pq

                column = pq.read_table(self.path, columns=["url"])["url"] if self.path.exists() else ()
                there = [str(url) for url in column]
        else:
            there = [str(record.get("url")) for record in records(self.index)]
            if not there and self.index.is_file() and self.index.stat().st_size:
                raise OutputError(f"{self.index} is no list of pages; choose another name, or delete it")
        names = {*map(name_of, self._urls)}
        if there and not any(is_on(url, names) for url in there):
            raise OutputError(f"{self.path} has pages of another site, such as {there[0]}; choose another name")

    def begin(self) -> None:
        """Open the index and the frontier. Raise OSError if they cannot be written."""
        if not self.goes_on:
            self.index.write_bytes(b"")
        self._index = append(self.index)
        self.frontier.begin(self._urls, self._told | self.done)

    def _count(self, record: dict[str, Any]) -> None:
        url = str(record.get("url"))
        self._told.add(url)
        if "source" not in record:
            self.failed += "error" in record
            return
        self.done.add(url)
        self._add_page(url, has_content=bool(record.get("file") or record.get("markdown")))
        if record.get("file"):
            unique(str(record["file"]).removesuffix(".md"), self._names)
        self._texts.first(url, *(record.get(name) for name in PRINTS))

    def _add_page(self, url: str, *, has_content: bool) -> None:
        self.pages += 1
        self.files += has_content
        self.by_site[name_of(url)] += 1

    def place(self, url: str, asked: str) -> str:
        """Return the URL of a page's line in the index: its own, or the one that led to it, ``asked``, if its own has a
        line without a page.
        """
        return asked if url in self._told else url

    def write(self, url: str, page: Extraction) -> None:
        """Write a page, and its line in the index."""
        about = page.meta()
        record: dict[str, Any] = {"url": url}
        if self._form is None:
            record["file"] = None
            if page.markdown:
                record["file"] = file_name(unique(page_id(url), self._names), ".md")
                replace_file(self.path / record["file"], page.markdown.strip("\n") + "\n", self.left)
        record |= {name: getattr(page, name) for name in RECORD}
        record |= {name: about[name] if page.text else None for name in PRINTS}
        record["duplicate_of"] = self._texts.first(url, *(record[name] for name in PRINTS))
        record["metadata"] = page.metadata.as_dict() if page.metadata is not None else None
        if self._form is not None:
            record["markdown"] = page.markdown or None
        if self._chunks:
            record["chunks"] = page.chunks
        self._add(record)
        self._add_page(url, has_content=bool(page.markdown))

    def redirect(self, url: str, to: str) -> None:
        """Write that a URL leads to a page that has its own line, perhaps later: it may be being extracted."""
        if url != to:
            self._add({"url": url, "file": None, "redirects_to": to})

    def fail(self, url: str, error: str) -> None:
        """Write why there is no page at a URL."""
        self.failed += self._add({"url": url, "file": None, "error": error})

    def _add(self, record: dict[str, Any]) -> bool:
        """Write the line of a URL, after what was found there, so that nothing is lost. Return False if it has one."""
        assert self._index is not None
        self.frontier.flush()
        if record["url"] in self._told:
            return False
        if self._form is not None:
            record.pop("file", None)
        self._index.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._index.flush()
        self._told.add(record["url"])
        return True

    def summary(self, reason: str | None, max_pages: str) -> str:
        """Return what there is when a crawl has ended, and how it goes on.

        ``reason`` is as for :meth:`close`, and ``max_pages`` the one for enough pages.
        """
        parts = [f"{self.pages:,} {'page' if self.pages == 1 else 'pages'} in {self.path}"]
        if empty := self.pages - self.files:
            parts.append(f"{empty:,} of them without main content")
        if self.failed:
            parts.append(f"{self.failed:,} not to be had")
        where = self.path if self._form else self.index
        text = ", ".join(parts) + (f" ({where} says why)" if len(parts) > 1 else "")
        if reason == "finished":
            return text
        if reason == max_pages:
            return f"{text}; --max-pages is reached: the same command with a larger number goes on"
        return f"{text}; stopped: the same command goes on"

    def close(self, reason: str | None) -> None:
        """Close the files when a crawl has ended, with Scrapy's reason, or None if it was killed.

        A crawl that has finished is forgotten, so that the next one begins again. Of one that has not begun, nothing
        stays. Raise OSError if the file of all pages cannot be written.
        """
        has_begun = self._index is not None
        if self._index is not None:
            self._index.close()
            self.frontier.close()
            if self._form == ".parquet":
                self._write_table(self.left / "pages.parquet").replace(self.path)
        if reason == "finished" or not (has_begun or self.goes_on):
            if sys.platform == "win32":  # which removes no open file
                self._lock.close()
            shutil.rmtree(self.left, ignore_errors=True)
        self._lock.close()
        if not has_begun and self._is_new and self._form is None:
            with suppress(OSError):  # not empty: JOBDIR may be a folder in it
                self.path.rmdir()

    def _write_table(self, path: Path) -> Path:
        """Write the records as a table with the same columns for each site."""
        from scrapy_dripper.exporters import ParquetItemExporter

        columns = ["url", *RECORD, *PRINTS, "duplicate_of", "metadata", "markdown", "redirects_to"]
        with path.open("wb") as file:
            exporter = ParquetItemExporter(file, fields_to_export=[*columns, *["chunks"] * self._chunks])
            for record in records(self.index):
                exporter.export_item(record)
            exporter.finish_exporting()
        return path


@contextmanager
def no_table(path: Path) -> Iterator[None]:
    """Raise :exc:`OutputError` if a package is missing, or if there is something else in place of a table."""
    try:
        yield
    except ImportError as error:
        raise OutputError(f"Parquet needs more packages ({error}): pip install 'scrapy-dripper[corpus]'") from None
    except ValueError as error:
        raise OutputError(f"{path} is no table of pages ({error}); choose another name, or delete it") from None


class Texts:
    """The texts of pages, by their fingerprints, to find the page that had a text first."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}
        self._bands: list[dict[int, list[tuple[int, str]]]] = [defaultdict(list) for _ in range(BANDS)]

    def first(self, url: str, content_hash: str | None, simhash: str | None) -> str | None:
        """Return the URL of an earlier page with the same text, or nearly the same. If there is none, keep this one."""
        if content_hash is None or simhash is None:
            return None
        if (before := self._same.setdefault(content_hash, url)) != url:
            return before
        bits, width = int(simhash, 16), BITS // BANDS
        places = [band[bits >> number * width & (1 << width) - 1] for number, band in enumerate(self._bands)]
        for place in places:
            for other, before in place:
                if (bits ^ other).bit_count() <= ALIKE:
                    return before
        for place in places:
            place.append((bits, url))
        return None
