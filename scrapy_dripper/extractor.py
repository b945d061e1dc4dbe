"""The extraction pipeline: documents in, extractions out. This module does not depend on Scrapy."""

from __future__ import annotations

import gc
import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from scrapy_dripper.checks import LANGUAGE_MODELS, LONGEST_VALUE, METHODS, short
from scrapy_dripper.choose import Choice, Given, choose
from scrapy_dripper.choose.comments import posts_of
from scrapy_dripper.choose.short_pages import is_menu, shows_prose
from scrapy_dripper.choose.steps import MOST_TAKEN, TEMPLATE, overruled, stages
from scrapy_dripper.choose.user_rules import marks
from scrapy_dripper.config import FALLBACKS, Config
from scrapy_dripper.data import Document, Extraction, FallbackReason, teaching
from scrapy_dripper.declared.facts import missing, tokens
from scrapy_dripper.engines import load_engine, profile_of
from scrapy_dripper.engines.base import Engine, EngineError, Labels, checked
from scrapy_dripper.fallback import NOT_A_PAGE, by_method, fall_back, metadata
from scrapy_dripper.fallback_names import check_methods
from scrapy_dripper.output import NOTHING, write
from scrapy_dripper.output.items import Items
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.page import Over
from scrapy_dripper.retrieval import measure, with_front_matter, with_retrieval
from scrapy_dripper.sites import Hosts, Said, SiteMemory, Templates
from scrapy_dripper.workers.one_worker import OneWorker

if TYPE_CHECKING:
    from scrapy_dripper.page.cards import ListCard

logger = logging.getLogger(__name__)

NODES_TOGETHER = 60_000
"""How many elements to hold in memory as trees before their pages are finished: about 50 ordinary pages."""
DOCUMENTS_TOGETHER = 256
"""How many documents to hold before they are finished. Those that cannot be read have no elements."""


_NO_BLOCKS = Labels(np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.bool_))
"""The labels of a page without blocks, such as a page that only has formulas for a script to draw. The engine is not
asked about it."""
_FOUND_NOTHING = "the model found no main content"
_ONLY_MENUS = "the model found only menus in the first part of a page that is too large"
_NO_MEMORY = Over("out of memory; in a worker process, DRIPPER_WORKER_MEMORY sets the limit", "DRIPPER_WORKER_MEMORY")


