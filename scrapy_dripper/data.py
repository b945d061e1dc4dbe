"""The input and the output of an extraction, as plain, frozen, picklable dataclasses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from scrapy_dripper.characters import without_controls, words_of
from scrapy_dripper.checks import short

if TYPE_CHECKING:
    from scrapy_dripper.config import Config

logger = logging.getLogger(__name__)
T = TypeVar("T")


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
    """The model found no main content on the page. ``DRIPPER_EMPTY`` says whether the fallback runs."""
    JS_SHELL = "js_shell"
    """A script fills the page after it loads. The text, if any, comes from the data embedded in the page."""
    ENGINE_ERROR = "engine_error"
    """The engine raised an exception or returned an invalid answer for this page."""
    ENGINE_LOST = "engine_lost"
    """The engine cannot label any page: it has failed on several in a row and on a page of two blocks, or its model can
    no longer be loaded. It is retried every 30 seconds."""
    OVERFLOW = "overflow"
    """The model returned NaN or infinity for this page: a number was too large for its data type."""
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


class SiteData(NamedTuple):
    """What goes with a page between a crawl and its workers: with a document, what is known about its host; with an
    extraction, what can be learnt from it. Each is None without a site memory, or without templates.
    """

    memory: bytes | None = None
    """Of :meth:`SiteMemory.repeated <scrapy_dripper.sites.memory.SiteMemory.repeated>`, or for its ``learn``."""
    templates: bytes | None = None
    """Of :meth:`Templates.rules <scrapy_dripper.sites.templates.Templates.rules>`, or for its ``learn``."""


@dataclass(frozen=True, slots=True)
class Document:
    """An HTML document before parsing.

    ``html`` is text if it has been decoded already, bytes otherwise. ``charset`` is the charset of the Content-Type
    header, if there is one; it is only used for bytes. ``config`` replaces the extractor's options for this document.
    Other buffers become bytes, and a URL of any type becomes text. Raise TypeError if ``html`` is neither, or
    if ``config`` is a dict.
    """

    html: str | bytes
    url: str = ""
    charset: str | None = None
    config: Config | None = None
    site: SiteData = field(default=SiteData(), repr=False)

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
        if isinstance(self.config, Mapping):
            raise TypeError(
                'config must be a Config, as in Document(html, config=Config(fallback="empty")), not a dict'
            )


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """One step of the path from the front page of a site to a page."""

    name: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a page. A value is None or empty if the page does not give it.

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
    tags: tuple[str, ...] = ()
    """The keywords that the page gives itself."""
    categories: tuple[str, ...] = ()
    """The sections of the site that it is in."""
    license: str | None = None
    """URL or name of the licence of its content."""

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
        values = asdict(self) | {name: list(getattr(self, name)) for name in _LISTS}
        values["breadcrumbs"] = [asdict(one) for one in self.breadcrumbs]
        return {"title": values.pop("title"), "author": self.author, "date": self.date, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Metadata:
        """Return the metadata of :meth:`as_dict`. Raise TypeError, ValueError or KeyError for other values."""
        known = {field.name: values[field.name] for field in fields(cls)}
        known |= {name: tuple(known[name]) for name in _LISTS}
        known["breadcrumbs"] = tuple(Breadcrumb(one["name"], one["url"]) for one in known["breadcrumbs"])
        listed = [value for name in _LISTS for value in known[name]]
        single = (value for name, value in known.items() if name not in (*_LISTS, "breadcrumbs"))
        steps = (value for one in known["breadcrumbs"] for value in (one.name, one.url))
        for value in (*listed, *(one for one in (*single, *steps) if one is not None)):
            if not isinstance(value, str):
                raise TypeError(f"expected a string (got {type(value).__name__})")
        return cls(**known)

    def without_controls(self) -> Metadata:
        """Return the metadata without control characters."""
        return Metadata(**{one.name: _without_controls(getattr(self, one.name)) for one in fields(self)})


_LISTS = ("authors", "tags", "categories")
"""The values of metadata that are tuples of texts."""


class _NotAsked:
    """Stands for metadata that was not asked for. It is false, and its values raise AttributeError."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_NOT_ASKED)

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{_NOT_ASKED}>"

    def __reduce__(self) -> str:
        return "UNREAD"


