"""Settings for one spider: ``custom_settings``."""

from __future__ import annotations

from example.base import OWN_SITE
from example.spiders.site import SiteSpider


class StrictSpider(SiteSpider):
    """The same crawl, with the model's word or nothing, and the first part of a page that is too large."""

    name = "strict"
    custom_settings = OWN_SITE | {"DRIPPER_FALLBACK": "empty", "DRIPPER_OVERSIZE": "truncate"}
