"""Choose the metadata of a page from all of its sources.

If a page declares no language, that of its text is detected. ``resiliparse`` compares hashed n-grams of the text with
those of a hundred languages. That takes 50 µs for a page, and loads no model. It is unreliable for short texts, and for
Chinese, Japanese and Korean between much code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from resiliparse.parse.lang import detect_fast

from scrapy_dripper.characters import without_controls
from scrapy_dripper.data import Breadcrumb, Metadata
from scrapy_dripper.metadata.authors import LONGEST_NAME, authors_of
from scrapy_dripper.metadata.dates import Dating
from scrapy_dripper.metadata.json_ld import Linked, items, read_json_ld, texts
from scrapy_dripper.metadata.tree import (
    UNSEEN,
    Described,
    around,
    base_url,
    describe,
    describe_title,
    heading_text,
    leads_up,
    text_of,
    without_signs,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_URL = 4_000
"""Maximum length of a URL, in characters."""
MOST_CHARS = 500
"""Maximum length of a title, in characters."""
SHARED = 0.5
"""Minimum share of words that the headline has in common with a name of the page."""
MOST_PICTURES = 30
"""Maximum number of pictures of the main part that are checked for being its lead picture."""
LARGE = 300
"""Minimum width of a lead picture, in pixels."""
LEAST_CHARS, MOST_DETECTED = 300, 100_000
"""Minimum length of a text whose language is detected, and length of the part of it that is compared, in characters."""
FARTHEST = 450
"""Maximum distance of a text from a language. Texts in that language have 150 to 450, short ones the most."""
FEW = 0.05
"""Maximum share of Chinese, Japanese and Korean characters in a text of another language."""

MOST_STEPS = 20
"""Maximum number of steps. A longer list is a menu."""
LONGEST_STEP = 200
"""Maximum length of the name of a step, in characters."""
MOST_DESCENDANTS = 300
"""Maximum number of descendants of an element with breadcrumbs that are processed."""
_SEPARATORS = "/>»›|·•→-–—\\ \xa0"

OfSite = tuple[frozenset[str], str]
"""The names and the host of a site, without spaces."""
Resolve = Callable[[str], str]
"""Makes a link absolute; an empty string unless that is http(s)."""

# Names of meta elements, in lower case: those of news sites and publishers first, those that any page may have last.
_TITLES = ("citation_title", "og:title", "twitter:title", "parsely-title", "sailthru.title", "dc.title", "headline")
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
_eastern = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]").findall
_words = re.compile(r"\w+").findall
_separator = re.compile(r"\s{1,3}(?:[|»«·•:~/\\>]|::|-{1,3}|–|—|―)\s{1,3}|\s?\|\s?|:\s{1,3}").split
_strong = re.compile(r"\s{1,3}(?:[|»«·•~]|::|-{1,3}|–|—|―)\s{1,3}").split
_is_ornament = re.compile(
    r"(?:^|[-_/.\s])(?:icons?|logo|avatar|gravatar|emoji|sprite|badge|pixel|spacer|blank|placeholder|button|banner|author)"
    r"(?:$|[-_/.\s\d])|\.svg\b|\.gif\b",
    re.I,
).search


def read_metadata(root: HtmlElement, url: str) -> Metadata:
    """Return the metadata of a page. The tree must still have its head and its scripts; it is not changed."""
    described = describe(root)
    linked = read_json_ld(described.json_ld)
    resolve = _resolver(base_url(url, described.base))
    canonical = resolve(described.links.get("canonical", "")) or resolve(_first(described, ("og:url",)))
    site = _site(described, linked)
    title = _title(described, linked, site, url)
    language = _language_of(described, linked)
    headline = described.headline(title)
    beside = [] if headline is None else around(headline)
    own = described.without_teasers(title, headline, beside)
    published, modified = Dating(described, linked, own, language).dates(canonical or url)
    return Metadata(
        title=title or None,
        authors=authors_of(described, linked, site, own),
        date_published=published or None,
        date_modified=modified or None,
        language=language or None,
        site_name=site or _host_of(canonical or url) or None,
        url=canonical or url or None,
        canonical=canonical or None,
        description=_first(described, _DESCRIPTIONS) or linked.text("description") or None,
        image=_image(described, linked, resolve) or _lead_picture(headline, beside, resolve) or None,
        breadcrumbs=breadcrumbs(described, linked, resolve),
    ).without_controls()


def read_title(root: HtmlElement, url: str) -> str:
    """Return the title of a page, which is that of its metadata, or an empty text."""
    described = describe_title(root)
    linked = read_json_ld(described.json_ld)
    return without_controls(_title(described, linked, _site(described, linked), url))


def _first(described: Described, names: tuple[str, ...]) -> str:
    """Return the content of the first of several ``meta`` elements, without tags, or an empty string."""
    return next(chain.from_iterable(map(texts, described.texts(names))), "")


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


def _host_of(url: str) -> str:
    with suppress(ValueError):
        found = _host(urlsplit(url).netloc.rpartition("@")[2])
        return found[1] if found else ""
    return ""


def _site(described: Described, linked: Linked) -> str:
    name = _first(described, _SITES[:1]) or next(iter(linked.names("publisher")), "")
    name = name or next(texts(linked.site.get("name")), "") or _first(described, _SITES)
    return name[:LONGEST_NAME].lstrip("@")


def _title(described: Described, linked: Linked, site: str, url: str) -> str:
    """Return the title of a page, or an empty text: the heading that fits best to the names that the page gives itself,
    or else one of these names. The most reliable name is the headline in its data, the least the document's title.
    """
    names = [linked.text("headline") if linked.is_article else "", linked.text("name", "headline")]
    names += [text for name in _TITLES for text in described.meta.get(name, ())[:1]]
    names = [name[:MOST_CHARS] for name in (*map(without_signs, names), without_signs(described.title)) if name]
    headings = [(heading_text(one), _leads_up(one, url)) for one in described.headings]
    sites = {text for text, level in headings if level == 1 or (level and not _begins(text, names))}
    of_site = (frozenset(map(_squeezed, (site, *sites))) - {""}, _squeezed(_host_of(url)))
    if leads_up("/", url):  # only the front page has the name of the site
        names = [name for name in names if not _is_site(name, of_site)] or names
    titles = [text for text, _ in headings if text and len(text) <= MOST_CHARS]
    own = [text for text in titles if not _is_site(text, of_site)]
    fitting = [(fit, -i) for i, text in enumerate(own) if (fit := _fit(text, names)) >= SHARED]
    if fitting:
        return own[-max(fitting)[1]]
    parts = {_squeezed(part) for name in names for part in (name, *_separator(name))}
    for text in map(heading_text, described.subheadings):
        if _squeezed(text) in parts and not _is_site(text, of_site):
            return text
    if len(own) == 1 and (len(titles) == 1 or not names):
        return own[0]
    return next((bare for name in names if (bare := _without_site(name, of_site))), "") or next(iter(titles), "")


def _leads_up(heading: HtmlElement, url: str) -> int:
    """Return where the link of a heading leads. A heading that leads up names the site, or a part of it."""
    link = next(chain(heading.iter("a"), islice(heading.iterancestors("a"), 1)), None)
    return 0 if link is None else leads_up(link.get("href") or "", url)


def _begins(text: str, names: Iterable[str]) -> bool:
    return any(_squeezed(name).startswith(_squeezed(text)) for name in names)


def _without_site(name: str, of_site: OfSite) -> str:
    """Return a name of a page without the name of its site at its end or its beginning."""
    parts = _strong(name)
    if len(parts) > 1 and _is_site(parts[-1], of_site):
        name = name[: name.rindex(parts[-1])]
    elif len(parts) > 1 and _is_site(parts[0], of_site):
        name = name[name.index(parts[0]) + len(parts[0]) :]
    return name.strip(" |»«·•:~-–—―")


def _is_site(text: str, of_site: OfSite) -> bool:
    """Return True if a text is the name of the site, or part of its host."""
    names, host = of_site
    said = _squeezed(text)
    return said in names or (len(said) > 3 and said in host)


def _fit(heading: str, names: Sequence[str]) -> float:
    """Return how well a heading matches the names of the page, 0 to 1. The first part of a name counts most."""
    words = set(_words(heading.lower()))
    best = 0.0
    for name in names if words else ():
        for i, part in enumerate((name, *_separator(name)[:10])):
            said = set(_words(part.lower()))
            if said:
                best = max(best, 2 * len(words & said) / (len(words) + len(said)) - i / 100)
    return best


def _squeezed(text: str) -> str:
    return "".join(_words(text.lower()))


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


def _image(described: Described, linked: Linked, resolve: Resolve) -> str:
    found = next((url for one in described.texts(_IMAGES) if (url := resolve(one))), "")
    return found or resolve(linked.url("image", "thumbnailUrl")) or resolve(described.links.get("image_src", ""))


def _lead_picture(headline: HtmlElement | None, beside: list[HtmlElement], resolve: Resolve) -> str:
    """Return the first large picture of the main part, which is the article of the headline or what follows it; an
    empty string if there is none.

    A picture is large if it says so, or if it is a figure. Icons, logos and the portraits of authors are not.
    """
    if headline is None:
        return ""
    part = next(headline.iterancestors("main", "article"), None)
    pictures = part.iter("img") if part is not None else iter(beside[beside.index(headline) :])
    for picture in islice((one for one in pictures if one.tag == "img"), MOST_PICTURES):
        get = picture.get
        around = [picture, *islice(picture.iterancestors(), 2)]
        said = " ".join(f"{one.get('class') or ''} {one.get('id') or ''}" for one in around)
        if _is_ornament(f"{said} {get('alt') or ''} {(get('src') or '')[:LONGEST_URL]}"):
            continue
        offers = [offer.split() for offer in (get("srcset") or get("data-srcset") or "")[:LONGEST_URL].split(",")]
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


def breadcrumbs(described: Described, linked: Linked, resolve: Resolve) -> tuple[Breadcrumb, ...]:
    """Return the steps, beginning with the front page; empty if the page has no breadcrumbs."""
    for found in (_linked_steps(linked), _marked_steps(described), _trail_steps(described)):
        named = ((name[:LONGEST_STEP].strip(_SEPARATORS), address) for name, address in found)
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


def _marked_steps(described: Described) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each step in microdata or RDFa. Steps are list elements, which lists of
    products have as well.
    """
    for element in described.properties.get("itemlistelement", ())[: MOST_STEPS + 1]:
        kind = f"{element.get('itemtype') or ''} {element.get('typeof') or ''}"
        if "ListItem" not in kind:
            continue
        name = address = ""
        for node in islice(element.iter(), 20):
            prop = f"{node.get('itemprop') or ''} {node.get('property') or ''}"
            address = address or (node.get("href") or node.get("resource") or "" if node.tag in ("a", "link") else "")
            if "name" in prop.split() and not name:
                name = node.get("content") or text_of(node, LONGEST_STEP)
        yield name or text_of(element, LONGEST_STEP), address


def _trail_steps(described: Described) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each link in the first element that is labelled as breadcrumbs and has links,
    and the page's own name.
    """
    for element in described.trails:
        links = [node for node in islice(element.iter(), MOST_DESCENDANTS) if node.tag == "a" and node.get("href")]
        if not links:
            continue
        for link in links[: MOST_STEPS + 1]:
            yield text_of(link, LONGEST_STEP), link.get("href") or ""
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
    part = text[:MOST_DETECTED].encode("utf-8", "ignore").decode("utf-8")  # without lone surrogates
    if len(part) < LEAST_CHARS:
        return None
    language, distance = detect_fast(part)
    if language == "unknown" or distance > FARTHEST:
        return None
    if language not in ("zh", "ja", "ko") and len(_eastern(part)) > FEW * len(part):
        return None
    return str(language)
