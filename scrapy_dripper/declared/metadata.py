"""Choose the metadata of a page from all of its sources.

If a page declares no language, that of its text is detected. ``resiliparse`` compares hashed n-grams of the text with
those of a hundred languages. That takes 50 µs for a page, and loads no model. It is unreliable for short texts, and for
Chinese, Japanese and Korean between much code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from resiliparse.parse.lang import detect_fast

from scrapy_dripper.characters import CJK
from scrapy_dripper.data import Breadcrumb, Metadata
from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.declared.authors import authors_of
from scrapy_dripper.declared.dates import Dating
from scrapy_dripper.declared.elements import (
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_URL,
    MOST_ELEMENTS,
    UNSEEN,
    Marked,
    around,
    heading_text,
    marked,
    text_of,
)
from scrapy_dripper.declared.names import site_domain
from scrapy_dripper.declared.schema_org import Linked, items, texts

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LARGE = 300
"""Minimum width of a lead picture, in pixels."""
LEAST_CHARS = 300
"""Minimum length of a text whose language is detected, in characters."""
FARTHEST = 450
"""Maximum distance of a text from a language. Texts in that language have 150 to 450, short ones the most."""
FEW = 0.05
"""Maximum share of Chinese, Japanese and Korean characters in a text of another language."""

MOST_STEPS = 20
"""Maximum number of steps. A longer list is a menu."""
MOST_DESCENDANTS = 300
"""Maximum number of descendants of an element with breadcrumbs that are processed."""
_SEPARATORS = "/>»›|·•→-–—\\ \xa0"

Resolve = Callable[[str], str]
"""Makes a link absolute; an empty string unless that is http(s)."""

# Names of meta elements, in lower case: those of news sites and publishers first, those that any page may have last.
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

_SUBJECTS = {
    "tag": (
        "keywords",
        ("article:tag", "video:tag", "citation_keywords", "parsely-tags", "news_keywords", "dc.subject"),
        ("keywords",),
    ),
    "category": ("articleSection", ("article:section", "parsely-section", "category"), ()),
}
"""Where tags and categories are: a key of JSON-LD, names of meta elements, and those that many pages fill for search
engines. Links come before the last."""
_LICENSES = ("dcterms.license", "dc.rights", "dcterms.rights", "copyright")

_commas = re.compile(r"[,;，、；]").split
_language = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,5}").fullmatch
_eastern = re.compile(rf"[{CJK}\uac00-\ud7af]").findall
_is_ornament = re.compile(
    r"(?:^|[-_/.\s])(?:icons?|logo|avatar|gravatar|emoji|sprite|badge|pixel|spacer|blank|placeholder|button|banner|author)"
    r"(?:$|[-_/.\s\d])|\.svg\b|\.gif\b",
    re.I,
).search


def read_metadata(declared: Declared, root: HtmlElement) -> Metadata:
    """Return the metadata of a page, given its tree, which must still have what is invisible. Errors propagate."""
    return _metadata(declared, root).without_controls()


def metadata_of(root: HtmlElement, url: str) -> Metadata:
    """Return the metadata of a tree that nothing else is read from."""
    return read_metadata(read_declared(root, url), root)


def _metadata(declared: Declared, root: HtmlElement) -> Metadata:
    linked, url, title = declared.linked, declared.url, declared.title
    found = marked(root)
    resolve = _resolver(declared.base_url)
    canonical = resolve(declared.links.get("canonical", "")) or resolve(declared.first("og:url"))
    language = declared_language(declared)
    headings = [*declared.headings, *declared.subheadings]
    headline = next((one for one in headings if heading_text(one) == title), next(iter(headings), None))
    beside = [] if headline is None else around(headline)
    own = found.without_teasers(title or "", headline, beside)
    published, modified = Dating(declared, found, own, language).dates(canonical or url)
    return Metadata(
        title=title,
        authors=authors_of(declared, found, own),
        date_published=published or None,
        date_modified=modified or None,
        language=language or None,
        site_name=declared.site_name or site_domain(canonical or url) or None,
        url=canonical or url or None,
        canonical=canonical or None,
        description=declared.first(*_DESCRIPTIONS) or linked.text("description") or None,
        image=_image(declared, resolve) or _lead_picture(headline, beside, resolve) or None,
        breadcrumbs=_breadcrumbs(linked, found, resolve),
        tags=_subjects(declared, found, "tag"),
        categories=_subjects(declared, found, "category"),
        license=_license(declared, found, resolve) or None,
    )


def _resolver(base: str) -> Resolve:
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


def declared_language(declared: Declared) -> str:
    """Return the language that a page declares, such as ``en-GB``; empty if it declares none."""
    names = ("content-language", "dc.language", "language", "og:locale")
    written = (next(declared.texts(name), "") for name in names)
    for one in (*declared.languages, *written, declared.linked.text("inLanguage")):
        match = _language(one[:100].strip())
        if match:
            return match[0].replace("_", "-")
    return ""


def _image(declared: Declared, resolve: Resolve) -> str:
    found = next((url for one in declared.texts(*_IMAGES) if (url := resolve(one))), "")
    linked = declared.linked.url("image", "thumbnailUrl")
    return found or resolve(linked) or resolve(declared.links.get("image_src", ""))


def _subjects(declared: Declared, found: Marked, relation: str) -> tuple[str, ...]:
    """Return what the first source with any value says that a page is about: its tags, or its categories."""
    key, names, last = _SUBJECTS[relation]
    # WordPress links a category as one of the tags.
    other = found.related.get("category", []) if relation == "tag" else []
    links = [one for one in found.related.get(relation, []) if one.tag == "a" and one not in other]
    for values in (
        _parted(declared.linked.texts(key)),
        _parted(declared.texts(*names)),
        [text_of(one, LONGEST_NAME) for one in links],
        _parted(declared.texts(*last)),
    ):
        if subjects := [value.strip("#")[:LONGEST_NAME] for value in values if value.strip("#")]:
            return tuple(dict.fromkeys(subjects))[:MOST_ELEMENTS]
    return ()


def _parted(values: Iterator[str]) -> list[str]:
    """Return the parts of values that are lists with commas or semicolons."""
    return [part for value in values for one in _commas(value) if (part := " ".join(one.split()))]


def _license(declared: Declared, found: Marked, resolve: Resolve) -> str:
    """Return the URL of a licence, or else its name; an empty string if the page has none."""
    links = [one.get("href") or "" for one in found.related.get("license", ()) if one.tag == "a"]
    linked = declared.linked
    urls = (declared.links.get("license", ""), *links, linked.url("license"), linked.text("license"))
    address = next((url for one in urls if "/" in one and (url := resolve(one))), "")
    return address or (linked.text("license") or declared.first(*_LICENSES))[:LONGEST_NAME]


def _lead_picture(headline: HtmlElement | None, beside: list[HtmlElement], resolve: Resolve) -> str:
    """Return the first large picture of the main part, which is the article of the headline or what follows it; an
    empty string if there is none.

    A picture is large if it says so, or if it is a figure. Icons, logos and the portraits of authors are not.
    """
    if headline is None:
        return ""
    part = next(headline.iterancestors("main", "article"), None)
    pictures = part.iter("img") if part is not None else iter(beside[beside.index(headline) :])
    for picture in islice((one for one in pictures if one.tag == "img"), MOST_ELEMENTS):
        get = picture.get
        around = [picture, *islice(picture.iterancestors(), 2)]
        said = " ".join(f"{one.get('class') or ''} {one.get('id') or ''}" for one in around)
        if _is_ornament(f"{said} {get('alt') or ''} {(get('src') or '')[:LONGEST_TEXT]}"):
            continue
        offers = [offer.split() for offer in (get("srcset") or get("data-srcset") or "")[:LONGEST_TEXT].split(",")]
        sets = [(offer[0], _pixels(offer[1].removesuffix("w"))) for offer in offers if len(offer) == 2]
        widest = max([_pixels(get("width") or ""), *(width for _, width in sets)])
        framed = any(one.tag in ("figure", "picture") for one in around)
        if widest < LARGE and (widest or not framed):
            continue
        addresses = (get("src") or "", get("data-src") or "", get("data-original") or "", sets[-1][0] if sets else "")
        found = next((url for one in addresses if (url := resolve(one))), "")
        if found:
            return found
    return ""


def _pixels(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _breadcrumbs(linked: Linked, found: Marked, resolve: Resolve) -> tuple[Breadcrumb, ...]:
    """Return the steps, beginning with the front page; empty if the page has no breadcrumbs."""
    for pairs in (_linked_steps(linked), _marked_steps(found), _trail_steps(found)):
        named = ((name[:LONGEST_NAME].strip(_SEPARATORS), address) for name, address in pairs)
        steps = tuple(Breadcrumb(name, resolve(address) or None) for name, address in named if name)
        if steps:
            return steps if len(steps) <= MOST_STEPS else ()
    return ()


def _linked_steps(linked: Linked) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each step in JSON-LD."""
    for one in sorted(items(linked.breadcrumbs), key=_position):
        item = one.get("item")
        inner = item if isinstance(item, dict) else {}
        name = next(texts(one.get("name")), "") or next(texts(inner.get("name")), "")
        address = item if isinstance(item, str) else inner.get("@id") or inner.get("url") or one.get("url")
        yield name, address if isinstance(address, str) else ""


