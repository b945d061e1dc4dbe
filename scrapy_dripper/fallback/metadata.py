"""The metadata of a page, as found by Trafilatura. Importing this module imports Trafilatura."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from htmldate import find_date
from trafilatura.json_metadata import extract_json
from trafilatura.metadata import (
    examine_meta,
    extract_author,
    extract_sitename,
    extract_title,
    extract_url,
)
from trafilatura.settings import set_date_params

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Metadata
from scrapy_dripper.fallback.json_ld import Names, bound_meta, json_ld
from scrapy_dripper.fallback.trafilatura_output import limit_caches
from scrapy_dripper.fallback.trees import limited_tree
from scrapy_dripper.output.urls import resolver
from scrapy_dripper.page.decode import decode
from scrapy_dripper.page.recover import drop_controls

if TYPE_CHECKING:
    from lxml.html import HtmlElement

logger = logging.getLogger(__name__)

_host = re.compile(r"https?://(?:www\.|w\d+\.)?([^/]+)").match
_language = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*").fullmatch


def metadata(document: Document, config: Config) -> Metadata:
    """Return the metadata of a document. Never raises: metadata that cannot be read is None."""
    html = document.html[: config.max_bytes]
    limit_caches(len(html))
    try:
        root, _ = limited_tree(html if isinstance(html, str) else decode(html, document.charset), flat=True)
        drop_controls(root)
        language = _language_of(root)
        found = _found(root, document.url or None)
        resolve = resolver(found.url or document.url)
        return Metadata(
            title=found.title or None,
            author=found.author or None,
            date=found.date or None,
            language=language,
            site_name=found.sitename or None,
            url=found.url or None,
            description=found.description or None,
            image=resolve(found.image) or None if found.image else None,
        )
    except Exception:
        logger.debug("no metadata of %(url)s", {"url": document.url}, exc_info=True)
        return Metadata()


def _found(root: HtmlElement, url: str | None) -> Any:
    """Return what Trafilatura's ``extract_metadata`` finds, except licenses, categories and tags.

    The search for those takes quadratic time on nested elements. So does JSON-LD that is not limited.
    """
    names = Names()
    bound_meta(root, names)
    found = examine_meta(root)
    if found.author and " " not in found.author:
        found.author = None
    for said in json_ld(root, names):
        with suppress(AttributeError, TypeError, KeyError, IndexError, ValueError):  # JSON-LD can have any structure
            extract_json(said, found)
    found.title = found.title or extract_title(root)
    found.author = found.author or extract_author(root)
    found.url = found.url or extract_url(root, url)
    # The extensive search for dates would double the total time, and guesses more often.
    found.date = find_date(root, url=found.url, **set_date_params(extensive=False))
    name = (found.sitename or extract_sitename(root) or "").lstrip("@")
    if not name:
        host = _host(found.url or "")
        name = host[1] if host else ""
    elif "." not in name and not name[0].isupper():
        name = name.title()
    found.sitename = name
    found.clean_and_trim()
    return found


def _language_of(root: HtmlElement) -> str | None:
    """Return the language that a document declares. (Trafilatura guesses it from the text.)"""
    meta = root.find(".//meta[@http-equiv='content-language']")
    for written in (root.get("lang"), root.get("xml:lang"), None if meta is None else meta.get("content")):
        match = _language((written or "").strip())
        if match:
            return match[0].replace("_", "-")
    return None
