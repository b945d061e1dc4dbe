"""Read the metadata of a page from its parsed tree: meta elements, JSON-LD, microdata, bylines and dates."""

from scrapy_dripper.metadata.language import detected_language
from scrapy_dripper.metadata.read import read_metadata
from scrapy_dripper.metadata.tree import base_url

__all__ = ["base_url", "detected_language", "read_metadata"]
