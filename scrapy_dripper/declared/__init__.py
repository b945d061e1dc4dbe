"""Read what a page says of itself, once: its name, dates, authors and facts, from its head, data and headings."""

from scrapy_dripper.declared.head import Declared, read_declared

__all__ = ["Declared", "read_declared"]