_NOT_ASKED = (
    "the metadata of the page was not read: in a callback, ask for it with extract(response, metadata=True); an "
    "Extractor reads it with Config(metadata_field='metadata'), and scrapy_dripper.extract always does"
)
UNREAD = cast("Metadata", _NotAsked())
"""The metadata of an extraction whose options do not ask for it."""


@dataclass(frozen=True, slots=True, repr=False)
class Extraction:
    """The result of extracting one page.

    ``main_html``, ``markdown`` and ``text`` are None only if the source is ``fallback:none``. ``labels`` and
    ``probabilities`` have one entry per block, in document order; they are empty if no engine answered, or one that
    labels no blocks. No string but ``url`` holds control characters
    (:func:`~scrapy_dripper.characters.without_controls`).
    """

    url: str
    title: str | None
    """The headline of the page, without the name of the site: the title of its metadata. None if it has none."""
    main_html: str | None
    markdown: str | None
    text: str | None
    source: str
    """The name of the engine, which can be a method, ``template``, or ``fallback:NAME``."""
    fallback_reason: FallbackReason | None = None
    error: str | None = None
    """A human-readable message that explains ``fallback_reason``, or why the page is truncated; None without either."""
    labels: tuple[bool, ...] = ()
    """True for each block that is main content."""
    probabilities: tuple[float, ...] = ()
    """Probability that each block is main content, 0 to 1."""
    truncated: bool = False
    """True if only the first part of the page was processed: an oversize page with ``DRIPPER_OVERSIZE = "truncate"``,
    or a page that is too large for its fallback."""
    page_type: str | None = None
    """The type of the page: ``article``, ``listing``, ``forum``, ... None if the engine does not predict it, and for
    fallbacks."""
    quality: float | None = None
    """Expected word F1 of this extraction, 0 to 1; None if it is empty or the engine does not predict it, and for
    fallbacks."""
    metadata: Metadata | None = None
    """None if it cannot be read. If nothing asks for it (``DRIPPER_METADATA_FIELD``, front matter, ``metadata=True`` in
    a callback), it is false, and its values raise AttributeError with what to do."""
    content: list[dict[str, Any]] | None = None
    """The content list as plain JSON values, of which :func:`~scrapy_dripper.output.content_json.from_json` makes
    items; None unless ``DRIPPER_CONTENT_FIELD`` names a field."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The other fields of the output that were asked for, as plain JSON values by name (:attr:`chunks`,
    :attr:`links`). Each is an attribute as well."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """More about the extraction, as plain JSON values. A key is missing if its value is not known:

    * ``blocks``: number of blocks on the page, labelled or not;
    * ``limit``: the setting with the limit that the page exceeds, such as ``DRIPPER_LIMITS["blocks"]``;
    * ``page_type_probability``: probability of ``page_type``, 0 to 1;
    * ``rules``: number of blocks decided by ``DRIPPER_RULES``, by kind (``whole``, ``keep``, ``drop``), if rules apply;
    * ``work``: the engine's own counters for this page; see ``docs/reference/stats.md``;
    * ``overruled``: names of the steps after the model that changed nothing on this page, because they would have
      removed text of which the model was sure, such as ``short_page``, ``structures``, ``footnotes``, ``duplicates``
      or ``hidden``;
    * ``missing``: the kinds of facts that the page declares and shows, and of which more than half are not in the text:
      ``ingredient``, ``step``, ``question``, ``answer`` or ``body``. It is checked whatever labelled the page;
    * ``failed``: the forms that were asked for in addition and could not be made, or would exceed
      ``DRIPPER_LIMITS["output"]``: ``content``, ``cards``, ``links``, ``chunks``, ``metadata``,
      ``front_matter``, ``fingerprints``, the marks between ``posts``, or the check of ``facts``. Nothing else of the
      extraction is lost for it;
    * ``removed``: the numbers of the blocks that ``sore`` has removed, counted from 0, by reason;
    * ``repeated``: number of main blocks that were left out because other pages of the site have them;
    * ``template``: ``answered`` if a template has labelled the page, or why the model was asked: a value of
      :class:`~scrapy_dripper.sites.Outcome`;
    * ``content_hash``, ``simhash``: fingerprints of the text, if ``DRIPPER_META_FIELD`` names a field;
    * ``milliseconds``: processing time of this page, including its share of the batch's model call.
    """
    site: SiteData = field(default=SiteData(), repr=False)

    def __repr__(self) -> str:
        """Return a line with the title, the source, and how much was extracted how well."""
        by = self.source if self.fallback_reason is None else f"{self.source} ({self.fallback_reason})"
        words = len(words_of(self.text or self.markdown or ""))
        size = "nothing" if self.is_empty else "1 word" if words == 1 else f"{words:,} words"
        quality = "" if self.quality is None else f", quality {self.quality:.2f}"
        return f"Extraction({short(self.title)}, {by}, {size}{quality})"

    def _repr_markdown_(self) -> str | None:
        """Return what a notebook shows: the Markdown; None, and so the line of ``repr``, if there is none.

        Notebooks take front matter for a heading, and two prices for a formula, even if their signs are escaped.
        """
        front, body = "", self.markdown
        if not body:
            return None
        if body.startswith("---\n") and not body.startswith("---\n\n"):
            front, _, body = body[4:].partition("\n---\n\n")
            front = f"```yaml\n{front}\n```\n\n"
        if "$" in body and self.content is not None and "'type': 'formula'" not in str(self.content):
            if "`" not in body:
                body = body.replace("\\$", "$").replace("$", "&#36;")
            body = f'<div class="mathjax_ignore tex2jax_ignore">\n\n{body}\n\n</div>'
        return front + body

    def __getattr__(self, name: str) -> Any:
        if name != "extra" and name in self.extra:
            return self.extra[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def chunks(self) -> list[dict[str, Any]] | None:
        """The main content split at its headings (:class:`~scrapy_dripper.output.chunks.Chunk`), as plain JSON values;
        None unless ``DRIPPER_CHUNKS_FIELD`` names a field."""
        return self.extra.get("chunks")

    @property
    def links(self) -> list[dict[str, str]] | None:
        """The links of the main content, each with ``url`` and ``text``; None unless ``DRIPPER_LINKS_FIELD`` names a
        field."""
        return self.extra.get("links")

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
        if self.fallback_reason is FallbackReason.TIMEOUT:
            return "DRIPPER_TIMEOUT"
        return self.details.get("limit")

    def meta(self) -> dict[str, Any]:
        """Return the dict that ``DRIPPER_META_FIELD`` puts on items, as plain JSON values."""
        known = self.details
        failed = list(known.get("failed", []))
        made = "simhash" in known or "fingerprints" in failed
        prints = known if made else attempt("fingerprints", lambda: fingerprints(self.text), failed) or {}
        return {
            "source": self.source,
            "fallback_reason": self.fallback_reason.value if self.fallback_reason else None,
            "error": self.error,
            "limit": self.limit,
            "confidence": _rounded(self.confidence),
            "page_type": self.page_type,
            "page_type_probability": _rounded(known.get("page_type_probability")),
            "quality": _rounded(self.quality),
            "blocks": known.get("blocks", 0),
            "main_blocks": self.main_blocks,
            "template": known.get("template"),
            "rules": known.get("rules"),
            "overruled": known.get("overruled", []),
            "missing": known.get("missing", []),
            "failed": failed,
            "truncated": self.truncated,
            "content_hash": prints.get("content_hash"),
            "simhash": prints.get("simhash"),
            "milliseconds": round(known.get("milliseconds", 0.0), 2),
        }

    def without_controls(self) -> Extraction:
        """Return a copy without control characters. The content list is not changed."""
        return replace(
            self,
            title=_without_controls(self.title),
            main_html=_without_controls(self.main_html),
            markdown=_without_controls(self.markdown),
            text=_without_controls(self.text),
            error=_without_controls(self.error),
            metadata=self.metadata and self.metadata.without_controls(),
        )

    def with_details(self, **details: Any) -> Extraction:
        """Return a copy with some details added or replaced."""
        return replace(self, details={**self.details, **details})


def _without_controls(value: Any) -> Any:
    """Return a value of metadata without control characters. Values of other types stay as they are."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, Breadcrumb):
        return Breadcrumb(_without_controls(value.name), _without_controls(value.url))
    return tuple(map(_without_controls, value)) if isinstance(value, tuple) else value


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def at_form(form: str | None) -> None:
    """Do nothing before a form is made, and after it, with None. A worker process replaces this function by one that
    tells the crawl, and raises :exc:`LeftOutError` for a form that has stopped a worker before.
    """


