"""The pipeline for items that carry their own HTML, from an archive, an API or another crawl."""

from __future__ import annotations

from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.crawl.fields import Fields, warn_of_feeds
from scrapy_dripper.data import Document


class DripperPipeline:
    """Fill ``main_html`` and ``markdown`` of items from their fields ``html`` (text or bytes) and ``url``.

    An item is not changed if it has no HTML, or if its fields are filled already. No item is ever dropped. Raise
    :exc:`~scrapy.exceptions.NotConfigured` if ``DRIPPER_ENABLED`` is False.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._dripper = Dripper.from_crawler(crawler)
        if not self._dripper.config.enabled:
            raise NotConfigured("DRIPPER_ENABLED is False")
        self._fields = Fields(self._dripper.stats)
        warn_of_feeds(crawler, self._dripper.config)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DripperPipeline:
        """Return the pipeline of this crawl. Raises what :meth:`Dripper.from_crawler` raises."""
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        """Return the item, with its fields filled if it has HTML."""
        try:
            await self._fill(item)
        except Exception:
            self._dripper.stats.bug("the pipeline")
        return item

    async def _fill(self, item: Any) -> None:
        adapter = ItemAdapter(item)
        html = adapter.get("html")
        if isinstance(html, (bytearray, memoryview)):
            html = bytes(html)
        if not isinstance(html, (str, bytes)):
            if html is not None:
                self._dripper.stats.not_text(html)
            return
        config = self._dripper.config
        options = self._fields.open(item, config)
        if not options:
            return
        extraction = await self._dripper.extract_document(Document(html, str(adapter.get("url") or "")))
        if extraction is not None:
            self._fields.fill(item, options, config, extraction)
        else:
            self._fields.leave_empty(item, options, config)
