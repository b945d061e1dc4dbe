"""One line in the settings: ``ADDONS = {"scrapy_dripper.Addon": 500}``."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_dripper.config import Config
from scrapy_dripper.downloadermiddlewares import DripperBackpressureMiddleware
from scrapy_dripper.spidermiddlewares import DripperSpiderMiddleware

PAGE_BYTES = 500_000
"""A large page: what a page that waits for its batch is reckoned at."""


class Addon:
    """Install the spider middleware, backpressure and, where scrapy-poet is installed, its provider."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components that the user has not placed or switched off, and make room for two batches.

        Raise :exc:`~scrapy_dripper.config.ConfigError` for a wrong setting.
        """
        config = Config.from_settings(settings)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", DripperSpiderMiddleware, 25)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", DripperBackpressureMiddleware, 20)
        _provide(settings)
        # Pages that wait for a batch count against this limit: with Scrapy's 5 MB, ten large pages stop the downloads
        # before the batch is full.
        name = "SCRAPER_SLOT_MAX_ACTIVE_SIZE"
        room = config.batch_size * 2 * PAGE_BYTES
        if config.enabled and room > settings.getint(name):
            settings.set(name, room, "addon")


def _provide(settings: BaseSettings) -> None:
    try:
        from scrapy_dripper.providers import DripperProvider
    except ImportError:  # Without scrapy-poet nobody asks for it.
        return
    settings.setdefault_in_component_priority_dict("SCRAPY_POET_PROVIDERS", DripperProvider, 1100)
