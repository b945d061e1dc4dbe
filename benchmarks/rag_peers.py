"""Other tools that prepare pages for search: Markdown, chunks and links of crawl4ai and Trafilatura, as documented.

crawl4ai (``pip install crawl4ai``) runs without its browser: what ``AsyncWebCrawler`` does with HTML that was fetched
is called directly, with the same classes and their defaults. ``fit_markdown`` comes from ``PruningContentFilter()``.
Trafilatura makes no chunks. Its Markdown and ``fit_markdown`` are split as LangChain documents it for Markdown
(``pip install langchain-text-splitters``): at headings, and then by ``RecursiveCharacterTextSplitter``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree
from lxml import html as lxml_html

SIZE = 2_000
"""Maximum size of a chunk in characters."""
WORDS = 330
"""The same in words, for the chunkers that count those: as many as 2,000 characters of English text have."""
PACKAGES = {
    "crawl4ai": ("crawl4ai", "langchain-text-splitters"),
    "trafilatura": ("trafilatura", "langchain-text-splitters"),
}


class Chunk(NamedTuple):
    """A chunk, and whether it is known below which heading it stands."""

    text: str
    headed: bool


@dataclass(frozen=True, slots=True)
class Crawled:
    """What crawl4ai makes of a page."""

    markdown: str
    fit: str
    links: list[str]
    fit_links: list[str]


@lru_cache(maxsize=1)
def crawled(page: str, url: str) -> Crawled:
    """Return what crawl4ai makes of a page, without links and images in its Markdown (two of its options)."""
    scraping = import_module("crawl4ai.content_scraping_strategy")
    generation = import_module("crawl4ai.markdown_generation_strategy")
    filters = import_module("crawl4ai.content_filter_strategy")
    scraped = scraping.LXMLWebScrapingStrategy().scrap(url, page)
    options = {"ignore_links": True, "ignore_images": True}
    generator = generation.DefaultMarkdownGenerator(filters.PruningContentFilter(), options)
    made = generator.generate_markdown(scraped.cleaned_html, base_url=url)
    links = [link.href for link in (*scraped.links.internal, *scraped.links.external)]
    return Crawled(made.raw_markdown, made.fit_markdown, [link for link in links if link], _hrefs(made.fit_html, url))


def trafilatura_markdown(page: str, url: str) -> str:
    """Return Trafilatura's Markdown."""
    return import_module("trafilatura").extract(page, url=url or None, output_format="markdown") or ""


def trafilatura_text(page: str, url: str) -> str:
    """Return Trafilatura's text."""
    return import_module("trafilatura").extract(page, url=url or None) or ""


def trafilatura_links(page: str, url: str) -> list[str]:
    """Return the links that Trafilatura keeps with ``include_links``."""
    found = import_module("trafilatura").extract(page, url=url or None, output_format="xml", include_links=True)
    if not found:
        return []
    root = etree.fromstring(found.encode("utf-8"), etree.XMLParser(resolve_entities=False, huge_tree=True))
    return [urljoin(url, target) for ref in root.iter("ref") if (target := ref.get("target"))]


def split(markdown: str) -> list[Chunk]:
    """Split Markdown at its headings, and then into parts of at most :data:`SIZE` characters."""
    library = import_module("langchain_text_splitters")
    levels = [("#" * level, str(level)) for level in range(1, 7)]
    sections = library.MarkdownHeaderTextSplitter(levels, strip_headers=False).split_text(markdown)
    splitter = library.RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=0)
    return [Chunk(part.page_content, bool(part.metadata)) for part in splitter.split_documents(sections)]


def _chunked(strategy: str, **options: Any) -> Callable[[str], list[Chunk]]:
    def chunk(markdown: str) -> list[Chunk]:
        made = getattr(import_module("crawl4ai.chunking_strategy"), strategy)(**options).chunk(markdown)
        return [Chunk(part, part.lstrip().startswith("#")) for part in made if part.strip()]

    return chunk


_by_words = _chunked("FixedLengthWordChunking", chunk_size=WORDS)
_at_blank_lines = _chunked("RegexChunking")

CHUNKERS: dict[str, dict[str, Callable[[str, str], list[Chunk]]]] = {
    "crawl4ai": {
        "crawl4ai, RegexChunking": lambda page, url: _at_blank_lines(crawled(page, url).markdown),
        f"crawl4ai, {WORDS} words": lambda page, url: _by_words(crawled(page, url).markdown),
        "crawl4ai fit, RegexChunking": lambda page, url: _at_blank_lines(crawled(page, url).fit),
        f"crawl4ai fit, {WORDS} words": lambda page, url: _by_words(crawled(page, url).fit),
        "crawl4ai fit, LangChain": lambda page, url: split(crawled(page, url).fit),
    },
    "trafilatura": {"Trafilatura, LangChain": lambda page, url: split(trafilatura_markdown(page, url))},
}
LINKERS: dict[str, dict[str, Callable[[str, str], list[str]]]] = {
    "crawl4ai": {
        "crawl4ai, links": lambda page, url: crawled(page, url).links,
        "crawl4ai fit": lambda page, url: crawled(page, url).fit_links,
    },
    "trafilatura": {"Trafilatura": trafilatura_links},
}


def hashed(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check(peers: list[str]) -> None:
    """Raise SystemExit if a peer is unknown or not installed."""
    for name in peers:
        if name not in CHUNKERS:
            raise SystemExit(f"expected peers from {', '.join(CHUNKERS)} (got {name})")
        try:
            import_module(name)
            import_module("langchain_text_splitters")
        except ImportError as error:
            raise SystemExit(f"{error}. Run: pip install {' '.join(PACKAGES[name])}; or use --peers ''") from error


def _hrefs(page: str, url: str) -> list[str]:
    return [urljoin(url, href) for href in lxml_html.fromstring(page).xpath("//a/@href")] if page.strip() else []