class LeftOutError(Exception):
    """A form is not made, because it has stopped a worker."""


def attempt(form: str, make: Callable[[], T], failed: list[str]) -> T | None:
    """Return a form of the output that was asked for in addition. If it cannot be made, add its name to ``failed``, and
    return None: an extraction keeps what it has, and names what failed.
    """
    try:
        at_form(form)
        return make()
    except Exception:  # includes MemoryError and RecursionError
        if form not in failed:
            failed.append(form)
        logger.debug("cannot make the form %(form)s of a page", {"form": form}, exc_info=True)
        return None
    finally:
        at_form(None)


def fingerprints(text: str | None) -> dict[str, str]:
    """Return the fingerprints of a text, by their names in :attr:`Extraction.details`."""
    if text is None:
        return {}
    from scrapy_dripper.fingerprint import content_hash, simhash  # loads OpenSSL, which most crawls do not need

    return {"content_hash": content_hash(text), "simhash": simhash(text)}


def nothing(
    url: str, reason: FallbackReason | None, error: str | None, fallback: Literal["none", "empty"] = "none"
) -> Extraction:
    """Return an extraction without content.

    With the fallback ``none``, the fields of the page's items are not set. With ``empty``, they are set to empty texts.
    """
    error = error and without_controls(error)
    if fallback == "none":
        return Extraction(url, None, None, None, None, "fallback:none", reason, error)
    return Extraction(url, None, "", "", "", "fallback:empty", reason, error)


