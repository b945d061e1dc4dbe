"""Helpers for tests: an engine without a model, and pages from HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.page import read
from scrapy_dripper.page.page import Page


class FakeEngine:
    """An engine without a model, which labels blocks by a function of their text. By default, everything is main.

    It can be passed to an :class:`~scrapy_dripper.Extractor`, or named in ``DRIPPER_ENGINE``. A crawl only passes its
    configuration. So to use a rule in a crawl, write a subclass that overrides :meth:`probability` or :meth:`answer`.
    """

    name = "fake"
    profile = "native"

    def __init__(
        self,
        config: Config | None = None,
        *,
        main: Callable[[str], float] | None = None,
        limits: Limits | None = None,
    ) -> None:
        """``main`` maps the text of a block to its probability of being main content, or to True or False."""
        self.config = config or Config()
        self.limits = limits or Limits()
        self.batches: list[int] = []
        """The number of pages in each call of :meth:`label`."""
        self.closed = False
        self._main = main

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the answer for each page."""
        self.batches.append(len(pages))
        return [self.answer(page) for page in pages]

    def answer(self, page: Page) -> Labels | EngineError:
        """Return the labels of a page. Blocks with a probability above one half are main."""
        probabilities = np.array([self.probability(text) for text in page.blocks.text], dtype=np.float32)
        return Labels(probabilities, probabilities > 0.5)

    def probability(self, text: str) -> float:
        """Return the probability that a block is main content, 0 to 1."""
        return 1.0 if self._main is None else float(self._main(text))

    def close(self) -> None:
        """Record that the engine was closed."""
        self.closed = True


def page(html: str | bytes, url: str = "", *, config: Config | None = None) -> Page:
    """Return the page of a document, parsed and cut into blocks, as an engine gets it.

    Raise :exc:`~scrapy_dripper.page.page.PageError` for a document that would go to the fallback.
    """
    return read(Document(html, url), config or Config())
