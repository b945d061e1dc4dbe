"""Chunks, links, fingerprints and front matter, which are added to an extraction if they are configured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction, Metadata, revised
from scrapy_dripper.output.bounds import most_chars
from scrapy_dripper.output.chunks import Chunk, chunks
from scrapy_dripper.output.front_matter import front_matter
from scrapy_dripper.output.items import Items
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.output.outlinks import outlinks

_LARGER = (1, 8, 64, 512)


def wants_content(config: Config) -> bool:
    """Return True if an item field needs the content list."""
    return not (config.content_field is config.chunks_field is config.links_field is None)


def with_retrieval(extraction: Extraction, document: Document, config: Config) -> Extraction:
    """Return an extraction with chunks, links and fingerprints added, as far as fields are configured for them."""
    if extraction.text is not None and config.meta_field is not None:
        from scrapy_dripper.fingerprint import content_hash, simhash  # loads OpenSSL, which most crawls do not need

        extraction = revised(extraction, fingerprints=(content_hash(extraction.text), simhash(extraction.text)))
    content = extraction.content
    if content is None:
        return extraction
    if config.links_field is not None:
        extraction = revised(extraction, links=outlinks(content))
    if config.chunks_field is not None:
        most = most_chars(len(document.html), config.max_output)
        extraction = revised(extraction, chunks=_chunks(content, document.url, config, most))
    return extraction


def check_tokenizer(config: Config) -> None:
    """Raise :exc:`~scrapy_dripper.config.ConfigError` if the tokenizer of chunks cannot be loaded."""
    measure(config)


def measure(config: Config) -> Callable[[str], int]:
    """Return the function that measures a text in the unit of ``DRIPPER_CHUNK_SIZE``: characters or tokens.

    Raise :exc:`~scrapy_dripper.config.ConfigError` if the tokenizer cannot be loaded.
    """
    if config.chunk_tokenizer is None:
        return len
    from scrapy_dripper.output.tokens import counter

    return counter(config.chunk_tokenizer)


def plain_chunks(some: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Return chunks as plain JSON values."""
    return [asdict(chunk) | {"headings": list(chunk.headings)} for chunk in some]


def with_front_matter(extraction: Extraction, metadata: Metadata) -> Extraction:
    """Put front matter before the Markdown of an extraction, if it has any."""
    if not extraction.markdown:
        return extraction
    known = front_matter(
        [
            ("title", metadata.title or extraction.title),
            ("url", extraction.url or metadata.url),
            ("date", metadata.date),
            ("author", metadata.author),
            ("language", metadata.language),
        ]
    )
    return replace(extraction, markdown=f"{known}\n\n{extraction.markdown}") if known else extraction


def _chunks(content: Items, url: str, config: Config, most: int) -> tuple[Chunk, ...]:
    """Return the chunks of a content list, with a larger chunk size if the output would otherwise be too long."""
    write = partial(markdown, links=config.links, tables=config.complex_tables, callouts=config.callouts)  # type: ignore[arg-type]
    for larger in _LARGER:
        made = chunks(
            content,
            url,
            size=config.chunk_size * larger,
            overlap=config.chunk_overlap,
            measure=measure(config),
            write=write,
        )
        if sum(len(one.markdown) + len(one.url) + sum(map(len, one.headings)) for one in made) <= most:
            return made
    return ()