_VALUES = [option.name for option in fields(Extraction) if option.name != "site"]
STRINGS = ("title", "main_html", "markdown", "text", "source", "error", "page_type")
"""The values of an extraction that are texts, apart from its URL."""


def to_plain(extraction: Extraction) -> dict[str, Any]:
    """Return an extraction as plain values, without what the crawl learns from it. Raise what :func:`from_plain`
    raises, because a user's fallback may return anything.
    """
    about = extraction.metadata
    metadata: dict[str, Any] = {"metadata": False if about is UNREAD else about and about.as_dict()}
    checked = from_plain({name: getattr(extraction, name) for name in _VALUES} | metadata)
    return {name: getattr(checked, name) for name in _VALUES} | metadata


def from_plain(values: Mapping[str, Any]) -> Extraction:
    """Return the extraction of :func:`to_plain`, also after JSON. Raise ValueError, TypeError, KeyError or
    AttributeError for other values.
    """
    found = {name: values[name] for name in _VALUES}
    for name in ("url", *STRINGS):
        if not isinstance(found[name], str) and (found[name] is not None or name in ("url", "source")):
            raise TypeError(f"expected a string as {name} (got {short(found[name])})")
    some = [] if found["content"] is None else found["content"]
    if not isinstance(some, list) or not all(isinstance(one, dict) for one in some):
        raise TypeError(f"expected a list of dicts as content (got {short(some)})")
    if not isinstance(found["extra"], Mapping):
        raise TypeError(f"expected a dict as extra (got {short(found['extra'])})")
    if len(found["labels"]) != len(found["probabilities"]):
        raise ValueError(
            f"expected {len(found['labels'])} probabilities, one per label (got {len(found['probabilities'])})"
        )
    reason, quality, metadata = found["fallback_reason"], found["quality"], found["metadata"]
    return Extraction(
        **found
        | {
            "fallback_reason": None if reason is None else FallbackReason(reason),
            "labels": tuple(map(bool, found["labels"])),
            "probabilities": tuple(map(float, found["probabilities"])),
            "truncated": bool(found["truncated"]),
            "quality": None if quality is None else float(quality),
            "metadata": _metadata(metadata),
            "extra": dict(found["extra"]),
            "details": _details(found["details"]),
        }
    )


def _metadata(values: Any) -> Metadata | None:
    if values is False:
        return UNREAD
    return None if values is None else Metadata.from_dict(values)


def _details(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of an extraction. Raise ValueError, TypeError or AttributeError if the crawl cannot count
    them.
    """
    details = dict(values)
    for name in ("rules", "work"):
        if details.get(name) is not None:
            details[name] = {key: int(count) for key, count in details[name].items()}
    if details.get("removed") is not None:
        details["removed"] = {key: [int(block) for block in blocks] for key, blocks in details["removed"].items()}
    for name in ("overruled", "missing", "failed"):
        if not all(isinstance(one, str) for one in details.get(name, [])):
            raise TypeError(f"expected a list of names as {name}")
    return details
