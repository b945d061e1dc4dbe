"""Detect shells, which are pages that are almost empty until a script fills them, and read the articles in their data.

An article is read from the document itself: from ``articleBody`` in its JSON-LD (schema.org), or from the state from
which Next.js, Remix and others render. No script runs. Frameworks that stream their state, such as Nuxt 3, render the
HTML as well, so their streams are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from lxml import etree

from scrapy_dripper.characters import spaced, without_controls, words_of
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason, nothing
from scrapy_dripper.declared import Declared, read_declared
from scrapy_dripper.declared.schema_org import parsed
from scrapy_dripper.fallback.methods import limited_tree, text_within, whole_page

if TYPE_CHECKING:
    from lxml.html import HtmlElement

SOURCE = "fallback:embedded"
"""The source of an extraction that comes from a page's data."""
HINT = "a script would fill the page: let a browser download it, for example with scrapy-playwright"
ARTICLE_WORDS = 40
"""Minimum length of an article, in words. A character of Chinese or Japanese is a word."""
ARTICLE_SHARE = 0.6
"""Minimum share of the text in a page's data for an article that nothing else identifies as the page's."""
MOST_PLACES = 20
"""Maximum number of elements of a page that are checked for whether a script would fill them."""
CHARS_READ = 1_000
"""Number of characters that are read of each such element, and of a title and a key in data."""
LOADING = 3
"""Maximum number of words of an element that counts as empty, such as "Loading, please wait"."""
MOST_CHARACTERS, MOST_TIMES = 3_000_000, 10
"""Maximum number of characters to read from the data of a page, and how often each of them, on average. A value counts
as one character that is read so often."""

_MOUNT_IDS = frozenset("root app __next __nuxt __layout ___gatsby react-root app-root main-app q-app svelte".split())
_MOUNT_TAGS = ("app-root", "app-main", "router-outlet")
"""Elements into which frameworks render."""
_STATES = ("__remixContext", "__NUXT__", "__INITIAL_STATE__", "__PRELOADED_STATE__", "__APOLLO_STATE__")
_BODIES = frozenset(
    "articlebody body bodyhtml bodytext content contenthtml contentrendered html markdown rendered text".split()
)
"""Keys that hold the text of an article, without ``_`` and in lower case."""
_TITLES = ("headline", "title", "name")
_PARTS = frozenset((*_BODIES, "value", "children", "paragraph", "paragraphs", "blocks", "data"))
"""Keys that hold the text of an article if it is a list of paragraphs or blocks."""
_asks_for_script = re.compile(
    r"(?:enable|activate|turn on|requires?|needs?|without) (?:\w+ ){0,3}java-?script"
    r"|java-?script (?:\w+ ){0,4}(?:enabled|required|disabled)",
    re.I,
).search
_is_html = re.compile(r"</(?:p|div|h[1-6]|li|section|blockquote)>|<br ?/?>|<p>", re.I).search
_without_tags = partial(re.compile(r"<[^<>]*>").sub, " ")
_state = re.compile(rf"(?:window|self|globalThis)\.({'|'.join(_STATES)})\s{{0,9}}=\s{{0,9}}").search
_visible = etree.XPath(
    "descendant-or-self::*[not(self::script or self::style or self::template)]/text()", smart_strings=False
)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text in the data of a page, with its title. ``is_article`` is True if its key identifies it as an article."""

    title: str
    text: str
    words: int
    is_article: bool


def fill_shell(document: Document, config: Config) -> Extraction | None:
    """Return the extraction of a page that a script would fill, or None for other pages.

    Its reason is ``js_shell``. Its source is :data:`SOURCE` if the page's data hold the article. Otherwise it is empty.
    """
    root, truncated = limited_tree(text_within(document, config.limits.bytes))
    scripts = list(root.iter("script"))
    declared = read_declared(root, document.url)
    article = _article(scripts, declared) if config.fallback not in ("none", "empty") else None
    if article is None:
        if not scripts or not _waits(root):
            return None
        return replace(nothing(document.url, FallbackReason.JS_SHELL, HINT, "empty"), title=declared.title)
    heading = f"<h1>{escape(article.title)}</h1>" if article.title and config.title == "keep" else ""
    body = article.text
    if not _is_html(body[:20_000]):
        body = "".join(f"<p>{escape(line)}</p>" for line in body.split("\n") if line.strip())
    found = whole_page(f"<article>{heading}{body}</article>", document.url, config, len(document.html))
    return replace(
        found,
        title=declared.title or without_controls(article.title) or None,
        source=SOURCE,
        fallback_reason=FallbackReason.JS_SHELL,
        error="a script would fill the page; the text comes from the data in it",
        truncated=truncated or found.truncated,
    )


def _waits(root: HtmlElement) -> bool:
    """Return True if a page has an empty element for a framework to render into, or asks for JavaScript."""
    body = root.find(".//body")
    said = "" if body is None else _shown(body)
    if _asks_for_script(said) or (not said and any(script.get("src") for script in root.iter("script"))):
        return True
    places = (
        element
        for element in root.iter("div", "main", "section", "noscript", *_MOUNT_TAGS)
        if element.tag not in ("div", "main", "section") or (element.get("id") or "").lower() in _MOUNT_IDS
    )
    for place in islice(places, MOST_PLACES):
        shown = _shown(place)
        if _asks_for_script(shown) if place.tag == "noscript" else len(shown.split()) <= LOADING:
            return True
    return False


def _shown(element: HtmlElement) -> str:
    """Return the first :data:`CHARS_READ` characters of the text in an element, without scripts and styles."""
    return " ".join(" ".join(cast("list[str]", _visible(element)))[:CHARS_READ].split())


# ---------------------------------------------------------------------- the article in the data
def _article(scripts: list[HtmlElement], declared: Declared) -> _Text | None:
    """Return the article in the data of a page, or None if there is none or it is not clear which text it is."""
    texts: dict[str, _Text] = {}
    size = sum(len(script.text or "") for script in scripts)
    for text in _texts(declared.linked.roots + _states(scripts), min(MOST_CHARACTERS, MOST_TIMES * size)):
        texts.setdefault(text.text, text)  # the enclosing text comes first, and has the title
    for text in texts.values():
        if text.is_article:
            return text
    said = spaced(declared.document_title)
    named = [text for text in texts.values() if text.title and spaced(text.title) in said]
    best = max(named or texts.values(), key=lambda text: text.words, default=None)
    if best is None or named:
        return best
    return best if best.words >= ARTICLE_SHARE * sum(text.words for text in texts.values()) else None


def _states(scripts: list[HtmlElement]) -> list[Any]:
    """Return the JSON values of the state of a page's framework."""
    states = []
    for script in scripts:
        text = script.text or ""
        if "ld+json" in (script.get("type") or "").lower():
            continue
        if script.get("id") == "__NEXT_DATA__":
            states.append(parsed(text))
        elif (found := _state(text[:CHARS_READ])) is not None:
            states.append(parsed(text[found.end() :]))
    return [state for state in states if state is not None]


