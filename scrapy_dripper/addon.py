"""One line in the settings: ``ADDONS = {"scrapy_dripper.Addon": 500}``."""

from __future__ import annotations

from scrapy.settings import BaseSettings, get_settings_priority

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.crawl.batcher import most_waiting
from scrapy_dripper.crawl.log import DripperLogFormatter, say_errors_in_one_sentence
from scrapy_dripper.downloadermiddlewares import DripperBackpressureMiddleware, DripperShellMiddleware, has_browser
from scrapy_dripper.spidermiddlewares import DripperSpiderMiddleware

PAGE_BYTES = 500_000
"""A large page: what a page that waits for its batch is reckoned at."""
ITEMS = 32
"""Items of one response that go through the pipelines at a time, at least."""


class Addon:
    """Install the spider middleware, backpressure, and what scrapy-poet, scrapy-playwright and archives need.

    ``DRIPPER_WARC`` and ``DRIPPER_REPLAY`` work without the rest, under ``DRIPPER_ENABLED = False``.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components that the user has not placed or switched off, and suit Scrapy to responses that wait.

        They wait for their batch: there is room for those that may wait, and Scrapy makes fewer tasks for each. Its log
        shows the beginning of long values of items.

        Raise :exc:`~scrapy_dripper.config.ConfigError` for a wrong setting.
        """
        say_errors_in_one_sentence()
        config = Config.from_settings(settings)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", DripperSpiderMiddleware, 25)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", DripperBackpressureMiddleware, 20)
        if config.retry_shells or has_browser(settings):
            # After retries and redirects, and before the gate, which is for pages that a callback gets.
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", DripperShellMiddleware, 30)
        _provide(settings)
        _archive(settings, config)
        if not config.enabled:
            return
        _suggest(settings, "LOG_FORMATTER", DripperLogFormatter)
        # Pages that wait for a batch count against this limit: with Scrapy's 5 MB, ten large pages stop the downloads
        # before the batch is full.
        size = most_waiting(config) * PAGE_BYTES
        if size > settings.getint("SCRAPER_SLOT_MAX_ACTIVE_SIZE"):
            _suggest(settings, "SCRAPER_SLOT_MAX_ACTIVE_SIZE", size)
        # Scrapy makes so many tasks for every response, at once, even if it yields one item.
        items = max(ITEMS, most_waiting(config))
        if items < settings.getint("CONCURRENT_ITEMS"):
            _suggest(settings, "CONCURRENT_ITEMS", items)


def _suggest(settings: BaseSettings, name: str, value: object) -> None:
    """Set what nobody has set, another add-on neither."""
    if (settings.getpriority(name) or 0) < get_settings_priority("addon"):
        settings.set(name, value, "addon")


def _archive(settings: BaseSettings, config: Config) -> None:
    """Install what writes responses into an archive, and what reads them there instead of downloading."""
    if config.warc is None and config.replay is None:
        return
    try:
        from scrapy_dripper.corpus.archive import WarcMiddleware
        from scrapy_dripper.corpus.replay import ReplayHandler, archives
    except ImportError as error:
        raise ConfigError(
            f"DRIPPER_WARC and DRIPPER_REPLAY need FastWARC ({error}): pip install 'scrapy-dripper[corpus]'"
        ) from None
    if config.warc is not None:  # nearest to the downloader, nearer than Scrapy's cache: responses as they came
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", WarcMiddleware, 950)
    if config.replay is not None:
        archives(settings)
        for scheme in ("http", "https"):
            settings["DOWNLOAD_HANDLERS"][scheme] = ReplayHandler


def _provide(settings: BaseSettings) -> None:
    try:
        from scrapy_dripper.providers import DripperProvider
    except ImportError:  # Without scrapy-poet nobody asks for it.
        return
    settings.setdefault_in_component_priority_dict("SCRAPY_POET_PROVIDERS", DripperProvider, 1101)
