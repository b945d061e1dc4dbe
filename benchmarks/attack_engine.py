"""An engine for crawls under attack: the bundled tagger, which gets stuck on some pages and blocks the interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page import Page

BURN = "/burn/"
"""Part of the URL of pages on which the engine gets stuck."""


class Burning(Tagger):
    """Gets stuck in a regular expression if the URL of a page has :data:`BURN`."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of each page."""
        if any(BURN in page.url for page in pages):
            re.match(r"(a+)+$", "a" * 64 + "b")
        return super().label(pages)


load = Burning.load