def _texts(data: list[Any], left: int) -> Iterator[_Text]:
    """Yield the long texts under the keys of articles in JSON values.

    A nested value is read again with each value around it. So everything that is read draws on one budget of ``left``
    characters.
    """

    def lines(value: Any) -> Iterator[str]:
        """Yield the paragraphs of a text, which may be a string, or a list or tree of blocks."""
        nonlocal left
        todo = [value]
        while todo and left > 0:
            one = todo.pop()
            if isinstance(one, str):
                kept, left = one[:left], left - len(one)
                yield kept
            elif isinstance(one, (list, dict)):
                left -= MOST_TIMES * len(one)
                parts = (key for key in one if _plain(key) in _PARTS) if isinstance(one, dict) else range(len(one))
                todo.extend(one[part] for part in reversed(list(parts)))

    todo = data[::-1]
    while todo and left > 0:
        value = todo.pop()
        left -= MOST_TIMES * len(value)
        inner = list(value.values()) if isinstance(value, dict) else value
        todo.extend(one for one in reversed(inner) if isinstance(one, (list, dict)))
        for key, one in value.items() if isinstance(value, dict) else ():
            if _plain(key) in _BODIES:
                text = "\n".join(lines(one))
                words = len(words_of(_without_tags(text)))
                if words >= ARTICLE_WORDS:
                    yield _Text(_title(value), text, words, _plain(key) == "articlebody")


def _title(value: dict[str, Any]) -> str:
    for key in _TITLES:
        title = value.get(key)
        title = title.get("rendered") if isinstance(title, dict) else title  # WordPress
        if isinstance(title, str) and title.strip():
            return " ".join(_without_tags(title[:CHARS_READ]).split())
    return ""


def _plain(key: str) -> str:
    return key[:CHARS_READ].replace("_", "").lower()
