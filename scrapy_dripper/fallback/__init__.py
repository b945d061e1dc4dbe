"""Fallback extractors for pages that the model cannot process, and the metadata of pages."""

from scrapy_dripper.fallback.fallback import BUILT_IN, NOT_A_PAGE, fall_back, metadata
from scrapy_dripper.fallback.shell import fill_shell
from scrapy_dripper.fallback.trees import first_part

__all__ = ["BUILT_IN", "NOT_A_PAGE", "fall_back", "fill_shell", "first_part", "metadata"]
