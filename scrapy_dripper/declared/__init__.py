"""Read what a page says of itself: once, in one pass over its head, its scripts and its first headings.

The other modules of this room read its names, dates, authors and facts, from its head, data and headings.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy_dripper.characters import without_controls
from scrapy_dripper.declared.elements import (
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_ELEMENTS,
    MOST_VALUES,
    heading_text,
    names_site,
    without_signs,
)
from scrapy_dripper.declared.names import Name, Names, leads_up, name_of
from scrapy_dripper.declared.schema_org import Linked, read_json_ld, texts

if TYPE_CHECKING:
    from lxml.html import HtmlElement

logger = logging.getLogger(__name__)


_counter = re.compile(r"\(\d{1,2}(?:\d?\+)?\)\s{1,3}(?=\S)").match
"""Matches the number of unread messages, which sites put before the title."""
_TAGS = ("base", "meta", "link", "script", "title", "h1", "h2")

# Names of meta elements, in lower case: those of news sites and publishers first, those that any page may have last.
_TITLES = ("citation_title", "og:title", "twitter:title", "parsely-title", "sailthru.title", "dc.title", "headline")
_SITES = ("og:site_name", "citation_journal_title", "application-name", "apple-mobile-web-app-title")
_OWN_DESCRIPTIONS = ("description", "og:description")

_dollar_setting = re.compile(
    r"inlineMath['\"]?\s*:\s*(?:\{\s*['\"]?\[\+\]['\"]?\s*:\s*)?\[[^\]]{0,60}\[\s*['\"]\\?\$['\"]"
    r"|inlineMath['\"]?\s*:\s*(?:\{\s*['\"]?\[\+\]['\"]?\s*:\s*)?\[\s*\[[^\]]{0,60}\]\s*,\s*\[\s*['\"]\$['\"]"
    r"|left['\"]?\s*:\s*['\"]\$['\"]"
).search


@dataclass(frozen=True, eq=False)
class Notation:
    """The notation of formulas in the text of a page. Its scripts are searched when a text may hold a formula."""

    scripts: Sequence[str] = ()
    """The texts and the URLs of the scripts."""

    @cached_property
    def dollars(self) -> bool:
        """True if ``$..$`` is a formula."""
        return any(
            "$" in script and ("inlineMath" in script or "delimiters" in script) and _dollar_setting(script)
            for script in self.scripts
        )

    @cached_property
    def loaded(self) -> bool:
        """True if the page loads MathJax or KaTeX, with any configuration."""
        folded = (script.encode("utf-8", "surrogatepass").lower() for script in self.scripts)  # faster than (?i)
        return any(b"mathjax" in script or b"katex" in script for script in folded)


@dataclass(frozen=True, eq=False)
class Declared:
    """What a page says of itself. What only some pages need is worked out when it is first asked for."""

    url: str = ""
    base_url: str = ""
    """The URL that relative links resolve against: that of ``<base href>``, or ``url``."""
    document_title: str = ""
    """The text of ``<title>``, which often has the name of the site as well."""
    languages: Sequence[str] = ()
    """The languages of the root element."""
    meta: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The contents of the ``meta`` elements by name, in lower case."""
    more_meta: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The same by what else an element is called: a name beside a property, or an HTTP header."""
    links: Mapping[str, str] = field(default_factory=dict)
    """The first URL of the ``link`` elements by relation, in lower case."""
    json_ld: Sequence[str] = ()
    """The texts of the scripts with JSON-LD."""
    scripts: Sequence[str] = ()
    """The URLs and the texts of the other scripts."""
    script_chars: int = 0
    """The number of characters of the other scripts."""
    headings: Sequence[HtmlElement] = ()
    """The first headings of the first level."""
    subheadings: Sequence[HtmlElement] = ()
    """The first headings of the second level."""
    body: HtmlElement | None = None
    """The element with what the page shows."""

    @cached_property
    def linked(self) -> Linked:
        """The JSON-LD."""
        return read_json_ld(self.json_ld)

    @cached_property
    def notation(self) -> Notation:
        """How the page writes formulas."""
        return Notation(self.scripts)

    @cached_property
    def names(self) -> Names:
        """What the page says that it and its site are called."""
        linked = self.linked
        data = [linked.text("headline") if linked.is_article else "", linked.text("name", "headline")]
        heads = chain.from_iterable(islice(self.texts(name), 1) for name in _TITLES)
        declared = [*map(without_signs, (*data, *heads)), *self.linked.headlines]
        headings = [(heading_text(one), link_level(one, self.url)) for one in self.headings]
        return Names(declared, self.document_title, self.site_name, self.url, headings)

    @cached_property
    def name(self) -> Name:
        """What the page is called, and why. :func:`read` finds it before cutting changes the headings."""
        try:
            texts = () if self.body is None else self.body.itertext()
            short = (text for text in texts if len(text) <= 2 * LONGEST_TITLE and not text.isspace())
            lines = (" ".join(text.split()) for text in short)
            marked = [one for one in self.subheadings if "headline" in (one.get("itemprop") or "").split()]
            headline = heading_text(marked[0]) if len(marked) == 1 else ""  # several are those of teasers
            return name_of(self.names, map(heading_text, self.subheadings), lines, headline)
        except Exception:  # a page must not fail because of its title
            logger.debug("no title of %(url)s", {"url": self.url}, exc_info=True)
            return Name()

    @property
    def title(self) -> str | None:
        """What the page is called, or None if it has no name."""
        return without_controls(self.name.text) or None

    @cached_property
    def site_name(self) -> str:
        """The name of the site, or an empty string."""
        name = self.first(*_SITES[:1]) or next(iter(self.linked.names("publisher")), "")
        name = name or next(texts(self.linked.site.get("name")), "") or self.first(*_SITES)
        return name[:LONGEST_NAME].lstrip("@")

    def texts(self, *names: str) -> Iterator[str]:
        """Yield the contents of the ``meta`` elements with these names, in order of the names."""
        for content in chain.from_iterable(one.get(name, ()) for name in names for one in (self.meta, self.more_meta)):
            yield " ".join(content[:LONGEST_TEXT].split())

    def first(self, *names: str) -> str:
        """Return the content of the first of several ``meta`` elements, without tags, or an empty string."""
        return next(chain.from_iterable(map(texts, self.texts(*names))), "")

    # ------------------------------------------------------------------ for the features of the tagger
    @property
    def kind(self) -> str:
        """``og:type`` of the Open Graph protocol, in lower case."""
        return self.meta.get("og:type", ("",))[0].lower()

    @property
    def types(self) -> frozenset[str]:
        """schema.org types in the JSON-LD, in lower case."""
        return self.linked.types

    @property
    def beside_name(self) -> list[str]:
        """The names that stand beside what the page is called: the authors of a paper, who offers a job, and where a
        job or an event is. Pages of papers declare them for search engines; elsewhere, a byline is no content.
        """
        linked = self.linked
        found = [name for text in self.texts("citation_author", "citation_authors") for name in text.split(";")]
        if "scholarlyarticle" in linked.types:
            found += linked.names("author")
        if "jobposting" in linked.types:
            found += [*linked.names("hiringOrganization"), *linked.places("jobLocation")[0]]
            found += [text.replace("_", " ") for text in linked.texts("employmentType") if text.upper() != "OTHER"]
        if "event" in linked.types:
            found += linked.places("location")[0]
        return found

    @property
    def regions(self) -> list[str]:
        """The regions and countries of these places, which may stand with their names."""
        return self.linked.places("jobLocation", "location")[1]

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The values of ``description`` and ``og:description``."""
        found = chain.from_iterable(self.meta.get(name, ()) for name in _OWN_DESCRIPTIONS)
        return tuple(islice(dict.fromkeys(found), MOST_ELEMENTS))

    @property
    def dated(self) -> bool:
        """True if the head has a date of publication."""
        return "article:published_time" in self.meta or "datepublished" in self.meta

    @property
    def headlines(self) -> tuple[str, ...]:
        """Names of the page: the headlines in its JSON-LD, ``og:title`` and ``twitter:title``."""
        found = chain(self.linked.headlines, *(self.meta.get(name, ()) for name in ("og:title", "twitter:title")))
        return tuple(islice(filter(None, dict.fromkeys(found)), MOST_ELEMENTS))


