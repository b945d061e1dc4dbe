"""Read the metadata of a page from its parsed tree: meta elements, JSON-LD, microdata, bylines and dates."""

from scrapy_dripper.metadata.read import detected_language, read_metadata
from scrapy_dripper.metadata.tree import base_url, without_signs

__all__ = ["base_url", "detected_language", "read_metadata", "without_signs"]
