"""The extensions of the example project."""

from __future__ import annotations

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from example.website import Website


class OwnSite:
    """Serves the example's own website during the crawl, at ``url``."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("OWN_SITE"):
            raise NotConfigured
        self.site = Website().start()
        self.url = self.site.url
        crawler.signals.connect(self.site.stop, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnSite:
        """Return the extension of this crawl. Raise NotConfigured unless the spider sets ``OWN_SITE``."""
        return cls(crawler)
