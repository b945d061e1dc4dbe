"""The dates of a page: first those for machines, then those beside the headline, then others."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from lxml import etree

from scrapy_dripper.metadata.dates import date_in_path, iso_date, written_date
from scrapy_dripper.metadata.json_ld import Linked, texts
from scrapy_dripper.metadata.tree import UNSEEN, Described, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

BEFORE, BEHIND = 30, 200
"""Number of elements before and after the headline whose texts may be the date of the page."""
LONGEST_LINE = 60
"""Maximum length of such a text, in characters."""
MOST_DRAFTED = 90
"""Maximum number of days between the last change of a draft and its publication."""

# Names of meta elements, in lower case.
_PUBLISHED = (
    "article:published_time", "og:article:published_time", "datepublished", "parsely-pub-date", "sailthru.date",
    "citation_publication_date", "citation_date", "citation_online_date", "dc.date.issued", "dcterms.issued",
    "dc.date.created", "dcterms.created", "dc.date", "dcterms.date", "pubdate", "publishdate", "publish-date",
    "publish_date", "published_date", "published", "publication_date", "article.published", "article_date_original",
    "cxenseparse:recs:publishtime", "og:pubdate", "og:published_time", "video:release_date", "displaydate",
    "creation_date", "created", "date", "release_date", "datecreated",
)  # fmt: skip
_MODIFIED = (
    "article:modified_time", "og:article:modified_time", "datemodified", "og:updated_time", "dc.date.modified",
    "dcterms.modified", "article.updated", "last-modified", "lastmod", "updated_time", "modified", "revised",
)  # fmt: skip
_MONTH_FIRST = ("en", "en-us", "en-ph", "en-ca", "es-us", "")
"""Languages in which the month comes first in 05/06/2024. Pages of all countries declare ``en``."""

_before: Any = etree.XPath(f"preceding::*[position() <= {BEFORE}]")
_behind: Any = etree.XPath(f"following::*[position() <= {BEHIND}]")
_year = re.compile(r"(?:19|20)\d\d").search
_published = re.compile(r"\b(?:published|posted|written|created)\b", re.I).search
_modified = re.compile(r"\b(?:updated|modified|reviewed|edited)\b", re.I).search
_is_other = re.compile(r"\b(?:join(?:ed)?|member|registered|born|since|copyright|expires|until)\b|©", re.I).search

Dates = tuple[str, str]
"""The dates of publication and of the last change; an unknown date is an empty string."""


class Dating:
    """Finds the dates of one page."""

    def __init__(self, described: Described, linked: Linked, title: str, language: str) -> None:
        self.described, self.linked, self.title = described, linked, title
        self.day_first = language.lower() not in _MONTH_FIRST

    def dates(self, url: str) -> Dates:
        """Return the dates of the page at a URL."""
        published = self._linked("datePublished") or self._in_meta(_PUBLISHED)
        modified = self._linked("dateModified") or self._in_meta(_MODIFIED)
        published = published or self._in_properties("datepublished", "pubdate")
        published = published or self._linked("dateCreated", "uploadDate")
        modified = modified or self._in_properties("datemodified")
        for find in (self._beside_headline, self._shown, self._written_beside_headline, self._named):
            if not published:
                published, changed = find()
                modified = modified or changed
        published = published or date_in_path(url) or ""
        if published and modified and _days(modified) < _days(published) - MOST_DRAFTED:
            published = modified  # changed long before its publication, so it has been published again
        return published, modified

    def _linked(self, *keys: str) -> str:
        said = (text for value in self.linked.values(*keys) for text in texts(value))
        return next((date for text in said if (date := iso_date(text, self.day_first))), "")

    def _in_meta(self, names: tuple[str, ...]) -> str:
        said = (text for name in names for text in self.described.meta.get(name, ()))
        return next((date for text in said if (date := iso_date(text, self.day_first))), "")

    def _in_properties(self, *names: str) -> str:
        elements = (element for name in names for element in self.described.properties.get(name, ())[:5])
        return next((date for element in elements if (date := self._date_of(element))), "")

    def _date_of(self, element: HtmlElement) -> str | None:
        """Return the date of an element: the date for machines, or else the visible one."""
        for name in ("datetime", "content", "title"):
            said = element.get(name)
            if said and (date := iso_date(said, self.day_first)):
                return date
        return written_date(text_of(element, 100), self.day_first)

    def _beside_headline(self) -> Dates:
        """Return the dates of the ``time`` elements around the headline."""
        return self._of(node for node in self._around() if node.tag == "time")

    def _shown(self) -> Dates:
        """Return the dates of the ``time`` elements of the page."""
        return self._of(self.described.times)

    def _named(self) -> Dates:
        """Return the dates in elements whose class names one."""
        return self._of(self.described.dated)

    def _of(self, elements: Iterable[HtmlElement]) -> Dates:
        """Return the first dates of elements, visible or for machines."""
        published = modified = ""
        for element in elements:
            date = self._date_of(element)
            if date and _is_change(f"{element.get('class') or ''} {text_of(element, 100)}"):
                modified = modified or date
            else:
                published = published or date or ""
        return published, modified

    def _around(self) -> list[HtmlElement]:
        """Return the elements around the headline, in document order; empty if there is no heading."""
        headings = [*self.described.headings, *self.described.subheadings]
        named = [one for one in headings if text_of(one, apart=False) == self.title]
        headline = next(iter(named or headings), None)
        if headline is None:
            return []
        return [*_before(headline), *islice(headline.iter(), BEHIND), *_behind(headline)]

    def _written_beside_headline(self) -> Dates:
        """Return the first dates in the short texts around the headline."""
        published = modified = ""
        for node in self._around():
            for text in ("" if node.tag in UNSEEN else node.text, node.tail):
                if not text or len(text) > 4 * LONGEST_LINE or not _year(text):
                    continue
                said = " ".join(text.split())
                date = written_date(said, self.day_first) if len(said) <= LONGEST_LINE else None
                if not date or _is_other(said):
                    continue
                if _is_change(said):
                    modified = modified or date
                else:
                    published = published or date
        return published, modified


def _days(date: str) -> int:
    return dt.date.fromisoformat(date[:10]).toordinal()


def _is_change(text: str) -> bool:
    return bool(_modified(text)) and not _published(text)
