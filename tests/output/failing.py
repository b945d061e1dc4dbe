"""An engine that makes forms of the output fail, from the next page on, if a page or the name of its model says so:
``FAIL chunks ValueError``.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from scrapy_dripper.engines.base import EngineError, Labels
from scrapy_dripper.page import Page
from tests.workers.engines import DEEDS, AllMain

FORMS = {
    "content": "scrapy_dripper.derived.to_json",
    "posts": "scrapy_dripper.choose.posts_of",
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

    def __init__(self, config: Any) -> None:
        self.fail(config.model or "")

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels of the pages, after doing what they say."""
        for page in pages:
            self.fail("\n".join(page.blocks.text))
        return super().label(pages)

    def fail(self, text: str) -> None:
        """Let a form fail if the text says so."""
        if "RAISE" in text:  # for the fallback, with which all forms work again
            patch.stopall()
        if order := _orders(text):
            patch.stopall()
            deed = DEEDS.get(order[2])
            effect = getattr(builtins, order[2]) if deed is None else lambda *_, deed=deed, **__: deed("")
            patch(FORMS[order[1]], side_effect=effect).start()
