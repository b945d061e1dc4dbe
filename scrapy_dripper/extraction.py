"""What goes into an extraction and what comes out of it: plain, frozen and picklable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrapy_dripper.characters import has_controls, without_controls
from scrapy_dripper.config import Config

if TYPE_CHECKING:
    from scrapy_dripper.output.chunks import Chunk
    from scrapy_dripper.output.items import Items
    from scrapy_dripper.output.outlinks import Outlink


STRIP = 48
"""Digits of :attr:`Extraction.strip`."""


class FallbackReason(str, Enum):
    """Why a page has no main content from the model. Each has a stat, ``dripper/fallback/{value}``."""

    EMPTY_BODY = "empty_body"
    """The document has no bytes, or white space only."""
    NOT_HTML = "not_html"
    """The document is something else under the name of HTML: a PDF, an image, an archive."""
    OVERSIZE = "oversize"
    """More of something than the settings or the engine allow: bytes, elements, blocks, memory."""
    PARSE_ERROR = "parse_error"
    """No parser could make a tree of the document."""
    TRUNCATED_PARSE = "truncated_parse"
    """The parser reached one of its limits and no other parser recovered the rest."""
    NO_BLOCKS = "no_blocks"
    """The page has no visible text."""
    NO_MAIN = "no_main"
    """The model found that nothing on the page is main content: the answer is empty, no fallback is asked."""
    ENGINE_ERROR = "engine_error"
    """The engine raised, or returned nonsense, for this page."""
    LOW_QUALITY = "low_quality"
    """The engine expects less of its own answer than ``DRIPPER_MIN_QUALITY`` asks for."""
    OUTPUT_ERROR = "output_error"
    """The page was labelled, but writing it failed."""
    TIMEOUT = "timeout"
    """A step on the page's way took longer than ``DRIPPER_TIMEOUT`` seconds."""
    WORKER_ERROR = "worker_error"
    """The worker process that had the page died, twice, or answered nonsense."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Document:
    """An HTML document as it came, before parsing.

    ``html`` is text when somebody who knew better has decoded it already, bytes otherwise; ``charset`` is then the one
    of the Content-Type header, if any. ``config`` holds the options that differ from the extractor's for this document
    alone.
    """

    html: str | bytes
    url: str = ""
    charset: str | None = None
    config: Config | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a page says about itself; None where it does not say. No value holds control characters."""

    title: str | None = None
    author: str | None = None
    """Names, separated by semicolons."""
    date: str | None = None
    """Date of publication, ISO 8601."""
    language: str | None = None
    """Language tag of the document, BCP 47."""
    site_name: str | None = None
    url: str | None = None
    """The canonical URL; the one that the page came from where it names none."""
    description: str | None = None
    image: str | None = None
    """URL of the image that stands for the page."""

    def __post_init__(self) -> None:
        _clean(self, *(option.name for option in fields(self)))


