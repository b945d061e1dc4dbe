"""The pages of archives and of HTML files, for commands that read them."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from scrapy_dripper.cli.console import UsageError, say, why
from scrapy_dripper.cli.inputs import READ_FACTOR, WARC, Source, find_sources, read_source
from scrapy_dripper.data import Document


@dataclass(frozen=True, slots=True)
class InputPage:
    """A page of the inputs."""

    name: str
    """The file it is in."""
    document: Document


class PageInputs:
    """The pages of the inputs, which can be read several times. An input that cannot be read is named only once."""

    def __init__(self, names: Sequence[str], max_bytes: int) -> None:
        self._limit = READ_FACTOR * max_bytes
        self._named: set[str] = set()
        self._archives: list[Path] = []
        others = []
        for name in names:
            matches = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not matches:
                raise UsageError(f"{name}: not found")
            for path in matches:
                files = sorted(Path(path).rglob("*")) if os.path.isdir(path) else [Path(path)]
                archives = [file for file in files if file.name.lower().endswith(WARC) and file.is_file()]
                self._archives += archives
                others += [] if archives else [path]
        self._sources = find_sources(others, self._fail)
        if not self._archives and not self._sources:
            raise UsageError(f"no WARC and no HTML file in {' '.join(names)}")

    def __iter__(self) -> Iterator[InputPage]:
        for source in self._sources:
            document = self._read(source)
            if document is not None:
                yield InputPage(source.name, document)
        for archive in self._archives:
            yield from self._pages(str(archive))

    def _pages(self, name: str) -> Iterator[InputPage]:
        """Yield the pages of an archive."""
        from scrapy_dripper.corpus.records import UNREADABLE, charset, pages

        lost: Counter[str] = Counter()
        try:
            with open(name, "rb") as stream:
                for _, page in pages(stream, self._limit, lambda reason: lost.update([reason]), name):
                    yield InputPage(name, Document(page.body, page.url, charset(page)))
        except OSError as error:
            self._fail(name, why(error))
        if listed := ", ".join(f"{reason} {lost[reason]:,}" for reason in UNREADABLE if lost[reason]):
            self._fail(name, f"records that cannot be read: {listed}")

    @property
    def failed(self) -> bool:
        """True if an input, or a part of it, could not be read."""
        return bool(self._named)

    def _read(self, source: Source) -> Document | None:
        try:
            return read_source(source, self._limit)
        except (OSError, ValueError, HTTPException) as error:
            self._fail(source.name, why(error))
            return None

    def only(self, numbers: Iterable[int]) -> Iterator[tuple[int, InputPage]]:
        """Yield the pages with these numbers."""
        wanted = frozenset(numbers)
        return ((number, page) for number, page in enumerate(self) if number in wanted)

    def _fail(self, name: str, reason: str) -> None:
        if name not in self._named:
            self._named.add(name)
            say(f"{name}: {reason}")
