"""Convert extractions to ``Article`` items. Importing this module requires zyte-common-items."""

from __future__ import annotations

from typing import Any

from zyte_common_items import Article, ArticleMetadata, Audio, Author, Breadcrumb, Image, Video

from scrapy_dripper.data import Extraction, Metadata
from scrapy_dripper.output.content_json import from_json
from scrapy_dripper.output.urls import media
from scrapy_dripper.structures import items as items_of
from scrapy_dripper.structures.items import Items

__all__ = ["Article", "to_article"]


def to_article(found: Extraction) -> Article:
    """Return an extraction as an article. Values that the page does not provide are None.

    If only the date of the last change is known, it is also the date of publication, as zyte-common-items requires.
    """
    about = found.metadata or Metadata()
    items = from_json(found.content or ())
    return Article(
        url=found.url,
        headline=found.title,
        datePublished=_moment(about.date_published or about.date_modified),
        dateModified=_moment(about.date_modified),
        authors=[Author(name=name, nameRaw=name) for name in about.authors] or None,
        breadcrumbs=[Breadcrumb(name=one.name, url=one.url) for one in about.breadcrumbs] or None,
        inLanguage=about.language and about.language.partition("-")[0].lower(),
        mainImage=Image(url=about.image) if about.image else None,
        images=[Image(url=url) for url in _urls(items, items_of.Image)] or None,
        videos=[Video(url=url) for url in _urls(items, items_of.Video)] or None,
        audios=[Audio(url=url) for url in _urls(items, items_of.Audio)] or None,
        description=about.description,
        articleBody=(found.text or "").strip() or None,
        articleBodyHtml=found.main_html or None,
        canonicalUrl=about.canonical,
        metadata=ArticleMetadata(probability=_probability(found)),
    )


def _moment(date: str | None) -> str | None:
    """Return a date with a time, as zyte-common-items requires. If there is none, it is midnight without a zone."""
    return f"{date}T00:00:00" if date and "T" not in date else date


def _probability(found: Extraction) -> float:
    """Return the probability that the page is an article. It is 1, the default of zyte-common-items, if it is unknown.

    If the page is more likely of another type, only the probability of that type is known. Then this returns an upper
    bound: an article is at most as likely as that type, and both probabilities add up to at most 1.
    """
    if found.is_empty:
        return 0.0
    likely: float | None = found.details.get("page_type_probability")
    if found.page_type is None or likely is None:
        return 1.0
    return likely if found.page_type == "article" else min(likely, 1 - likely)


def _urls(items: Items, kind: Any) -> list[str]:
    """Return the web addresses of the images, videos or sounds in a content list."""
    return [one.src for one in media(items, kind) if one.src.startswith(("http:", "https:"))]
