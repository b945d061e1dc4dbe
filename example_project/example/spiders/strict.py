"""Settings for one spider: ``custom_settings``."""

from __future__ import annotations

from example.base import OWN_SITE
from example.spiders.site import SiteSpider


class StrictSpider(SiteSpider):
    """The same crawl without a fallback, and with only the first part of pages that are too large."""

    name = "strict"
    custom_settings = OWN_SITE | {"DRIPPER_FALLBACK": "empty", "DRIPPER_OVERSIZE": "truncate"}
