"""Main content of web pages, as clean HTML and Markdown, on the items of a Scrapy crawl."""

from scrapy_dripper.addon import Addon
from scrapy_dripper.dripper import Dripper
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor

__all__ = ["Addon", "Document", "Dripper", "Extraction", "Extractor", "FallbackReason"]