@dataclass(slots=True, eq=False)
class _Job:
    """A document with its options, on its way from reading to an extraction."""

    document: Document
    config: Config
    found: Page | PageError | Extraction | str
    """The page, the error that prevented it, the extraction of a worker process, or the name of the method that is to
    extract the document."""
    seconds: float
    """The time that it has taken so far."""
    said: Said | None = None
    """What the templates of its host say."""
    labels: Labels | EngineError = _NO_BLOCKS

    @property
    def page(self) -> Page | None:
        """The page of the document, if it has blocks to label."""
        return self.found if isinstance(self.found, Page) and len(self.found.blocks) else None


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

    In a crawl, it lives in :class:`child.server.Pages <scrapy_dripper.child.server.Pages>`, in a worker process, or in
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
        self._hosts = hosts or Hosts(
            SiteMemory() if self.config.site_memory else None,
            Templates() if self.config.templates else None,
        )
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
                # The pages of earlier jobs are not held while others are read.
                made = [self._write(job) for job in self._label(self._read(waiting))]
            if not made:
                return extractions
            extractions += made

    def fall_back(self, document: Document, reason: FallbackReason, error: str | None = None) -> Extraction:
        """Run the configured fallback on a document and return its extraction. Never raises."""
        return self._fall_back(document, document.config or self.config, reason, error)

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
    def _read(self, documents: Iterator[Document | str | bytes]) -> list[_Job]:
        """Read the next documents, as many as may be held in memory together. Return an empty list at the end."""
        size = self.config.batch_size if self._hosts.templates is not None else DOCUMENTS_TOGETHER
        jobs: list[_Job] = []
        nodes = 0
        for one in islice(documents, size):
            document = one if isinstance(one, Document) else Document(_page_itself(one))
            config = document.config or self.config
            start = time.perf_counter()
            found = self._page(document, config)
            jobs.append(_Job(document, config, found, time.perf_counter() - start))
            nodes += len(found.tree.nodes) if isinstance(found, Page) else 0
            if nodes > NODES_TOGETHER:
                break
        return jobs

    def _page(self, document: Document, config: Config) -> Page | PageError | Extraction | str:
        """Return the page of a document, the error that prevented it, the extraction made by a worker process, or the
        name of the method that is the engine of this document.
        """
        self._begin(document)
        from_worker = self._worker.extract(self._hosts.informed(document), config)
        if from_worker is not None:
            return self._with_custom_fallback(document, config, from_worker)
        named = document.config.engine if document.config else None
        if method := named if named in METHODS else self._method:
            return method
        try:
            return read(document, config, profile_of(self.engine), self.engine.limits.max_blocks)
        except PageError as error:
            return error
        except MemoryError:
            return PageError(FallbackReason.OVERSIZE, *_NO_MEMORY)
        except Exception as error:  # A bad page must not stop the crawl.
            logger.debug("cannot parse %(url)s", {"url": document.url}, exc_info=True)
            return PageError(FallbackReason.PARSE_ERROR, f"{type(error).__name__}: {error}")

    def _with_custom_fallback(self, document: Document, config: Config, found: Extraction) -> Extraction:
        """Return what the worker has extracted, or what a custom fallback does, which only runs in this process."""
        if found.fallback_reason is None or config.fallback in FALLBACKS or found.source != "fallback:none":
            return found
        answer = fall_back(document, config, found.fallback_reason, found.error)
        answer = replace(answer, metadata=found.metadata)
        return with_front_matter(answer, found.metadata) if config.markdown.front_matter and found.metadata else answer

    # ------------------------------------------------------------------ label
    def _label(self, jobs: list[_Job]) -> list[_Job]:
        """Label the pages of some jobs together, except those that a template answers, and return the jobs."""
        for job in jobs:
            job.said = self._said(job)
            if job.said is not None and job.said.outcome.is_answer:
                job.labels = _of_template(job.said)
        asked = [(job, job.page) for job in jobs if job.page and not (job.said and job.said.outcome.is_answer)]
        start = time.perf_counter()
        answers = self._answers([page for _, page in asked])
        per_block = (time.perf_counter() - start) / max(1, sum(len(page.blocks) for _, page in asked))
        for (job, page), answer in zip(asked, answers, strict=True):
            job.labels = answer
            job.seconds += per_block * len(page.blocks)
        return jobs

    def _said(self, job: _Job) -> Said | None:
        """Return what the templates of a page's host say about the page, or None if templates do not apply to it."""
        # Templates have learnt from pages with the options of the crawl. They do not apply to a page with other
        # options.
        own, learnt = ((config.favor, config.comments) for config in (job.config, self.config))
        if job.page is None or job.page.over is not None or own != learnt:
            return None
        self._begin(job.document)
        try:
            return self._hosts.said(job.page, job.document)
        except Exception:  # the model then labels the page
            logger.debug("cannot compare %(url)s with templates", {"url": job.document.url}, exc_info=True)
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
    def _write(self, job: _Job) -> Extraction:
        """Return the extraction of a document that is read and labelled, and learn from it."""
        start = time.perf_counter()
        made = job.found if isinstance(job.found, Extraction) else self._described(job, self._extraction(job))
        self._hosts.learn(job.document, made)
        return made.with_details(milliseconds=1000 * (job.seconds + time.perf_counter() - start))

    def _extraction(self, job: _Job) -> Extraction:
        """Return the extraction of a document: from its labels, a method, its data, or the fallback."""
        assert not isinstance(job.found, Extraction)
        made = job.found if isinstance(job.found, PageError) else self._made(job, job.found)
        reason = made.reason if isinstance(made, PageError) else made.fallback_reason
        if reason in (FallbackReason.NO_BLOCKS, FallbackReason.NO_MAIN):
            made = self._filled(job, made)
        if isinstance(made, PageError):
            found = self._fall_back(job.document, job.config, made.reason, str(made))
            made = found if made.limit is None else found.with_details(limit=made.limit)
        elif error := self._doubt(job, made):
            found = self._fall_back(job.document, job.config, FallbackReason.NO_MAIN, error)
            made = made if found.is_empty else found
        if job.page is None:
            return made
        lost = () if made.text is None else missing(job.page.facts, job.page.blocks.text, made.text)
        asks = job.config.empty == "auto" and job.config.fallback != "html"  # a whole page has all facts and all menus
        if lost and made.fallback_reason is None and asks and not _is_settled(made):
            error = f"the model's answer lacks declared facts: {', '.join(lost)}"
            found = self._fall_back(job.document, job.config, FallbackReason.MISSING_FACTS, error)
            still = missing(job.page.facts, job.page.blocks.text, found.text or "")
            if set(still) < set(lost) and _share_kept(made.text or "", found.text or "") >= 1 - MOST_TAKEN:
                made, lost = found, still
        return made.with_details(blocks=len(job.page.blocks), missing=list(lost))

    def _made(self, job: _Job, found: Page | str) -> Extraction | PageError:
        """Return the extraction of a page from its labels, or that of a method, or the reason why the fallback is to
        extract the document.
        """
        if isinstance(job.labels, EngineError):
            return PageError(job.labels.reason, str(job.labels))
        self._begin(job.document)
        try:
            if isinstance(found, str):
                return by_method(found, job.document, job.config)
            return self._chosen(job, found, job.labels)
        except PageError as error:
            return PageError(error.reason, str(error), error.limit)  # the caught one keeps the tree in memory
        except MemoryError:
            return PageError(FallbackReason.OVERSIZE, *_NO_MEMORY)
        except Exception as error:
            logger.debug("cannot extract %(url)s", {"url": job.document.url}, exc_info=True)
            reason = FallbackReason.ENGINE_ERROR if isinstance(found, str) else FallbackReason.OUTPUT_ERROR
            return PageError(reason, f"{type(error).__name__}: {error}")

    def _chosen(self, job: _Job, page: Page, labels: Labels) -> Extraction:
        """Return the extraction of a page from its labels."""
        document, config = job.document, job.config
        ruled = marks(page, config.rules)
        known = self._hosts.repeated(page, document, labels.main) if config.site_memory else None
        furniture, digest = known or (None, b"")
        given = Given(page, labels.probabilities, page_type=labels.page_type, marks=ruled, furniture=furniture)
        choice = choose(given, labels.main)
        extraction, items = self._composed(job, page, labels, choice)
        extraction = extraction.with_details(
            rules=ruled and ruled.blocks,
            repeated=0 if furniture is None else int((furniture & ~choice.main).sum()),
            overruled=list(labels.overruled + choice.overruled),
        )
        return teaching(with_retrieval(extraction, items, document, config), digest=digest)

    def _composed(self, job: _Job, page: Page, labels: Labels, choice: Choice) -> tuple[Extraction, Items]:
        """Return the extraction of a page, given what is written of it, and its content list. Errors of the writers
        propagate.
        """
        main = choice.main
        # "Nothing is main" is a valid answer, and a better one than a fallback's (docs/reference/fallback.md).
        nothing = not main.any() and len(page.blocks) > 0
        posts = posts_of(page, main, labels.page_type)
        wanted = job.config.content_field is not None and not posts
        cards: list[ListCard] = []
        if wanted:
            from scrapy_dripper.page.cards import list_cards  # reads dates and names, as thread_posts does

            cards = list_cards(page, main, choice.hidden, labels.page_type)
        size = len(job.document.html)
        written = NOTHING if nothing else write(page, main, job.config, size, choice.hidden, posts, cards)
        if not len(page.blocks) and not (written.text or written.markdown):
            raise PageError(FallbackReason.NO_BLOCKS, "no visible text, and formulas that cannot be read")
        over = _exceeded(page, labels, written.truncated, job.config)
        extraction = Extraction(
            url=job.document.url,
            title=page.metadata.title,
            main_html=written.main_html,
            markdown=written.markdown,
            text=written.text,
            source=labels.source or self.engine.name,
            fallback_reason=FallbackReason.NO_MAIN if nothing else None,
            error=over and over.problem,
            labels=tuple(main.tolist()),
            probabilities=tuple(labels.probabilities.tolist()),
            truncated=page.over is not None or labels.truncated or written.truncated,
            page_type=labels.page_type,
            quality=labels.quality,
            details={
                "blocks": len(main),
                "page_type_probability": labels.page_type_probability,
                "work": {str(name): int(value) for name, value in labels.work.items()},
                "limit": over and over.setting,
            },
        )
        return extraction, written.content

    def _doubt(self, job: _Job, made: Extraction) -> str | None:
        """Return why the fallback is to extract a page on which the engine found nothing, or only menus in its first
        part (``DRIPPER_EMPTY``); None if it is not to.
        """
        config, nothing = job.config, made.fallback_reason is FallbackReason.NO_MAIN
        if config.empty != "auto" or _is_settled(made):
            return _FOUND_NOTHING if nothing and config.empty == "fallback" else None
        if nothing and made.source in LANGUAGE_MODELS:
            return _FOUND_NOTHING
        if job.page is None or not isinstance(job.labels, Labels) or not made.labels:
            return None
        given = Given(job.page, job.labels.probabilities)
        if made.truncated and config.fallback != "html" and is_menu(given, np.array(made.labels, dtype=np.bool_)):
            return _ONLY_MENUS
        return _FOUND_NOTHING if nothing and shows_prose(given) else None

    def _filled(self, job: _Job, made: Extraction | PageError) -> Extraction | PageError:
        """Return the article in the data of a page that a script would fill. Return other pages as they are.

        If the data hold none, the page has the reason ``js_shell``.
        """
        from scrapy_dripper.fallback.shell import fill_shell  # for few pages

        self._begin(job.document)
        try:
            shell = fill_shell(job.document, job.config)
            shell = shell and with_retrieval(shell, None, job.document, job.config)
        except Exception:  # the page is then treated as if it had no data
            logger.debug("cannot read the data of %(url)s", {"url": job.document.url}, exc_info=True)
            return made
        if shell is None:
            return made
        if isinstance(made, PageError):
            return PageError(FallbackReason.JS_SHELL, shell.error or "") if shell.is_empty else shell
        if shell.is_empty:
            return replace(made, fallback_reason=shell.fallback_reason, error=shell.error)
        return shell.with_details(rules=made.details.get("rules"))

    def _fall_back(self, document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
        self._begin(document)
        found = self._worker.fall_back(document, config, reason, error)
        return found or fall_back(document, config, reason, error)

    def _described(self, job: _Job, made: Extraction) -> Extraction:
        """Add to an extraction the page's metadata and front matter, as configured, and what templates learn."""
        if job.said is not None and isinstance(job.labels, Labels) and not job.labels.truncated:
            made = made.with_details(template=job.said.outcome.value)
            made = teaching(made, lesson=job.said.lesson(job.labels.main))
        if not job.config.reads_metadata or made.fallback_reason in NOT_A_PAGE:
            return made
        found = job.found.metadata if isinstance(job.found, Page) else None
        if found is None:
            self._begin(job.document)
            found = metadata(job.document, job.config)
        if found.language is None:
            from scrapy_dripper.declared.metadata import detected_language  # loaded with the metadata

            found = replace(found, language=detected_language(made.text or ""))
        made = replace(made, metadata=found)
        return with_front_matter(made, found) if job.config.markdown.front_matter else made


def _as_config(value: object) -> str:
    """Return the call that makes a configuration of what is none, if it can be guessed."""
    names = {option.name for option in fields(Config)}
    if isinstance(value, dict) and value and all(name in names for name in value):
        return f"Config({', '.join(f'{name}={short(one)}' for name, one in value.items())})"
    return 'Config(fallback="empty")'


def _is_settled(made: Extraction) -> bool:
    """Return True if an answer is not doubted: rules of the user select something, or a template has answered."""
    return made.source == TEMPLATE or bool(made.details.get("rules"))


def _share_kept(text: str, other: str) -> float:
    """Return which share of the words of a text are in another one."""
    words = Counter(tokens(text))
    return (words & Counter(tokens(other))).total() / max(1, words.total())


def _exceeded(page: Page, answer: Labels, cut: bool, config: Config) -> Over | None:
    """Return the limit because of which an extraction has only the first part of its page, if it has."""
    if page.over is not None or not (answer.truncated or cut):
        return page.over
    if answer.truncated:
        return Over("too many tokens for the model")
    setting = 'DRIPPER_LIMITS["output"]'
    return Over(f"an output over {setting} = {config.limits.output} times the size of the page", setting)


def _of_template(said: Said) -> Labels:
    """Return the labels of a page that a template has labelled."""
    assert said.main is not None
    assert said.probabilities is not None
    steps = list(stages(Given(said.page, said.probabilities), said.main, TEMPLATE))
    return Labels(said.probabilities, steps[-1].main, source=TEMPLATE, overruled=overruled(steps))


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


def extract(html: str | bytes, url: str = "") -> Extraction:
    """Return the main content of one page, with its metadata and its content list. The URL makes links absolute, and
    helps with the rest.

    The first call loads the model. All threads share it, and take turns. A forked process loads its own at its first
    call. No page makes this function raise. Anything but text or bytes is a TypeError, and the name of a file or a URL
    is a ValueError. For other options, or for many pages at once, which is faster, use
    :class:`~scrapy_dripper.extractor.Extractor`.
    """
    global _extractor
    if not isinstance(html, (str, bytes)):
        raise TypeError(
            "extract takes the HTML of one page, as text or bytes: extract(path.read_bytes()) for a file, and "
            f"extract(response.body, url=response.url) for a response (got {type(html).__name__})"
        )
    with _lock:
        if _extractor is None:
            _extractor = Extractor(Config(metadata_field="metadata", content_field="content"))
        return _extractor.extract([Document(_page_itself(html), url)])[0]


def _page_itself(html: str | bytes) -> str | bytes:
    """Return the HTML of a page. Raise ValueError if it only says where the page is."""
    if not isinstance(html, (str, bytes)) or len(html) > LONGEST_VALUE:
        return html
    name = (html if isinstance(html, str) else html.decode("latin-1")).strip()
    # A sentence may end in the name of a file.
    is_name = _file_name(name) and (" " not in name or _folder(name) or os.path.isfile(name))
    if is_name or _url(name):
        place, call = "file name", "open(path, 'rb').read()"
        if _url(name):
            place, call = "URL", "response.body, url=response.url"
        raise ValueError(
            f"extract takes the HTML of a page, and {short(html.strip())} is a {place}: "
            f"read the page first, as in extract({call}), or run the command `scrapy-dripper extract`"
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
