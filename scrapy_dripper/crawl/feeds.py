"""Warn about feeds that would lose the main content of all items because the first item has none."""

from __future__ import annotations

import logging
from weakref import WeakSet

from scrapy.crawler import Crawler

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.fields import VALUES

logger = logging.getLogger(__name__)

HEADED = ("csv", "parquet", "xlsx", "orc", "avro")
"""Formats whose exporters take the columns from the first item: Scrapy's own, and those of plugins."""

_warned: WeakSet[Crawler] = WeakSet()


def warn_of_feeds(crawler: Crawler, config: Config) -> None:
    """Warn once for each crawl if a feed with columns does not name them."""
    names = [field for option in VALUES if (field := getattr(config, option))]
    if crawler in _warned or not names or crawler.settings["FEED_EXPORT_FIELDS"]:
        return
    for uri, options in crawler.settings.getdict("FEEDS").items():
        if f"{options.get('format')}".lower() in HEADED and not options.get("fields"):
            _warned.add(crawler)
            logger.warning(
                "The feed %s takes its columns from the first item. If that item has no main content, such as one of "
                "a file or of start(), the feed has none at all. To name the columns, set FEED_EXPORT_FIELDS = %s, "
                "with all other fields of your items, or 'fields' of that feed in FEEDS",
                uri,
                ["url", *names],
            )
            return
