"""What most crawls and all commands of Scrapy import. The reactor is not, because it can be chosen."""

# ruff: noqa: F401
import gc
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

import scrapy.commands
import scrapy.core.downloader.contextfactory
import scrapy.core.downloader.handlers.http11
import scrapy.core.scheduler
import scrapy.pipelines
import tldextract  # of cookies
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

import scrapy_dripper.addon
import scrapy_dripper.commands.dripper
import scrapy_dripper.downloadermiddlewares
import scrapy_dripper.extractor
import scrapy_dripper.fallback.methods
import scrapy_dripper.spidermiddlewares
import tests.crawl.processes

for module in iter_modules(scrapy.commands.__path__):
    import_module(f"scrapy.commands.{module.name}")
for entry in entry_points(group="scrapy.commands"):
    entry.load()
for name in ("DOWNLOADER_MIDDLEWARES_BASE", "SPIDER_MIDDLEWARES_BASE"):
    for path in getattr(default_settings, name):
        load_object(path)
for path in tests.crawl.crawling.EXTENSIONS:
    load_object(path)
gc.freeze()
