"""Site memory and templates: use the pages of a host seen so far to label the blocks of another one."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_dripper.data import Document, Extraction, InformedDocument, TeachingExtraction, known_of
from scrapy_dripper.page.page import Bools, Page
from scrapy_dripper.rules import host_of
from scrapy_dripper.sites.memory import (
    Hashes,
    SiteMemory,
    digest,
    furniture,
    hashes,
    parts_of,
    places,
)
from scrapy_dripper.sites.templates import (
    Lesson,
    Outcome,
    TemplateLabels,
    Templates,
    clustered,
    is_audited,
    layout,
    read_lesson,
    rules_of,
    template_labels,
    unpack_rules,
    usable_rules,
    write_rules,
)

__all__ = [
    "Hosts",
    "Lesson",
    "Outcome",
    "SiteMemory",
    "TemplateLabels",
    "Templates",
    "clustered",
    "digest",
    "furniture",
    "hashes",
    "host_of",
    "is_audited",
    "layout",
    "parts_of",
    "places",
    "read_lesson",
    "rules_of",
    "template_labels",
    "unpack_rules",
    "usable_rules",
    "write_rules",
]


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """The texts of a page at their places, and those that are known from other pages of its site."""

    page: Page
    found: Hashes
    known: Hashes

    def among(self, main: Bools) -> Bools:
        """Return which main blocks are furniture."""
        return furniture(self.page, main, self.found, self.known)

    def digest(self, main: Bools) -> bytes:
        """Return what the site memory learns from the page."""
        return digest(self.found, main)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The site memory and the templates of an extractor, which learn from each document.

    In a crawl, these are the crawl's: a document comes with what is known about its host, and what can be learnt from
    it goes back with its extraction.
    """

    memory: SiteMemory | None = None
    templates: Templates | None = None

    def informed(self, document: Document) -> Document:
        """Return a document with what is known about its host, for another process."""
        if self.memory is None and self.templates is None:
            return document
        known, templates = self._known(document), self._templates(document)
        return InformedDocument(document.html, document.url, document.charset, document.config, known, templates)

    def template_labels(self, page: Page, document: Document) -> TemplateLabels | None:
        """Return what the templates of its host say about a page, or None if there are no templates."""
        known = self._templates(document)
        return None if known is None else template_labels(page, unpack_rules(known), audit=is_audited(document.url))

    def repeated(self, page: Page, document: Document) -> Repeated | None:
        """Return which texts of a page its site repeats, or None without a site memory."""
        known = self._known(document)
        return None if known is None else Repeated(page, places(page), hashes(known))

    def learn(self, document: Document, extraction: Extraction) -> None:
        """Learn from a document, unless a crawl does."""
        if not isinstance(extraction, TeachingExtraction):
            return
        known, templates = known_of(document)
        if self.memory is not None and known is None and extraction.digest:
            self.memory.learn(document.url, extraction.digest)
        if self.templates is not None and templates is None and extraction.lesson:
            self.templates.learn(document.url, extraction.lesson)

    def _known(self, document: Document) -> bytes | None:
        known, _ = known_of(document)
        return self.memory.known(document.url) if known is None and self.memory is not None else known

    def _templates(self, document: Document) -> bytes | None:
        _, templates = known_of(document)
        return self.templates.known(document.url) if templates is None and self.templates is not None else templates
