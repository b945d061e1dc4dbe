"""The fallback ``justext``: the paragraphs that jusText calls good. Importing this module imports jusText."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from justext import get_stoplist, get_stoplists
from justext.core import (
    STOPWORDS_HIGH_DEFAULT,
    STOPWORDS_LOW_DEFAULT,
    ParagraphMaker,
    classify_paragraphs,
    preprocessor,
    revise_paragraph_classification,
)
from trafilatura.settings import JUSTEXT_LANGUAGES

from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction, nothing
from scrapy_dripper.fallback.trees import limited_tree, title_of
from scrapy_dripper.fallback.whole_page import whole_page

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_PARAGRAPHS = 4_000
"""Number of paragraphs that are processed together. For each paragraph, jusText may search all others for a
neighbour.
"""
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))


def by_justext(text: str, url: str, config: Config, size: int) -> Extraction:
    """Return the good paragraphs of a page. Links, images, tables and lists are lost, because jusText returns text.

    ``size`` is the length of the original document, which limits the size of the output.
    """
    root, truncated = limited_tree(text, flat=True)
    title = title_of(root)
    body = "".join(map(_html, good_paragraphs(root)))
    found = whole_page(f"<body>{body}</body>", url, config, size) if body else nothing(url, None, None, "empty")
    return replace(found, title=title, source="fallback:justext", truncated=truncated or found.truncated)


def good_paragraphs(root: HtmlElement) -> Sequence[Any]:
    """Return the paragraphs of a tree that are not boilerplate, according to jusText.

    Stop words are those of the page's language. If the page declares no language, those of all languages count. jusText
    has no list for languages such as Chinese and Japanese, for which stop words are ignored. All options have jusText's
    defaults.
    """
    words = stop_words(root.get("lang", "")[:20].split("-")[0].lower())
    low, high = (STOPWORDS_LOW_DEFAULT, STOPWORDS_HIGH_DEFAULT) if words else (0, 0)
    paragraphs = ParagraphMaker.make_paragraphs(preprocessor(root))
    for i in range(0, len(paragraphs), MAX_PARAGRAPHS):
        part = paragraphs[i : i + MAX_PARAGRAPHS]
        classify_paragraphs(part, words, stopwords_low=low, stopwords_high=high)
        revise_paragraph_classification(part)
    return [paragraph for paragraph in paragraphs if not paragraph.is_boilerplate]


@lru_cache(maxsize=8)
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language by its ISO 639-1 code, those of all languages for an empty one."""
    known = get_stoplists()
    if not language:
        return frozenset().union(*map(get_stoplist, known))
    name = JUSTEXT_LANGUAGES.get(language)
    return frozenset(get_stoplist(name)) if name in known else frozenset()


def _html(paragraph: Any) -> str:
    tag = next((tag for tag in reversed(paragraph.dom_path.split(".")) if tag in _HEADINGS), "p")
    return f"<{tag}>{escape(paragraph.text)}</{tag}>"