class PackedContent:
    """A content list as it comes from a worker process; most crawls never look at it."""

    __slots__ = ("unpack", "values")

    def __init__(self, unpack: Callable[[], Items], values: Callable[[], list[dict[str, Any]]]) -> None:
        """``unpack`` returns the items, ``values`` the same as plain JSON values, which takes a fraction of the time.

        Both raise ValueError if what came is no content list.
        """
        self.unpack = unpack
        self.values = values


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that comes out for one page.

    ``main_html``, ``markdown`` and ``text`` are None only where nothing was extracted on purpose (fallback ``none``).
    ``labels`` and ``probabilities`` have one entry per block in document order; they are empty where no engine
    answered. Whoever made it, title, Main-HTML, Markdown, text and error hold no control characters
    (:func:`~scrapy_dripper.characters.without_controls`).
    """

    url: str
    title: str | None
    main_html: str | None
    markdown: str | None
    text: str | None
    source: str
    """Who decided: an engine's name, or ``fallback:NAME``."""
    fallback_reason: FallbackReason | None = None
    error: str | None = None
    """What went wrong, for people: the message behind ``fallback_reason``, if there is one."""
    labels: tuple[bool, ...] = ()
    """True where the block is main."""
    probabilities: tuple[float, ...] = ()
    """Probability of main of each block, 0 to 1."""
    blocks: int = 0
    """Number of blocks of the page, labelled or not."""
    truncated: bool = False
    """True if only the first part of the page was looked at: an oversize page under ``DRIPPER_OVERSIZE = "truncate"``,
    or one that is too large for its fallback."""
    content: Items | None = None
    """The content list that Markdown and text are written from."""
    metadata: Metadata | None = None
    """None unless ``DRIPPER_METADATA`` or ``DRIPPER_FRONT_MATTER`` is True, or ``DRIPPER_METADATA_FIELD`` names a
    field."""
    chunks: tuple[Chunk, ...] | None = None
    """The main content along its headings; None unless ``DRIPPER_CHUNKS_FIELD`` names a field."""
    links: tuple[Outlink, ...] | None = None
    """The links of the main content; None unless ``DRIPPER_LINKS_FIELD`` names a field."""
    fingerprints: tuple[str, str] | None = None
    """``content_hash`` and ``simhash`` of the text where ``DRIPPER_META_FIELD`` names a field; they are then made where
    the page is extracted, which can be another process."""
    page_type: str | None = None
    """What kind of page it is: ``article``, ``listing``, ``forum``, ... None where the engine does not say, and of what
    a fallback made."""
    page_type_probability: float | None = None
    """Probability that it is of this kind, 0 to 1."""
    quality: float | None = None
    """Expected word F1 of this extraction, 0 to 1; None where the engine does not say, and of what a fallback made."""
    work: Mapping[str, int] = field(default_factory=dict)
    """What the engine counted while it worked on this page; see ``docs/reference/stats.md``."""
    milliseconds: float = 0.0
    """Processing time spent on this page, its share of the batch's model call included."""

    def __post_init__(self) -> None:
        _clean(self, "title", "main_html", "markdown", "text", "error", "page_type")

    @property
    def is_empty(self) -> bool:
        """True if there is no main content in any form."""
        return not (self.main_html or self.markdown or self.text)

    @property
    def main_blocks(self) -> int:
        """Number of blocks labelled main."""
        return sum(self.labels)

    @property
    def confidence(self) -> float | None:
        """Mean, over the blocks, of the probability that the label given is right, 0 to 1; None without labels.

        Labels are chosen for the page as a whole, so it can be under 0.5.
        """
        if not self.labels:
            return None
        chosen = [p if main else 1.0 - p for main, p in zip(self.labels, self.probabilities, strict=True)]
        return sum(chosen) / len(chosen)

    @property
    def strip(self) -> str | None:
        """The labels as a thumbnail: of at most 48 equal parts of the page, from its top to its end, the share of main
        blocks as a digit, 0 for none and 9 for all; None without labels."""
        n = len(self.labels)
        parts = min(n, STRIP)
        edges = [n * k // parts for k in range(parts + 1)] if n else []
        return "".join(str(9 * sum(self.labels[a:b]) // (b - a)) for a, b in pairwise(edges)) or None

    @property
    def content_hash(self) -> str | None:
        """What tells whether the text has changed (:func:`~scrapy_dripper.fingerprint.content_hash`)."""
        return self._fingerprint(0)

    @property
    def simhash(self) -> str | None:
        """What tells near duplicates (:func:`~scrapy_dripper.fingerprint.simhash`)."""
        return self._fingerprint(1)

    def _fingerprint(self, number: int) -> str | None:
        if self.fingerprints is not None:
            return self.fingerprints[number]
        if self.text is None:
            return None
        from scrapy_dripper import fingerprint

        return (fingerprint.content_hash, fingerprint.simhash)[number](self.text)

    def meta(self) -> Mapping[str, Any]:
        """Return the small plain dict that ``DRIPPER_META_FIELD`` puts on items."""
        return {
            "source": self.source,
            "fallback_reason": self.fallback_reason.value if self.fallback_reason else None,
            "confidence": _rounded(self.confidence),
            "page_type": self.page_type,
            "page_type_probability": _rounded(self.page_type_probability),
            "quality": _rounded(self.quality),
            "blocks": self.blocks,
            "main_blocks": self.main_blocks,
            "strip": self.strip,
            "truncated": self.truncated,
            "content_hash": self.content_hash,
            "simhash": self.simhash,
            "milliseconds": round(self.milliseconds, 2),
        }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


_content: Any = Extraction.__dict__["content"]


def _unpacked(extraction: Extraction) -> Items | None:
    value = _content.__get__(extraction)
    if isinstance(value, PackedContent):
        value = value.unpack()
        _content.__set__(extraction, value)
    return value  # type: ignore[no-any-return]


def packed_values(extraction: Extraction) -> list[dict[str, Any]] | None:
    """Return the content list as plain JSON values where it has come from a worker and nobody has unpacked it yet."""
    value = _content.__get__(extraction)
    return value.values() if isinstance(value, PackedContent) else None


# Unpacking takes the crawl's own process as long as a whole page of Scrapy's work: it waits until somebody looks.
setattr(Extraction, "content", property(_unpacked, _content.__set__))  # noqa: B010 (mypy)


def _clean(record: Metadata | Extraction, *names: str) -> None:
    """Take control characters out of the strings of a record. A fallback of the user's may have made it of anything."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, str) and has_controls(value):
            object.__setattr__(record, name, without_controls(value))