def read_declared(root: HtmlElement, url: str = "") -> Declared:
    """Return what a tree says of its page. It must still have its head and its scripts, and is not changed."""
    meta: dict[str, list[str]] = {}
    more_meta: dict[str, list[str]] = {}
    links: dict[str, str] = {}
    json_ld: list[str] = []
    scripts: list[str] = []
    headings: dict[str, list[HtmlElement]] = {"h1": [], "h2": []}
    base: str | None = None
    title = ""
    script_chars = 0
    for element in root.iter(*_TAGS):
        tag = element.tag
        if tag == "meta":
            _read_meta(element, meta, more_meta)
        elif tag == "link":
            for relation in (element.get("rel") or "")[:LONGEST_TEXT].lower().split()[:5]:
                links.setdefault(relation, element.get("href") or "")
        elif tag == "script":
            text = element.text or ""
            if "ld+json" in (element.get("type") or "").lower():
                json_ld.append(text)
            else:
                script_chars += len(text)
                scripts += filter(None, (element.get("src"), text))
        elif tag == "base":
            base = element.get("href") if base is None else base
        elif tag == "title":
            if not title and element.getparent().tag in ("head", "body", "html"):  # an icon can have a title, too
                title = " ".join("".join(element.itertext()).split())
                counted = _counter(title)
                title = title[counted.end() :] if counted else title
        elif len(headings[tag]) < MOST_ELEMENTS and next(element.iterancestors(tag), None) is None:
            headings[tag].append(element)  # in another one, it would be read with each one around it
    found = Declared(
        url=url,
        base_url=url if base is None else _base_url(url, base.strip()),
        document_title=without_signs(without_controls(title)),
        languages=[language for name in ("lang", "xml:lang") if (language := root.get(name))],
        meta=meta,
        more_meta=more_meta,
        links=links,
        json_ld=json_ld,
        scripts=scripts,
        script_chars=script_chars,
        headings=headings["h1"],
        subheadings=headings["h2"],
        body=root.find("body"),
    )
    _ = found.name
    return found