def _position(element: dict[str, Any]) -> float:
    try:
        return float(element.get("position") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _marked_steps(found: Marked) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each step in microdata or RDFa. Steps are list elements, which lists of
    products have as well.
    """
    for element in found.properties.get("itemlistelement", ())[: MOST_STEPS + 1]:
        kind = f"{element.get('itemtype') or ''} {element.get('typeof') or ''}"
        if "ListItem" not in kind:
            continue
        name = address = ""
        for node in islice(element.iter(), 20):
            prop = f"{node.get('itemprop') or ''} {node.get('property') or ''}"
            address = address or (node.get("href") or node.get("resource") or "" if node.tag in ("a", "link") else "")
            if "name" in prop.split() and not name:
                name = node.get("content") or text_of(node, LONGEST_NAME)
        yield name or text_of(element, LONGEST_NAME), address


def _trail_steps(found: Marked) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each link in the first element that is labelled as breadcrumbs and has links,
    and the page's own name.
    """
    for element in found.trails:
        links = [node for node in islice(element.iter(), MOST_DESCENDANTS) if node.tag == "a" and node.get("href")]
        if not links:
            continue
        for link in links[: MOST_STEPS + 1]:
            yield text_of(link, LONGEST_NAME), link.get("href") or ""
        yield _behind(element, links[-1]), ""
        return


def _behind(element: HtmlElement, last: HtmlElement) -> str:
    """Return the text after the last link, which is the name of the page."""
    nodes = list(islice(element.iter(), MOST_DESCENDANTS))
    inside = sum(1 for _ in islice(last.iter(), MOST_DESCENDANTS))
    pieces = [last.tail or ""]
    for node in nodes[nodes.index(last) + inside :]:
        pieces += ["" if node.tag in UNSEEN else node.text or "", node.tail or ""]
    return " ".join(" ".join(pieces).split())


def detected_language(text: str) -> str | None:
    """Return the language of a text (ISO 639-1), or None if the text is too short or similar to no language."""
    part = text[:LONGEST_TEXT].encode("utf-8", "ignore").decode("utf-8")  # without lone surrogates
    if len(part) < LEAST_CHARS:
        return None
    language, distance = detect_fast(part)
    if language == "unknown" or distance > FARTHEST:
        return None
    if language not in ("zh", "ja", "ko") and len(_eastern(part)) > FEW * len(part):
        return None
    return str(language)
