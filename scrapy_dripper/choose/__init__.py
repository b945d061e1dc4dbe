"""Decide what is written of a page: which blocks, images and comments, each decision once and with its reason."""

from scrapy_dripper.choose.mask import mask_of
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.choose.steps import Choice, choose

__all__ = ["Choice", "Labels", "ScoredPage", "choose", "mask_of"]
