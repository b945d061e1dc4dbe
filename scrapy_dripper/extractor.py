"""The extraction pipeline: documents in, extractions out, with a worker for pages that might block the process.

This module does not depend on Scrapy.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from scrapy_dripper.checks import FALLBACKS, LANGUAGE_MODELS, LONGEST_VALUE, METHODS, did_you_mean, is_method, short
from scrapy_dripper.choose import REPEATED, Choice, ScoredPage, choose
from scrapy_dripper.choose.short_pages import is_menu, shows_prose
from scrapy_dripper.choose.user_rules import marks
from scrapy_dripper.config import OPTION_NAMES, OUTPUT_FIELDS, Config, check_methods
from scrapy_dripper.data import SUSPECT, UNREAD, Document, Extraction, FallbackReason, Metadata, SiteData, attempt
from scrapy_dripper.declared.schema_org import missing
from scrapy_dripper.derived import measure, named_failures, naming, with_derived, with_front_matter
from scrapy_dripper.engines import load_engine, profile_of
from scrapy_dripper.engines.base import Engine, EngineError, Labels, checked, quality_of
from scrapy_dripper.output import NOTHING, write
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.page import NOT_A_PAGE, Over
from scrapy_dripper.sites import Hosts
from scrapy_dripper.structures.items import Items

if TYPE_CHECKING:
    from scrapy_dripper.sites.templates import TemplateLabels
    from scrapy_dripper.workers.pool import Pool

logger = logging.getLogger(__name__)

NODES_TOGETHER = 60_000
"""How many elements to hold in memory as trees before their pages are finished: about 50 ordinary pages."""
DOCUMENTS_TOGETHER = 256
"""How many documents to hold before they are finished. Those that cannot be read have no elements."""


_NO_BLOCKS = Labels(np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.bool_))
"""The labels of a page without blocks, such as a page that only has formulas for a script to draw. The engine is not
asked about it."""
TEMPLATE = "template"
"""The source of the labels of a site's template."""
_FOUND_NOTHING = "the model found no main content"
_ONLY_MENUS = "the model found only menus in the first part of a page that is too large"
_NO_MEMORY = Over("out of memory; in a worker process, DRIPPER_WORKER_MEMORY sets the limit", "DRIPPER_WORKER_MEMORY")


@dataclass(frozen=True, slots=True, eq=False)
class _Extracted:
    """A worker process has extracted the document."""

    extraction: Extraction


