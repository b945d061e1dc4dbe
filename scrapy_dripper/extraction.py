"""The input and the output of an extraction, as frozen, picklable dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from scrapy_dripper.characters import has_controls, without_controls
from scrapy_dripper.config import Config

if TYPE_CHECKING:
    from scrapy_dripper.output.chunks import Chunk
    from scrapy_dripper.output.items import Items
    from scrapy_dripper.output.outlinks import Outlink


STRIP = 48
"""Digits of :attr:`Extraction.strip`."""


class FallbackReason(str, Enum):
    """The reason why a page has no main content from the model. Each has a stat, ``dripper/fallback/{value}``."""

    EMPTY_BODY = "empty_body"
    """The document is empty or holds only white space."""
    NOT_HTML = "not_html"
    """The document was sent as HTML but is something else: a PDF, an image, an archive."""
    OVERSIZE = "oversize"
    """The page exceeds a limit of the settings or the engine: bytes, elements, blocks or memory."""
    PARSE_ERROR = "parse_error"
    """No parser could build a tree from the document."""
    TRUNCATED_PARSE = "truncated_parse"
    """The parser reached one of its limits and no other parser recovered the rest."""
    NO_BLOCKS = "no_blocks"
    """The page has no visible text."""
    NO_MAIN = "no_main"
    """The model found no main content on the page. The extraction is empty and no fallback runs."""
    JS_SHELL = "js_shell"
    """A script fills the page after it loads. The text, if any, comes from the data embedded in the page."""
    ENGINE_ERROR = "engine_error"
    """The engine raised an exception or returned an invalid answer for this page."""
    ENGINE_LOST = "engine_lost"
    """The engine cannot label any page: it has failed on several in a row and on a page of two blocks, or its model can
    no longer be loaded. It is retried every 30 seconds."""
    OVERFLOW = "overflow"
    """The model returned NaN or infinity for this page: a number was too large for its data type."""
    LOW_QUALITY = "low_quality"
    """The quality that the engine expects of its own answer is below ``DRIPPER_MIN_QUALITY``."""
    OUTPUT_ERROR = "output_error"
    """The page was labelled, but writing the output failed."""
    TIMEOUT = "timeout"
    """A step of the extraction took longer than ``DRIPPER_TIMEOUT`` seconds."""
    WORKER_ERROR = "worker_error"
    """The worker process died twice on the page, or returned an invalid answer."""

    def __str__(self) -> str:
        return self.value


SUSPECT = (FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR)
"""Reasons after which the fallback may also get stuck or crash on the document."""


@dataclass(frozen=True, slots=True)
class Document:
    """An HTML document before parsing.

    ``html`` is text if it has been decoded already, bytes otherwise. ``charset`` is the charset of the Content-Type
    header, if there is one; it is only used for bytes. ``config`` replaces the extractor's options for this document.
    Other buffers become bytes, and a URL of any type becomes text. Raise TypeError if ``html`` is neither.
    """

    html: str | bytes
    url: str = ""
    charset: str | None = None
    config: Config | None = None
    known: bytes | None = None
    """What a site memory knows about the host (:meth:`~scrapy_dripper.sites.SiteMemory.known`). By default, the
    extractor asks its own memory, if it has one.
    """
    templates: bytes | None = None
    """The templates of the host (:meth:`~scrapy_dripper.sites.Templates.known`). By default, the extractor uses its own
    templates, if it has any.
    """

    def __post_init__(self) -> None:
        # Workers get plain data. A wrong type is rejected here, where it is known which document has it.
        if isinstance(self.html, (bytearray, memoryview)):
            object.__setattr__(self, "html", bytes(self.html))
        elif not isinstance(self.html, (str, bytes)):
            raise TypeError(f"html must be text or bytes (got a value of type {type(self.html).__name__})")
        if not isinstance(self.url, str):
            object.__setattr__(self, "url", "" if self.url is None else str(self.url))
        if not isinstance(self.charset, str):
            object.__setattr__(self, "charset", None)


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """One step of the path from the front page of a site to a page. No value holds control characters."""

    name: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        _clean(self, "name", "url")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a page. A value is None or empty if the page does not give it. No value holds control characters.

    :meth:`as_dict` and :meth:`from_dict` are for JSON.
    """

    title: str | None = None
    authors: tuple[str, ...] = ()
    date_published: str | None = None
    """ISO 8601: a day, or a day with its time, and with its zone if that is known."""
    date_modified: str | None = None
    """The same for the last change."""
    language: str | None = None
    """Language tag of the document (BCP 47): the one that it declares, or else that of its main content."""
    site_name: str | None = None
    url: str | None = None
    """The canonical URL. If the page names none, the URL that it was fetched from."""
    canonical: str | None = None
    """The canonical URL that the page names."""
    description: str | None = None
    image: str | None = None
    """URL of the image that represents the page."""
    breadcrumbs: tuple[Breadcrumb, ...] = ()
    """The path from the front page of the site to the page."""

    def __post_init__(self) -> None:
        _clean(self, *(option.name for option in fields(self)))
        if any(has_controls(name) for name in self.authors if isinstance(name, str)):
            object.__setattr__(self, "authors", tuple(map(without_controls, self.authors)))

    @property
    def author(self) -> str | None:
        """The authors, separated by semicolons."""
        return "; ".join(self.authors) or None

    @property
    def date(self) -> str | None:
        """The day of publication, or of the last change if only that is known (ISO 8601)."""
        date = self.date_published or self.date_modified
        return date and date[:10]

    def as_dict(self) -> dict[str, Any]:
        """Return the values, including ``author`` and ``date``, as plain JSON values."""
        values = asdict(self) | {
            "authors": list(self.authors),
            "breadcrumbs": [asdict(one) for one in self.breadcrumbs],
        }
        return {"title": values.pop("title"), "author": self.author, "date": self.date, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Metadata:
        """Return the metadata of :meth:`as_dict`. Raise TypeError, ValueError or KeyError for other values."""
        known = {field.name: values[field.name] for field in fields(cls)}
        known["authors"] = tuple(known["authors"])
        known["breadcrumbs"] = tuple(Breadcrumb(one["name"], one["url"]) for one in known["breadcrumbs"])
        found = cls(**known)
        found.check()
        return found

    def check(self) -> None:
        """Raise TypeError if a value has the wrong type."""
        single = (getattr(self, field.name) for field in fields(self) if field.name not in ("authors", "breadcrumbs"))
        steps = (value for one in self.breadcrumbs for value in (one.name, one.url))
        for value in (*self.authors, *(one for one in (*single, *steps) if one is not None)):
            if not isinstance(value, str):
                raise TypeError(f"expected a string (got {type(value).__name__})")


class PackedContent:
    """A content list as received from a worker process. It is decoded on first access, because few crawls read it."""

    __slots__ = ("unpack", "values")

    def __init__(self, unpack: Callable[[], Items], values: Callable[[], list[dict[str, Any]]]) -> None:
        """``unpack`` returns the items; ``values`` returns them as plain JSON values, in a fraction of the time.

        Both raise ValueError if the data is not a content list.
        """
        self.unpack = unpack
        self.values = values


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of extracting one page.

    ``main_html``, ``markdown`` and ``text`` are None only if the source is ``fallback:none``. ``labels`` and
    ``probabilities`` have one entry per block, in document order; they are empty if no engine answered. Title,
    Main-HTML, Markdown, text and error never hold control characters
    (:func:`~scrapy_dripper.characters.without_controls`).
    """

    url: str
    title: str | None
    main_html: str | None
    markdown: str | None
    text: str | None
    source: str
    """The name of the engine that labelled the page, ``template``, or ``fallback:NAME``."""
    fallback_reason: FallbackReason | None = None
    error: str | None = None
    """A human-readable message that explains ``fallback_reason``, or why the page is truncated; None without either."""
    labels: tuple[bool, ...] = ()
    """True for each block that is main content."""
    probabilities: tuple[float, ...] = ()
    """Probability that each block is main content, 0 to 1."""
    blocks: int = 0
    """Number of blocks on the page, labelled or not."""
    exceeded: str | None = None
    """The limit of the page or of its output that it exceeds, such as ``DRIPPER_LIMITS["blocks"]``."""
    truncated: bool = False
    """True if only the first part of the page was processed: an oversize page with ``DRIPPER_OVERSIZE = "truncate"``,
    or a page that is too large for its fallback."""
    content: Items | None = None
    """The content list that Markdown and text are written from."""
    metadata: Metadata | None = None
    """None unless ``DRIPPER_METADATA_FIELD`` names a field, or Markdown has front matter."""
    chunks: tuple[Chunk, ...] | None = None
    """The main content split at its headings; None unless ``DRIPPER_CHUNKS_FIELD`` names a field."""
    links: tuple[Outlink, ...] | None = None
    """The links of the main content; None unless ``DRIPPER_LINKS_FIELD`` names a field."""
    fingerprints: tuple[str, str] | None = None
    """``content_hash`` and ``simhash`` of the text if ``DRIPPER_META_FIELD`` names a field. They are then computed in
    the process that extracts the page."""
    page_type: str | None = None
    """The type of the page: ``article``, ``listing``, ``forum``, ... None if the engine does not predict it, and for
    fallbacks."""
    page_type_probability: float | None = None
    """Probability of ``page_type``, 0 to 1."""
    quality: float | None = None
    """Expected word F1 of this extraction, 0 to 1; None if it is empty or the engine does not predict it, and for
    fallbacks."""
    rules: Mapping[str, int] | None = None
    """Number of blocks decided by ``DRIPPER_RULES``, by kind (``whole``, ``keep``, ``drop``); None if no rules apply to
    the page, and for fallbacks."""
    work: Mapping[str, int] = field(default_factory=dict)
    """The engine's own counters for this page; see ``docs/reference/stats.md``."""
    overruled: tuple[str, ...] = ()
    """Names of the steps after the model that changed nothing on this page, because they would have removed text of
    which the model was sure, such as ``short_page``, ``structures``, ``footnotes``, ``duplicates`` or ``hidden``."""
    missing: tuple[str, ...] = ()
    """The kinds of facts that the page declares and shows, and of which more than half are not in the text:
    ``ingredient``, ``step``, ``question``, ``answer`` or ``body``. It is checked whatever labelled the page."""
    repeated: int = 0
    """Number of main blocks that were left out because other pages of the site have them (``DRIPPER_SITES``)."""
    digest: bytes = field(default=b"", repr=False)
    """What a site memory learns from the page (:meth:`~scrapy_dripper.sites.SiteMemory.learn`); empty without one."""
    template: str | None = None
    """``answered`` if a template has labelled the page, or why the model was asked: a value of
    :class:`~scrapy_dripper.sites.Outcome`. None without templates."""
    lesson: bytes = field(default=b"", repr=False)
    """What templates learn from the page (:meth:`~scrapy_dripper.sites.Templates.learn`); empty without them."""
    milliseconds: float = 0.0
    """Processing time of this page, including its share of the batch's model call."""

    def __post_init__(self) -> None:
        _clean(self, "title", "main_html", "markdown", "text", "error", "page_type")

    @property
    def is_empty(self) -> bool:
        """True if there is no main content in any form."""
        return not (self.main_html or self.markdown or self.text)

    @property
    def main_blocks(self) -> int:
        """Number of blocks labelled as main content."""
        return sum(self.labels)

    @property
    def confidence(self) -> float | None:
        """Mean probability of the labels that were chosen, 0 to 1; None without labels.

        It can be below 0.5, because labels are chosen for the page as a whole.
        """
        if not self.labels:
            return None
        chosen = [p if main else 1.0 - p for main, p in zip(self.labels, self.probabilities, strict=True)]
        return sum(chosen) / len(chosen)

    @property
    def limit(self) -> str | None:
        """The setting whose limit the page exceeds, as it is written in settings; None if it exceeds none."""
        return self.exceeded or ("DRIPPER_TIMEOUT" if self.fallback_reason is FallbackReason.TIMEOUT else None)

    @property
    def strip(self) -> str | None:
        """The labels as a thumbnail; None without labels.

        The page is divided into at most 48 equal parts, from top to bottom. Each digit is the share of main blocks in a
        part, from 0 for none to 9 for all.
        """
        n = len(self.labels)
        parts = min(n, STRIP)
        edges = [n * k // parts for k in range(parts + 1)] if n else []
        return "".join(str(9 * sum(self.labels[a:b]) // (b - a)) for a, b in pairwise(edges)) or None

    @property
    def content_hash(self) -> str | None:
        """Hash of the text, to detect changes (:func:`~scrapy_dripper.fingerprint.content_hash`)."""
        return self._fingerprint(0)

    @property
    def simhash(self) -> str | None:
        """SimHash of the text, to detect near duplicates (:func:`~scrapy_dripper.fingerprint.simhash`)."""
        return self._fingerprint(1)

    def _fingerprint(self, number: int) -> str | None:
        if self.fingerprints is not None:
            return self.fingerprints[number]
        if self.text is None:
            return None
        from scrapy_dripper import fingerprint

        return (fingerprint.content_hash, fingerprint.simhash)[number](self.text)

    def meta(self) -> Mapping[str, Any]:
        """Return the dict that ``DRIPPER_META_FIELD`` puts on items."""
        return {
            "source": self.source,
            "fallback_reason": self.fallback_reason.value if self.fallback_reason else None,
            "error": self.error,
            "limit": self.limit,
            "confidence": _rounded(self.confidence),
            "page_type": self.page_type,
            "page_type_probability": _rounded(self.page_type_probability),
            "quality": _rounded(self.quality),
            "blocks": self.blocks,
            "main_blocks": self.main_blocks,
            "strip": self.strip,
            "template": self.template,
            "rules": None if self.rules is None else dict(self.rules),
            "overruled": list(self.overruled),
            "missing": list(self.missing),
            "truncated": self.truncated,
            "content_hash": self.content_hash,
            "simhash": self.simhash,
            "milliseconds": round(self.milliseconds, 2),
        }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


_slots: dict[str, Any] = {option.name: Extraction.__dict__[option.name] for option in fields(Extraction)}
_content = _slots["content"]


def revised(extraction: Extraction, **changes: Any) -> Extraction:
    """Return a copy of an extraction with other values for some of its fields.

    Unlike :func:`dataclasses.replace`, this does not search the whole output for control characters again.
    """
    made = object.__new__(Extraction)
    for name, slot in _slots.items():
        slot.__set__(made, changes[name] if name in changes else slot.__get__(extraction))
    _clean(made, *changes)
    return made


def _unpacked(extraction: Extraction) -> Items | None:
    value = _content.__get__(extraction)
    if isinstance(value, PackedContent):
        value = value.unpack()
        _content.__set__(extraction, value)
    return value  # type: ignore[no-any-return]


def packed_values(extraction: Extraction) -> list[dict[str, Any]] | None:
    """Return the content list as plain JSON values if a worker sent it and it has not been unpacked; None otherwise."""
    value = _content.__get__(extraction)
    return value.values() if isinstance(value, PackedContent) else None


# Unpacking takes the crawl's process as long as all of Scrapy's work on a page, so it is done on first access.
setattr(Extraction, "content", property(_unpacked, _content.__set__))  # noqa: B010 (mypy)


def _clean(record: Breadcrumb | Metadata | Extraction, *names: str) -> None:
    """Remove control characters from the strings of a record. A custom fallback may return any text."""
    for name in names:
        value = getattr(record, name)
        if isinstance(value, str) and has_controls(value):
            object.__setattr__(record, name, without_controls(value))


def nothing(
    url: str, reason: FallbackReason | None, error: str | None, fallback: Literal["none", "empty"] = "none"
) -> Extraction:
    """Return an extraction without content.

    With the fallback ``none``, the fields of the page's items are not set. With ``empty``, they are set to empty texts.
    """
    if fallback == "none":
        return Extraction(url, None, None, None, None, "fallback:none", reason, error)
    return Extraction(url, None, "", "", "", "fallback:empty", reason, error, content=())