def link_level(heading: HtmlElement, url: str) -> int:
    """Return where the link of a heading leads, 0 if not up. A heading that leads up names the site, or a part of it,
    and so may one whose class says so.
    """
    link = next(chain(heading.iter("a"), islice(heading.iterancestors("a"), 1)), None)
    level = 0 if link is None else leads_up(link.get("href") or "", url)
    return level or 2 * names_site(heading.get("class") or "")


def leads_away(heading: HtmlElement, url: str) -> bool:
    """Return True if the link of a heading leads to another page, whatever its query says."""
    link = next(chain(heading.iter("a"), islice(heading.iterancestors("a"), 1)), None)
    try:
        own, target = urlsplit(url), urlsplit(url if link is None else _base_url(url, link.get("href") or ""))
    except ValueError:  # such as "http://["
        return True
    hosts = (one.netloc.removeprefix("www.") for one in (own, target))
    return len({*hosts}) > 1 or own.path.rstrip("/") != target.path.rstrip("/")


def _read_meta(element: HtmlElement, first: dict[str, list[str]], more: dict[str, list[str]]) -> None:
    content = (element.get("content") or "").strip()
    if not content:
        return
    names = filter(None, map(element.get, ("property", "name", "itemprop")))
    known = [(first, next(names, None)), *((more, name) for name in (*names, element.get("http-equiv")))]
    for found, name in known:
        if name:
            values = found.setdefault(name.strip().lower(), [])
            if len(values) < MOST_VALUES:
                values.append(content)


def _base_url(url: str, href: str) -> str:
    """Return the URL against which the links of a page are resolved: its own URL, or that of its ``<base>``."""
    # Like a browser, ignore an invalid URL such as "http://[" and another scheme such as "javascript:x".
    with suppress(ValueError):
        joined = urljoin(url, href)
        if urlsplit(joined).scheme in ("http", "https", urlsplit(url).scheme):
            return joined
    return url
