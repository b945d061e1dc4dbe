"""What is made of an extraction: Markdown with other options, chunks, links, fingerprints and front matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, Metadata, fingerprints
from scrapy_dripper.output import most_chars
from scrapy_dripper.output.content_json import from_json, to_json
from scrapy_dripper.output.markdown import Callouts, Posts, Tables
from scrapy_dripper.output.markdown import front_matter as yaml
from scrapy_dripper.output.markdown import markdown as of_items
from scrapy_dripper.output.markdown_inline import Links
from scrapy_dripper.output.urls import outlinks
from scrapy_dripper.structures.items import Items

if TYPE_CHECKING:
    from scrapy_dripper.output.chunks import Chunk

_LARGER = (1, 8, 64, 512)


def markdown(
    content: Extraction | Items | Sequence[Mapping[str, Any]],
    links: Links = "keep",
    tables: Tables = "html",
    callouts: Callouts = "alerts",
    posts: Posts = "rules",
    front_matter: bool = False,
    types: Collection[str] | None = None,
) -> str:
    """Return the Markdown of an extraction, of its content list, or of that list as JSON values, as items hold it.

    The arguments are those of ``DRIPPER_MARKDOWN``. Front matter needs an extraction; what it has beside title and URL
    is from the page's metadata, if that was read. Raise ValueError if it is asked for without an extraction,
    ConfigError for a wrong argument, and TypeError for HTML.
    """
    if isinstance(content, (str, bytes)):
        raise TypeError("markdown takes an extraction or its content list; for the HTML of a page, there is extract")
    asked: Any = {"links": links, "tables": tables, "callouts": callouts, "posts": posts, "types": types}
    form = Config(markdown=asked).markdown
    extraction = content if isinstance(content, Extraction) else None
    found = content if extraction is None else extraction.content
    if found is None:
        raise ValueError("the extraction has no content list: set DRIPPER_CONTENT_FIELD, or Config(content_field=...)")
    items = from_json(found) if isinstance(found, list) else cast("Items", found)
    written = of_items(
        items, links=form.links, tables=form.tables, callouts=form.callouts, posts=form.posts, types=form.types
    )
    if not front_matter:
        return written
    if extraction is None:
        raise ValueError("front_matter needs an extraction, because a content list has no title and no URL")
    known = _front_matter(extraction, extraction.metadata or Metadata())
    return f"{known}\n\n{written}" if known and written else written


def wants_content(config: Config) -> bool:
    """Return True if an item field needs the content list."""
    return not (config.content_field is config.chunks_field is config.links_field is None)


def plain_content(items: Items, config: Config) -> list[dict[str, Any]] | None:
    """Return a content list as plain JSON values, if an item field needs it."""
    return to_json(items) if wants_content(config) else None


def with_retrieval(extraction: Extraction, items: Items | None, document: Document, config: Config) -> Extraction:
    """Return an extraction with content list, chunks, links and fingerprints, as far as fields are configured for them.

    ``items`` is the content list; by default that of the extraction, as it comes from a fallback.
    """
    if config.meta_field is not None:
        extraction = extraction.with_details(**fingerprints(extraction.text))
    if items is None and extraction.content is not None and wants_content(config):
        items = from_json(extraction.content)
    content = links = chunks = None
    if items is not None and config.content_field is not None:
        content = to_json(items)
    if items is not None and config.links_field is not None:
        links = [asdict(link) for link in outlinks(items)]
    if items is not None and config.chunks_field is not None:
        most = most_chars(len(document.html), config.limits.output)
        chunks = plain_chunks(_chunks(items, document.url, config, most))
    return replace(extraction, content=content, links=links, chunks=chunks)


def measure(config: Config) -> Callable[[str], int]:
    """Return the function that measures the size of a chunk: in characters, or in tokens of the configured tokenizer.

    Raise :exc:`~scrapy_dripper.config.ConfigError` if the tokenizer cannot be loaded.
    """
    if config.chunks.tokenizer is None:
        return len
    from scrapy_dripper.output.chunks import counter

    return counter(config.chunks.tokenizer)


def plain_chunks(some: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Return chunks as plain JSON values."""
    return [asdict(chunk) | {"headings": list(chunk.headings)} for chunk in some]


def with_front_matter(extraction: Extraction, metadata: Metadata) -> Extraction:
    """Put front matter before the Markdown of an extraction, if it has any."""
    if not extraction.markdown:
        return extraction
    known = _front_matter(extraction, metadata)
    return replace(extraction, markdown=f"{known}\n\n{extraction.markdown}") if known else extraction


def _front_matter(extraction: Extraction, metadata: Metadata) -> str:
    return yaml(
        [
            ("title", metadata.title or extraction.title),
            ("url", extraction.url or metadata.url),
            ("date", metadata.date),
            ("author", metadata.author),
            ("language", metadata.language),
        ]
    )


def _chunks(content: Items, url: str, config: Config, most: int) -> tuple[Chunk, ...]:
    """Return the chunks of a content list, with a larger chunk size if the output would otherwise be too long."""
    from scrapy_dripper.output.chunks import chunks

    form = config.markdown
    write = partial(of_items, links=form.links, tables=form.tables, callouts=form.callouts, posts=form.posts)
    for larger in _LARGER:
        made = chunks(
            content,
            url,
            size=config.chunks.size * larger,
            overlap=config.chunks.overlap,
            measure=measure(config),
            write=write,
        )
        if sum(len(one.markdown) + len(one.url) + sum(map(len, one.headings)) for one in made) <= most:
            return made
    return ()
