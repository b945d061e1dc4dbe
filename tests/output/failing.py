"""An engine that makes forms of the output fail, from the next page on, as a page says: ``FAIL chunks ValueError``."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from unittest.mock import patch

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.page import Page
from tests.workers.engines import AllMain

FORMS = {
    "content": "scrapy_dripper.derived.to_json",
    "posts": "scrapy_dripper.choose.steps.posts_of",
    "facts": "scrapy_dripper.extractor.missing",
    "cards": "scrapy_dripper.structures.posts.list_cards",
    "links": "scrapy_dripper.derived.outlinks",
    "chunks": "scrapy_dripper.output.chunks.chunks",
    "metadata": "scrapy_dripper.declared.metadata.read_metadata",
    "front_matter": "scrapy_dripper.derived.yaml",
    "fingerprints": "scrapy_dripper.derived.fingerprints",
}
"""The function that makes each form that can be asked for in addition."""

_orders = re.compile(r"FAIL (\w+) (\w+)").search


class Failing(AllMain):
    """Labels every block main. One form fails at a time."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the pages, after doing what they say."""
        for page in pages:
            if order := _orders("\n".join(page.blocks.text)):
                patch.stopall()
                patch(FORMS[order[1]], side_effect=getattr(builtins, order[2])).start()
        return super().label(pages)
