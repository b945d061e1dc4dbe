"""Site memory and templates: use the pages of a host seen so far to label the blocks of another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrapy_dripper.data import Document, Extraction, SiteData

if TYPE_CHECKING:
    from scrapy_dripper.config import Config
    from scrapy_dripper.page.page import Page
    from scrapy_dripper.sites.memory import Repeated, SiteMemory
    from scrapy_dripper.sites.templates import TemplateLabels, Templates

# The modules of this room are imported where something is known about sites. Most programs do without.


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
        return replace(document, site=SiteData(self._repeated(document), self._templates(document)))

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
        from scrapy_dripper.sites.memory import Repeated, hashes, places

        return Repeated(page, places(page), hashes(packed))

    def learn(self, document: Document, extraction: Extraction) -> None:
        """Learn from a document, unless a crawl does."""
        if self.memory is None and self.templates is None:
            return
        known, new = document.site, extraction.site
        if self.memory is not None and known.memory is None and new.memory:
            self.memory.learn(document.url, new.memory)
        if self.templates is not None and known.templates is None and new.templates:
            self.templates.learn(document.url, new.templates)

    def _repeated(self, document: Document) -> bytes | None:
        known = document.site.memory
        return self.memory.repeated(document.url) if known is None and self.memory is not None else known

    def _templates(self, document: Document) -> bytes | None:
        known = document.site.templates
        return self.templates.rules(document.url) if known is None and self.templates is not None else known
