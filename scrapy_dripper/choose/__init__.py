"""Choose what is written of a page, after its engine has labelled the blocks, in steps."""

from scrapy_dripper.choose.mask import mask_of
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.choose.steps import Choice, choose

__all__ = ["Choice", "Labels", "ScoredPage", "choose", "mask_of"]
