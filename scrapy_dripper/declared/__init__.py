"""Read what a page says of itself, once: its head, JSON-LD, microdata and RDFa, and what it is called."""

from scrapy_dripper.declared.head import Declared, read_declared

__all__ = ["Declared", "read_declared"]
