"""The pipeline for items that carry their own HTML, from an archive, an API or another crawl."""

from __future__ import annotations

from typing import Any

from itemadapter import ItemAdapter

from scrapy_dripper.checks import short
from scrapy_dripper.crawl.fields import Filler
from scrapy_dripper.data import Document


class DripperPipeline(Filler):
    """Fill ``main_html`` and ``markdown`` of items from their fields ``html`` (text or bytes) and ``url``.

    An item is not changed if it has no HTML, or if its fields are filled already. No item is ever dropped.
    """

    async def process_item(self, item: Any) -> Any:
        """Return the item, with its fields filled if it has HTML."""
        try:
            await self._process(item)
        except Exception:
            self._stats.bug("the pipeline")
        return item

    async def _process(self, item: Any) -> None:
        adapter = ItemAdapter(item)
        html = adapter.get("html")
        if isinstance(html, (bytearray, memoryview)):
            html = bytes(html)
        if not isinstance(html, (str, bytes)):
            if html is not None:
                self._stats.count("skipped/not_text")
                self._stats.warn(
                    "not_text",
                    "The field html of items must be text or bytes (got %s): such items are passed on without main "
                    "content. With an ItemLoader, use TakeFirst() or Join().",
                    short(html),
                )
            return
        config = self._dripper.config
        if names := self._open(item, config):
            document = Document(html, str(adapter.get("url") or ""))
            extraction = await self._dripper.extract_document(document, metadata="metadata" in names)
            self._fill(item, names, config, extraction)