@dataclass(frozen=True, slots=True, eq=False)
class _ByMethod:
    """A method is to extract the document, which is not read here."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class _Unread:
    """The document has no page."""

    error: PageError


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """The document has a page. Unless that has no blocks, it is then labelled, and there is a choice."""

    page: Page
    template: TemplateLabels | None = None
    """What the templates of its host say."""
    labels: Labels | EngineError = _NO_BLOCKS
    choice: Choice | None = None


_Found: TypeAlias = "_Extracted | _ByMethod | _Unread | _Read"


@dataclass(slots=True, eq=False)
class _Pending:
    """A document on its way from reading to an extraction."""

    document: Document
    """It has options: its own, or those of the extractor."""
    found: _Found
    seconds: float
    """The time that it has taken so far."""

    @property
    def config(self) -> Config:
        assert self.document.config is not None
        return self.document.config

    @property
    def read(self) -> _Read | None:
        """What is known of the page of the document, if it has blocks."""
        return self.found if isinstance(self.found, _Read) and len(self.found.page.blocks) else None


class Extractor:
    """Extract the main content of pages in this process::

        with Extractor() as extractor:
            [extraction] = extractor.extract([html])

    Pages that might block this process or exhaust its memory, because they are large or a user's selectors apply to
    them, are extracted in a worker process within ``DRIPPER_TIMEOUT``, unless ``DRIPPER_PROCESSES`` is 0. It is started
    when it is needed, and :meth:`close` ends it.

    The constructor loads the engine. It raises :exc:`~scrapy_dripper.engines.base.ModelError` if the engine cannot be
    loaded, and :exc:`~scrapy_dripper.config.ConfigError` if the fallback cannot be imported. An extractor can be used
    by one thread at a time.

    In a crawl, it lives in :class:`child.Pages <scrapy_dripper.child.Pages>`, in a worker process, or in
    :class:`crawl.batcher.InProcess <scrapy_dripper.crawl.batcher.InProcess>`.
    """

    def __init__(
        self,
        config: Config | None = None,
        engine: Engine | str | None = None,
        *,
        hosts: Hosts | None = None,
        watch: Callable[[Document | None], None] | None = None,
    ) -> None:
        """``engine`` is an engine object, or a name or dotted path as in ``DRIPPER_ENGINE``.

        By default, the configuration names the engine. A worker process can only load an engine by name or dotted
        path, so pages for an engine object are never sent there.

        ``hosts`` is what is known about sites; by default, the extractor learns as configured. ``watch`` is called
        before each step with the document that it processes, or None if it processes a whole batch. A caller can use it
        to tell a batch of heavy pages, which makes progress, from one that is stuck.
        """
        if config is not None and not isinstance(config, Config):
            raise TypeError(f"Extractor takes a Config, as in Extractor({_as_config(config)}), not {short(config)}")
        self.config = config or Config()
        self._closed = False
        if isinstance(engine, str):
            self.config, engine = replace(self.config, engine=engine), None
        check_methods(self.config)
        self._method = self.config.engine if engine is None and self.config.engine in METHODS else None
        measure(self.config)  # its tokenizer may be missing
        self._watch = watch
        self._hosts = hosts or Hosts.of(self.config)
        self._worker = OneWorker(self.config, local_engine=engine is not None)
        try:
            self.engine = engine or load_engine(self.config)
        except BaseException:
            self.close()
            raise
        # Other engines may wait for seconds, in which other threads would pile up garbage.
        self._pause = _without_collector if self.engine.name == "tagger" else nullcontext

    def extract(self, documents: Iterable[Document | str | bytes]) -> list[Extraction]:
        """Return one extraction per document, in order. No document makes this method raise.

        If the model cannot process a document, the configured fallback does, and the extraction says why. Raise
        TypeError if there is no list around a document, RuntimeError after :meth:`close`, and ValueError for a bare
        text that is the name of a file or a URL.
        """
        if isinstance(documents, (str, bytes, bytearray, memoryview, Document, Mapping)) or not hasattr(
            documents, "__iter__"
        ):
            raise TypeError(
                "Extractor.extract takes a list of pages, as in [page] = extractor.extract([html]); for one page, "
                f"there is scrapy_dripper.extract(html, url=...) (got {short(documents)})"
            )
        if self._closed:
            raise RuntimeError("the extractor is closed, so it cannot extract: make another Extractor")
        extractions: list[Extraction] = []
        waiting = iter(documents)
        while True:
            with self._pause():
                # The pages of earlier documents are not held while others are read.
                made = [self._write(one) for one in self._label(self._read(waiting))]
            if not made:
                return extractions
            extractions += made

    def fall_back(self, document: Document, reason: FallbackReason, error: str | None = None) -> Extraction:
        """Run the configured fallback on a document and return its extraction. Never raises."""
        from scrapy_dripper.fallback import fall_back  # for few pages

        self._begin(document)
        config = document.config or self.config
        return self._worker.fall_back(document, config, reason, error) or fall_back(document, config, reason, error)

    def close(self) -> None:
        """Release the engine's memory and threads, and end the worker process if there is one."""
        self._closed = True
        try:
            if "engine" in vars(self):
                self.engine.close()
        finally:
            self._worker.close()

    def __enter__(self) -> Extractor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, document: Document | None) -> None:
        if self._watch is not None:
            self._watch(document)

    # ------------------------------------------------------------------ read
    def _read(self, documents: Iterator[Document | str | bytes]) -> list[_Pending]:
        """Read the next documents, as many as may be held in memory together. Return an empty list at the end."""
        size = self.config.batch_size if self._hosts.templates is not None else DOCUMENTS_TOGETHER
        some: list[_Pending] = []
        nodes = 0
        for one in islice(documents, size):
            document = one if isinstance(one, Document) else Document(_page_itself(one))
            start = time.perf_counter()
            found = self._found(document)
            some.append(_Pending(self._with_options(document), found, time.perf_counter() - start))
            nodes += len(found.page.tree.nodes) if isinstance(found, _Read) else 0
            if nodes > NODES_TOGETHER:
                break
        return some

    def _with_options(self, document: Document) -> Document:
        return document if document.config is not None else replace(document, config=self.config)

    def _found(self, document: Document) -> _Found:
        """Read a document, unless a worker process or a method extracts it."""
        self._begin(document)
        config = document.config or self.config
        from_worker = self._worker.extract(self._hosts.site_document(document), config)
        if from_worker is not None:
            return _Extracted(self._with_custom_fallback(document, config, from_worker))
        named = document.config.engine if document.config else None
        if method := named if named in METHODS else self._method:
            return _ByMethod(method)
        try:
            return _Read(read(document, config, profile_of(self.engine), self.engine.limits.max_blocks))
        except PageError as error:
            return _Unread(error)
        except MemoryError:
            return _Unread(PageError(FallbackReason.OVERSIZE, *_NO_MEMORY))
        except Exception as error:  # A bad page must not stop the crawl.
            logger.debug("cannot parse %(url)s", {"url": document.url}, exc_info=True)
            return _Unread(PageError(FallbackReason.PARSE_ERROR, f"{type(error).__name__}: {error}"))

    def _with_custom_fallback(self, document: Document, config: Config, found: Extraction) -> Extraction:
        """Return what the worker has extracted, or what a custom fallback does, which only runs in this process."""
        if found.fallback_reason is None or config.fallback in FALLBACKS or found.source != "fallback:none":
            return found
        answer = self.fall_back(document, found.fallback_reason, found.error)
        answer = replace(answer, metadata=found.metadata)
        return with_front_matter(answer, found.metadata) if config.markdown.front_matter and found.metadata else answer

    # ------------------------------------------------------------------ label
    def _label(self, some: list[_Pending]) -> list[_Pending]:
        """Label the pages of some documents together, except those that a template answers."""
        asked: list[tuple[_Pending, _Read]] = []
        for one in some:
            if (read := one.read) is None:
                continue
            template = self._template_labels(one.document, read.page)
            one.found = read = replace(read, template=template)
            if template is not None and template.outcome.is_answer:
                assert template.probabilities is not None
                one.found = replace(read, labels=Labels(template.probabilities, template.main, TEMPLATE))
            else:
                asked.append((one, read))
        start = time.perf_counter()
        answers = self._answers([read.page for _, read in asked])
        per_block = (time.perf_counter() - start) / max(1, sum(len(read.page.blocks) for _, read in asked))
        for (one, read), answer in zip(asked, answers, strict=True):
            one.found = replace(read, labels=answer)
            one.seconds += per_block * len(read.page.blocks)
        return some

    def _template_labels(self, document: Document, page: Page) -> TemplateLabels | None:
        """Return what the templates of a page's host say about the page, or None if templates do not apply to it."""
        # Templates have learnt from pages with the options of the crawl. They do not apply to a page with other
        # options.
        own, learnt = ((config.favor, config.comments) for config in (page.config, self.config))
        if page.over is not None or own != learnt:
            return None
        self._begin(document)
        try:
            return self._hosts.template_labels(page, document)
        except Exception:  # the model then labels the page
            logger.debug("cannot compare %(url)s with templates", {"url": document.url}, exc_info=True)
            return None

    def _answers(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Ask the engine about pages together. If that raises, halve the batch until the failing page is alone."""
        if not pages:
            return []
        self._begin(None)
        try:
            answers = self.engine.label(pages)
            if len(answers) != len(pages):
                raise EngineError(f"{len(answers)} answers for {len(pages)} pages")
        except Exception as error:
            if len(pages) == 1:
                return [EngineError(f"{type(error).__name__}: {error}")]
            half = len(pages) // 2
            return self._answers(pages[:half]) + self._answers(pages[half:])
        return [checked(answer, page) for answer, page in zip(answers, pages, strict=True)]

    # ------------------------------------------------------------------ choose and write
    def _write(self, one: _Pending) -> Extraction:
        """Return the extraction of a document that is read and labelled, and learn from it."""
        start = time.perf_counter()
        found = one.found
        made = found.extraction if isinstance(found, _Extracted) else self._described(one, self._extraction(one))
        self._hosts.learn(one.document, made)
        return made.with_details(milliseconds=1000 * (one.seconds + time.perf_counter() - start))

    def _extraction(self, one: _Pending) -> Extraction:
        """Return the extraction of a document: from its labels, a method, its data, or the fallback."""
        made = self._made(one)
        reason = made.reason if isinstance(made, PageError) else made.fallback_reason
        if reason in (FallbackReason.NO_BLOCKS, FallbackReason.NO_MAIN):
            made = self._filled(one, made)
        if isinstance(made, PageError):
            found = self.fall_back(one.document, made.reason, str(made))
            made = found if made.limit is None else found.with_details(limit=made.limit)
        elif error := self._doubt(one, made):
            found = self.fall_back(one.document, FallbackReason.NO_MAIN, error)
            made = made if found.is_empty else found
        if one.read is None:
            return made
        page, failed, text = one.read.page, named_failures(made), made.text
        facts = () if text is None else page.facts
        lost = attempt("facts", lambda: missing(facts, page.blocks.text, text or ""), failed) or ()
        return naming(made, failed).with_details(blocks=len(page.blocks), missing=list(lost))

    def _made(self, one: _Pending) -> Extraction | PageError:
        """Return the extraction of a page from its labels, or that of a method, or the reason why the fallback is to
        extract the document.
        """
        found = one.found
        if isinstance(found, _Unread):
            return found.error
        self._begin(one.document)
        try:
            if isinstance(found, _ByMethod):
                from scrapy_dripper.fallback import by_method  # for few pages

                return by_method(found.name, one.document, one.config)
            return self._chosen(one)
        except EngineError as error:
            return PageError(error.reason, str(error))
        except PageError as error:
            return PageError(error.reason, str(error), error.limit)  # the caught one keeps the tree in memory
        except MemoryError:
            return PageError(FallbackReason.OVERSIZE, *_NO_MEMORY)
        except Exception as error:
            logger.debug("cannot extract %(url)s", {"url": one.document.url}, exc_info=True)
            reason = FallbackReason.ENGINE_ERROR if isinstance(found, _ByMethod) else FallbackReason.OUTPUT_ERROR
            return PageError(reason, f"{type(error).__name__}: {error}")

    def _chosen(self, one: _Pending) -> Extraction:
        """Return the extraction of a page from its labels. Raise the error of the engine if there are none."""
        assert isinstance(one.found, _Read)
        page, labels, document = one.found.page, one.found.labels, one.document
        if isinstance(labels, EngineError):
            raise labels
        ruled = marks(page, page.config.rules)
        repeated = self._hosts.repeated(page, document) if page.config.site_memory else None
        choice = choose(ScoredPage(page, labels, ruled, None if repeated is None else repeated.among))
        one.found = replace(one.found, choice=choice)
        extraction, items = self._composed(document, labels, choice)
        extraction = extraction.with_details(
            rules=ruled and ruled.blocks, repeated=choice.taken_by(REPEATED), overruled=list(choice.overruled)
        )
        extraction = with_derived(extraction, items, document, page.config, choice)
        return replace(extraction, site=SiteData(repeated.packed_hashes(choice.by_page) if repeated else None))

    def _composed(self, document: Document, labels: Labels, choice: Choice) -> tuple[Extraction, Items | None]:
        """Return the extraction of a page, given what is written of it, and its content list; None if that is too
        long. Errors of the writers propagate.
        """
        page, main, page_type = choice.scored.page, choice.main, choice.scored.page_type
        # "Nothing is main" is a valid answer, and a better one than a fallback's (docs/reference/fallback.md).
        nothing = not main.any() and len(page.blocks) > 0
        failed: list[str] = []
        posts = attempt("posts", lambda: choice.posts, failed)
        wanted = page.config.content_field is not None and posts is not None
        cards = attempt("cards", lambda: choice.cards, failed) if wanted else None
        size = len(document.html)
        written = NOTHING if nothing else write(page, choice.mask, page.config, size, posts or (), cards or ())
        if not len(page.blocks) and not (written.text or written.markdown):
            raise PageError(FallbackReason.NO_BLOCKS, "no visible text, and formulas that cannot be read")
        over = _exceeded(page, labels, written.truncated)
        extraction = Extraction(
            url=document.url,
            title=page.headline,
            main_html=written.main_html,
            markdown=written.markdown,
            text=written.text,
            source=labels.source or self.engine.name,
            fallback_reason=FallbackReason.NO_MAIN if nothing else None,
            error=over and over.problem,
            labels=tuple(main.tolist()),
            probabilities=tuple(labels.probabilities.tolist()),
            truncated=page.over is not None or labels.truncated or written.truncated,
            page_type=page_type,
            quality=quality_of(labels, choice.by_page),
            details={
                "blocks": len(main),
                "page_type_probability": labels.page_types.get(page_type) if page_type else None,
                "work": {str(name): int(value) for name, value in labels.work.items()},
                "limit": over and over.setting,
            },
        )
        return naming(extraction, failed), written.content

    def _doubt(self, one: _Pending, made: Extraction) -> str | None:
        """Return why the fallback is to extract a page on which the engine found nothing, or only menus in its first
        part (``DRIPPER_EMPTY``); None if it is not to.
        """
        config, nothing = one.config, made.fallback_reason is FallbackReason.NO_MAIN
        if config.empty != "auto" or _is_settled(made):
            return _FOUND_NOTHING if nothing and config.empty == "fallback" else None
        if nothing and made.source in LANGUAGE_MODELS:
            return _FOUND_NOTHING
        choice = one.read.choice if one.read else None
        if choice is None or not made.labels:
            return None
        if made.truncated and config.fallback != "html" and is_menu(choice.scored, choice.main):
            return _ONLY_MENUS
        return _FOUND_NOTHING if nothing and shows_prose(choice.scored) else None

    def _filled(self, one: _Pending, made: Extraction | PageError) -> Extraction | PageError:
        """Return the article in the data of a page that a script would fill. Return other pages as they are.

        If the data hold none, the page has the reason ``js_shell``.
        """
        from scrapy_dripper.fallback.shell import fill_shell  # for few pages

        self._begin(one.document)
        try:
            shell = fill_shell(one.document, one.config)
            shell = shell and with_derived(shell, None, one.document, one.config)
        except Exception:  # the page is then treated as if it had no data
            logger.debug("cannot read the data of %(url)s", {"url": one.document.url}, exc_info=True)
            return made
        if shell is None:
            return made
        if isinstance(made, PageError):
            return PageError(FallbackReason.JS_SHELL, shell.error or "") if shell.is_empty else shell
        if shell.is_empty:
            # What the page shows is its frame, which says nothing about its type.
            bare = made.with_details(page_type_probability=None)
            return replace(bare, fallback_reason=shell.fallback_reason, error=shell.error, page_type=None, quality=None)
        return shell.with_details(rules=made.details.get("rules"))

    def _described(self, one: _Pending, made: Extraction) -> Extraction:
        """Add to an extraction the page's metadata and front matter, as configured, and what templates learn."""
        read = one.read
        if read and read.template and read.choice and isinstance(read.labels, Labels) and not read.labels.truncated:
            made = made.with_details(template=read.template.outcome.value)
            made = replace(made, site=made.site._replace(templates=read.template.example(read.choice.by_page)))
        if not one.config.reads_metadata:
            return replace(made, metadata=UNREAD)
        if made.fallback_reason in NOT_A_PAGE:
            return made
        failed = named_failures(made)
        found = attempt("metadata", lambda: self._metadata(one, made.text or ""), failed)
        made = naming(replace(made, metadata=found), failed)
        return with_front_matter(made, found or Metadata()) if one.config.markdown.front_matter else made

    def _metadata(self, one: _Pending, text: str) -> Metadata:
        """Return the metadata of a document with this main content. Errors propagate."""
        found = one.found.page.metadata if isinstance(one.found, _Read) else None
        if found is None:
            from scrapy_dripper.fallback import metadata  # for few pages

            found = metadata(one.document, one.config)
        if found.language is None:
            from scrapy_dripper.declared.metadata import detected_language  # loaded with the metadata

            found = replace(found, language=detected_language(text))
        return found


def _as_config(value: object) -> str:
    """Return the call that makes a configuration of what is none, if it can be guessed."""
    names = {option.name for option in fields(Config)}
    if isinstance(value, dict) and value and all(name in names for name in value):
        return f"Config({', '.join(f'{name}={short(one)}' for name, one in value.items())})"
    return 'Config(fallback="empty")'


def _is_settled(made: Extraction) -> bool:
    """Return True if an answer is not doubted: rules of the user select something, or a template has answered."""
    return made.source == TEMPLATE or bool(made.details.get("rules"))


def _exceeded(page: Page, answer: Labels, cut: bool) -> Over | None:
    """Return the limit because of which an extraction has only the first part of its page, if it has."""
    if page.over is not None or not (answer.truncated or cut):
        return page.over
    if answer.truncated:
        return Over("too many tokens for the model")
    setting = 'DRIPPER_LIMITS["output"]'
    return Over(f"an output over {setting} = {page.config.limits.output} times the size of the page", setting)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the cyclic garbage collector of this process, unless it is already off.

    The collector runs after each 700 new containers and walks over all young ones. The elements of a page are thousands
    of containers that live until its output is written, and reference counts free them then. Only short work may be
    done with the collector paused, because cycles that other threads drop meanwhile stay in memory.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_url = re.compile(r"(?:[a-z][a-z\d+.-]*://|www\.|(?:[\w-]+\.)+[a-z]{2,}/)[^\s<>]+", re.I).fullmatch
_file_name = re.compile(r"[^\n\r<>]+\.(?:x?html?|mht(?:ml)?)(?:\.gz)?", re.I).fullmatch
_folder = re.compile(r"~?\.{0,2}[/\\]|[a-z]:[/\\]", re.I).match
_lock = threading.RLock()
_extractor: Extractor | None = None


def extract(html: str | bytes, url: str = "", **options: Any) -> Extraction:
    """Return the main content of one page, with its metadata, its content list and all other fields. The URL makes
    links absolute, and helps with the rest.

    The options are those of a page, by the names of the command line: ``favor="recall"``, ``front_matter=True``,
    ``max_nodes=5_000``, ``markdown={"links": "drop"}``. The first call loads the model. All threads share it, and take
    turns. A forked process loads its own at its first call. No page makes this function raise. Anything but text or
    bytes, or an unknown option, is a TypeError, a wrong value a :exc:`~scrapy_dripper.config.ConfigError`, and the name
    of a file or a URL a ValueError. For other engines, or for many pages at once, which is faster, use
    :class:`~scrapy_dripper.extractor.Extractor`.
    """
    if not isinstance(html, (str, bytes)):
        raise TypeError(
            "extract takes the HTML of one page, as text or bytes: extract(path.read_bytes()) for a file, and "
            f"extract(response.body, url=response.url) for a response (got {type(html).__name__})"
        )
    return _extract(Document(_page_itself(html), url, config=_named("extract", options)))


def fetch(url: str, **options: Any) -> Extraction:
    """Return the main content of the page at a URL, as :func:`extract` does, with the same options.

    There is one request without a browser, and redirects do not lead into private networks. After 60 seconds, or
    without a valid answer, it raises OSError (TimeoutError, URLError, HTTPError), and ValueError for a URL that is not
    one of the web. To fetch many pages politely, use a crawl.
    """
    from scrapy_dripper.egress import download  # loads ssl

    config = _named("fetch", options)
    body, found, charset = download(url, (config or _ALL_FIELDS).limits.bytes)
    return _extract(Document(body, found, charset, config))


def _extract(document: Document) -> Extraction:
    global _extractor
    with _lock:
        if _extractor is None:
            _extractor = Extractor(_ALL_FIELDS)
        return _extractor.extract([document])[0]


def _named(function: str, options: Mapping[str, Any]) -> Config | None:
    """Return the configuration of a page with options by name, or None without any."""
    if not options:
        return None
    values: dict[str, Any] = {}
    of_a_page = [name for name, one in OPTION_NAMES.items() if one.of_a_page]
    dicts = {one.of for one in OPTION_NAMES.values() if one.of}
    for name, value in options.items():
        known = OPTION_NAMES.get(name)
        if known is None and name not in dicts:
            raise TypeError(f"{function} has no option {name!r}{did_you_mean(name, of_a_page) or _SEE}")
        if name == "methods" or (known and not known.of_a_page):
            raise TypeError(f"{function} has no option {name!r}, which is not for one page: use an Extractor for it")
        if known is None or not known.of:
            values[name] = value
        elif known.of in options:
            raise TypeError(f"{function} takes {known.of!r} or {name!r}, but not both")
        else:
            values.setdefault(known.of, {})[known.option.name] = value
    config = replace(_ALL_FIELDS, **values)
    if config.engine not in (*METHODS, _ALL_FIELDS.engine):
        raise TypeError(
            f"{function} takes the engines {', '.join(METHODS)}: use an Extractor for {short(config.engine)}"
        )
    check_methods(config)
    return config


_SEE = ": the settings of the reference that are marked \u2022 are its options"
_FIELDS: dict[str, Any] = {f"{name}_field": name for name, one in OUTPUT_FIELDS.items() if one.make or one.of_metadata}
_ALL_FIELDS = Config(**_FIELDS)


def _page_itself(html: str | bytes) -> str | bytes:
    """Return the HTML of a page. Raise ValueError if it only says where the page is."""
    if not isinstance(html, (str, bytes)) or len(html) > LONGEST_VALUE:
        return html
    name = (html if isinstance(html, str) else html.decode("latin-1")).strip()
    # A sentence may end in the name of a file.
    is_name = _file_name(name) and (" " not in name or _folder(name) or os.path.isfile(name))
    if is_name or _url(name):
        place, call = "file name", "read the page first, as in extract(open(path, 'rb').read())"
        if _url(name):
            place, call = "URL", "call fetch(url), or extract(response.body, url=response.url) for a response"
        raise ValueError(
            f"extract takes the HTML of a page, and {short(html.strip())} is a {place}: {call}, or run the command "
            "`scrapy-dripper extract`"
        )
    return html


def _forget_the_extractor() -> None:
    """Leave it to the process that was forked, to which its lock and its worker process belong."""
    global _lock, _extractor
    _lock, _extractor = threading.RLock(), None


if hasattr(os, "register_at_fork"):
    # A fork waits for the page that another thread extracts, which would otherwise be copied half done.
    os.register_at_fork(
        before=lambda: _lock.acquire(),
        after_in_parent=lambda: _lock.release(),
        after_in_child=_forget_the_extractor,
    )


MOST_CHARS = 400_000
"""Number of characters or bytes up to which a page is read here. The attributes of a longer one may take minutes."""
MOST_TAGS = 40_000
"""The same for the number of ``<``, which bounds the elements. The maximum among 1,310 real pages is 22,000."""
MOST_TAGS_FOR_FALLBACK = 2_000
"""The same for a fallback. Trafilatura searches the tree repeatedly, in time proportional to elements times depth."""


class OneWorker:
    """A pool of one worker, which is started when it is needed and replaced when it ends."""

    def __init__(self, config: Config, *, local_engine: bool = False) -> None:
        """With ``local_engine``, the engine is an object of this process, so that only fallbacks can run in the worker.

        A custom fallback runs in this process, because it may be a function that no other process can import.
        """
        self._config, self._local_engine, self._warned = config, local_engine, False
        self.pool: Pool | None = None

    def extract(self, document: Document, config: Config) -> Extraction | None:
        """Return the extraction of a page that the worker is to read, or None for other pages and without a worker.

        The worker reads large pages, and pages that a user's selectors apply to. If the page needs a custom fallback,
        the extraction has the reason, and its source is ``fallback:none``.
        """
        if self._config.processes == 0:
            return None
        ruled = bool(config.rules and config.rules.of(document.url))
        if self._local_engine or not (ruled or is_large(document.html, MOST_TAGS)):
            return None
        return self._extracted(document, _without_custom_fallback(config))

    def fall_back(
        self, document: Document, config: Config, reason: FallbackReason, error: str | None
    ) -> Extraction | None:
        """Return the extraction of a fallback that is to run in the worker, or None for others."""
        if self._config.processes == 0 or not is_method(config.fallback):
            return None
        if reason not in SUSPECT and not is_large(document.html, MOST_TAGS_FOR_FALLBACK):
            return None
        return self._extracted(document, config, reason, error)

    def close(self) -> None:
        """End the worker."""
        if self.pool is not None:
            self.pool.close()

    def _extracted(
        self, document: Document, config: Config, reason: FallbackReason | None = None, error: str | None = None
    ) -> Extraction | None:
        from scrapy_dripper.workers.pool import Pool  # most programs have no such pages
        from scrapy_dripper.workers.process import StartError
        from scrapy_dripper.workers.wire import Task

        self.pool = self.pool or Pool(_without_custom_fallback(self._config), 1)
        try:
            return self.pool.extract_alone(Task(document, config, reason, error))
        except StartError as problem:
            logger.log(
                logging.DEBUG if self._warned else logging.WARNING,
                "The worker process for large pages cannot be started (%(error)s); they are extracted in this process, "
                "which a bad page can block. Set DRIPPER_PROCESSES = 0 to silence this warning.",
                {"error": problem},
            )
            self._warned = True
            return None


def _without_custom_fallback(config: Config) -> Config:
    return config if config.fallback in FALLBACKS else replace(config, fallback="none")


def is_large(html: str | bytes, most_tags: int) -> bool:
    """Return True for a document that is long or has more than a number of ``<``."""
    tags = html.count("<") if isinstance(html, str) else html.count(b"<")
    return len(html) > MOST_CHARS or tags > most_tags
