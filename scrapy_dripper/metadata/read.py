"""Choose the metadata of a page from all of its sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy_dripper.data import Metadata
from scrapy_dripper.metadata.breadcrumbs import breadcrumbs
from scrapy_dripper.metadata.dating import Dating
from scrapy_dripper.metadata.json_ld import Linked, read_json_ld, texts
from scrapy_dripper.metadata.names import LONGEST_NAME, authors, byline
from scrapy_dripper.metadata.titles import best_title
from scrapy_dripper.metadata.tree import MOST_PLACES, Described, base_url, describe, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_URL = 4_000
"""Maximum length of a URL, in characters."""
NEAR = 8
"""Number of ancestors of a name that are checked for being a comment."""

# Names of meta elements, in lower case: those of news sites and publishers first, those that any page may have last.
_TITLES = ("citation_title", "og:title", "twitter:title", "parsely-title", "sailthru.title", "dc.title", "headline")
_AUTHORS = (
    "citation_author", "parsely-author", "article:author", "author", "dc.creator", "dcterms.creator", "sailthru.author",
    "byl", "og:article:author", "cxenseparse:author", "article.author", "book:author",
)  # fmt: skip
_DESCRIPTIONS = ("description", "og:description", "twitter:description", "dc.description", "dcterms.abstract")
_IMAGES = (
    "og:image:secure_url",
    "og:image",
    "og:image:url",
    "twitter:image",
    "twitter:image:src",
    "thumbnail",
    "image",
)
_SITES = ("og:site_name", "citation_journal_title", "application-name", "apple-mobile-web-app-title")

_host = re.compile(r"(?:www\.|w\d{1,3}\.)?([^/:]{1,253})").match
_language = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,5}").fullmatch


def read_metadata(root: HtmlElement, url: str) -> Metadata:
    """Return the metadata of a page. The tree must still have its head and its scripts; it is not changed."""
    described = describe(root)
    linked = read_json_ld(described.json_ld)
    resolve = _resolver(base_url(url, described.base))
    canonical = resolve(described.links.get("canonical", "")) or resolve(_first(described, ("og:url",)))
    site = _site(described, linked)
    title = _title(described, linked, site, _host_of(url))
    language = _language_of(described, linked)
    published, modified = Dating(described, linked, title, language).dates(canonical or url)
    return Metadata(
        title=title or None,
        authors=_authors(described, linked, site),
        date_published=published or None,
        date_modified=modified or None,
        language=language or None,
        site_name=site or _host_of(canonical or url) or None,
        url=canonical or url or None,
        canonical=canonical or None,
        description=_first(described, _DESCRIPTIONS) or linked.text("description") or None,
        image=_image(described, linked, resolve) or None,
        breadcrumbs=breadcrumbs(described, linked, resolve),
    ).without_controls()


def _first(described: Described, names: tuple[str, ...]) -> str:
    """Return the content of the first of several ``meta`` elements, without tags, or an empty string."""
    return next((text for name in names for one in described.meta.get(name, ()) for text in texts(one)), "")


def _resolver(base: str) -> Callable[[str], str]:
    """Return a function that resolves a link to an absolute URL. It returns an empty string unless that is http(s)."""

    def resolve(link: str) -> str:
        link = link.strip()
        if not link or len(link) > LONGEST_URL:
            return ""
        with suppress(ValueError):  # such as "http://["
            joined = urljoin(base, link)
            parts = urlsplit(joined)
            if parts.scheme in ("http", "https") and parts.netloc:
                return joined
        return ""

    return resolve


def _host_of(url: str) -> str:
    with suppress(ValueError):
        found = _host(urlsplit(url).netloc.rpartition("@")[2])
        return found[1] if found else ""
    return ""


def _site(described: Described, linked: Linked) -> str:
    name = _first(described, _SITES[:1]) or next(iter(linked.names("publisher")), "")
    name = name or next(texts(linked.site.get("name")), "") or _first(described, _SITES)
    return name[:LONGEST_NAME].lstrip("@")


def _title(described: Described, linked: Linked, site: str, host: str) -> str:
    names = [linked.text("headline") if linked.is_article else "", linked.text("name", "headline")]
    names += [text for name in _TITLES for text in described.meta.get(name, ())[:1]]
    headings = [text_of(heading, apart=False) for heading in described.headings]
    below = (text_of(heading, apart=False) for heading in described.subheadings)
    return best_title(headings, below, [*names, described.title], site, host)


def _authors(described: Described, linked: Linked, site: str) -> tuple[str, ...]:
    found = authors(linked.names("author", "creator")) if linked.is_article else ()
    if found and not (len(found) == 1 and found[0].casefold() == site.casefold()):
        return found
    of_site = site.casefold()
    for name in _AUTHORS:
        said = authors(described.meta.get(name, ()))
        if said and (len(said) > 1 or (said[0].casefold() != of_site and " " in said[0])):
            return said
    for element in described.properties.get("author", ())[:MOST_PLACES]:
        said = () if _is_remark(element) else authors([_person(element)])
        if said:
            return said
    return _bylines(described) or found or authors(linked.names("author", "creator"))


def _person(element: HtmlElement) -> str:
    """Return the name of the person that an element with the property ``author`` describes."""
    for node in list(element.iter())[:20]:
        if "name" in f"{node.get('itemprop') or ''} {node.get('property') or ''}".split():
            return node.get("content") or byline(text_of(node, LONGEST_NAME))
    return element.get("content") or byline(text_of(element, LONGEST_NAME))


def _bylines(described: Described) -> tuple[str, ...]:
    """Return the authors of the first byline that names any. Links of authors come first."""
    first = [element for element in described.bylines if element.get("rel") == "author"]
    for element in first + described.bylines:
        text = text_of(element, 2 * LONGEST_NAME)
        if 3 < len(text) < LONGEST_NAME and not _is_remark(element):
            found = authors([byline(text)])
            if found and len(found[0].split()) <= 6:
                return found
    return ()


def _is_remark(element: HtmlElement) -> bool:
    """Return True for an element of a comment or of a customer's review."""
    around = islice(element.iterancestors(), NEAR)
    said = (f"{one.get('itemprop') or ''} {one.get('class') or ''} {one.get('id') or ''}".lower() for one in around)
    return any("comment" in one or "review" in one.split() for one in said)


def _language_of(described: Described, linked: Linked) -> str:
    """Return the language that a page declares."""
    root = described.root
    written = (
        root.get("lang"),
        root.get("xml:lang"),
        *(described.meta.get(name, ("",))[0] for name in ("content-language", "dc.language", "language", "og:locale")),
        linked.text("inLanguage"),
    )
    for one in written:
        match = _language((one or "")[:100].strip())
        if match:
            return match[0].replace("_", "-")
    return ""


def _image(described: Described, linked: Linked, resolve: Callable[[str], str]) -> str:
    said = (one for name in _IMAGES for one in described.meta.get(name, ()))
    found = next((url for one in said if (url := resolve(one))), "")
    return found or resolve(linked.url("image", "thumbnailUrl")) or resolve(described.links.get("image_src", ""))
