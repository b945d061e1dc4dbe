"""Site memory and templates: use the pages of a host seen so far to label the blocks of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_dripper.data import Document, Extraction, SiteDocument, SiteExtraction, site_data

if TYPE_CHECKING:
    from scrapy_dripper.config import Config
    from scrapy_dripper.page.page import Bools, Page
    from scrapy_dripper.sites.memory import Hashes, SiteMemory
    from scrapy_dripper.sites.templates import TemplateLabels, Templates

# The modules of this room are imported where something is known about sites. Most programs do without.


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """The texts of a page at their places, and those that other pages of its site repeat."""

    page: Page
    found: Hashes
    repeated: Hashes

    def among(self, main: Bools) -> Bools:
        """Return which main blocks are boilerplate."""
        from scrapy_dripper.sites.memory import boilerplate

        return boilerplate(self.page, main, self.found, self.repeated)

    def packed_hashes(self, main: Bools) -> bytes:
        """Return what the site memory learns from the page."""
        from scrapy_dripper.sites.memory import packed_hashes

        return packed_hashes(self.found, main)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The site memory and the templates of an extractor, which learn from each document.

    In a crawl, these are the crawl's: a document comes with what is known about its host, and what can be learnt from
    it goes back with its extraction.
    """

    memory: SiteMemory | None = None
    templates: Templates | None = None

    @classmethod
    def of(cls, config: Config) -> Hosts:
        """Return what learns as an option says."""
        if config.sites == "off":
            return cls()
        from scrapy_dripper.sites.memory import SiteMemory
        from scrapy_dripper.sites.templates import Templates

        return cls(SiteMemory() if config.site_memory else None, Templates() if config.templates else None)

    def site_document(self, document: Document) -> Document:
        """Return a document with what is known about its host, for another process."""
        if self.memory is None and self.templates is None:
            return document
        repeated, templates = self._repeated(document), self._templates(document)
        return SiteDocument(document.html, document.url, document.charset, document.config, repeated, templates)

    def template_labels(self, page: Page, document: Document) -> TemplateLabels | None:
        """Return what the templates of its host say about a page, or None if there are no templates."""
        packed = self._templates(document)
        if packed is None:
            return None
        from scrapy_dripper.sites.templates import template_labels, unpack_rules

        return template_labels(page, unpack_rules(packed))

    def repeated(self, page: Page, document: Document) -> Repeated | None:
        """Return which texts of a page its site repeats, or None without a site memory."""
        packed = self._repeated(document)
        if packed is None:
            return None
        from scrapy_dripper.sites.memory import hashes, places

        return Repeated(page, places(page), hashes(packed))

    def learn(self, document: Document, extraction: Extraction) -> None:
        """Learn from a document, unless a crawl does."""
        if not isinstance(extraction, SiteExtraction):
            return
        repeated, templates = site_data(document)
        if self.memory is not None and repeated is None and extraction.hashes:
            self.memory.learn(document.url, extraction.hashes)
        if self.templates is not None and templates is None and extraction.example:
            self.templates.learn(document.url, extraction.example)

    def _repeated(self, document: Document) -> bytes | None:
        repeated, _ = site_data(document)
        return self.memory.repeated(document.url) if repeated is None and self.memory is not None else repeated

    def _templates(self, document: Document) -> bytes | None:
        _, templates = site_data(document)
        return self.templates.rules(document.url) if templates is None and self.templates is not None else templates
