"""A datatrove step that extracts main content from HTML."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from datatrove.data import Document as Row
from datatrove.pipeline.base import PipelineStep

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.corpus.processes import extracting
from scrapy_dripper.data import Document, Extraction

OUTPUTS = ("markdown", "text", "main_html")
"""Forms of the main content for the text of a document."""
ON_ERROR = ("keep", "drop")

Batch = tuple[list[Row], list[Document]]


class DripperExtractor(PipelineStep):  # type: ignore[misc]
    """Replace the HTML in the text of documents by its main content.

    The id and the metadata are kept, and these keys are added to the metadata: ``title``, ``main_html``, ``page_type``,
    ``quality``, ``source``, ``reason`` (the fallback reason or None) and ``error``; optionally also ``content`` (the
    content list as JSON) and ``page`` (the page's metadata as JSON). The URL is taken from the metadata (``url``).

    A page without content is kept as a document without text (``on_error="keep"``) or dropped (``"drop"``). Stats count
    the results: ``pages``, ``source/NAME``, ``reason/NAME``, ``page_type/NAME``, ``extracted``, ``empty`` and
    ``dropped``. Pages that are not counted as ``extracted`` are ``empty``, and possibly ``dropped``.

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
    ) -> None:
        """Raise :exc:`~scrapy_dripper.config.ConfigError` for an invalid value."""
        super().__init__()
        if output not in OUTPUTS:
            raise ConfigError(f"output must be one of {', '.join(map(repr, OUTPUTS))} (got {output!r})")
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error must be one of {', '.join(map(repr, ON_ERROR))} (got {on_error!r})")
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 0:
            raise ConfigError(f"processes must be a whole number of at least 0 (got {processes!r})")
        self.config = replace(config or Config(), content_field="content" if content else None)
        self.output, self.content, self.on_error, self.processes = output, content, on_error, processes

    def run(self, data: Iterable[Row], rank: int = 0, world_size: int = 1) -> Iterator[Row]:  # noqa: ARG002
        """Yield the documents in order, with their main content."""
        # Silences Trafilatura, because the metadata hold the reasons.
        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
        with extracting(self.config, self.processes) as extract:
            for rows, extractions in extract(self._batches(data)):
                yield from (row for row, one in zip(rows, extractions, strict=True) if self._fill(row, one))

    def _batches(self, data: Iterable[Row]) -> Iterator[Batch]:
        rows = iter(data)
        while batch := list(islice(rows, self.config.batch_size)):
            yield batch, [Document(row.text, str(row.metadata.get("url") or "")) for row in batch]

    def _fill(self, row: Row, extraction: Extraction) -> bool:
        """Write an extraction into its document and count it. Return False if the document is to be dropped."""
        text = getattr(extraction, self.output) or ""
        reason = extraction.fallback_reason
        self.stat_update("pages", f"source/{extraction.source}")
        if reason is not None:
            self.stat_update(f"reason/{reason}")
        if extraction.page_type:
            self.stat_update(f"page_type/{extraction.page_type}")
        if text:
            self.stat_update("extracted")
        else:
            self.stat_update("empty" if self.on_error == "keep" else "dropped")
        row.text = text
        row.metadata |= {
            "title": extraction.title,
            "main_html": extraction.main_html,
            "page_type": extraction.page_type,
            "quality": extraction.quality,
            "source": extraction.source,
            "reason": None if reason is None else reason.value,
            "error": extraction.error,
        }
        if self.content:
            content = extraction.content
            row.metadata["content"] = None if content is None else json.dumps(content, ensure_ascii=False)
        if extraction.metadata is not None:
            row.metadata["page"] = json.dumps(extraction.metadata.as_dict(), ensure_ascii=False)
        self.update_doc_stats(row)
        return bool(text) or self.on_error == "keep"
