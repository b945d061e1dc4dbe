"""The extraction pipeline: documents in, extractions out. This module does not depend on Scrapy."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from scrapy_dripper.checks import short
from scrapy_dripper.config import FALLBACKS, Config
from scrapy_dripper.data import (
    Document,
    Extraction,
    FallbackReason,
    Metadata,
    TeachingExtraction,
    informed,
    known_of,
    teaching,
)
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import Engine, EngineError, Labels
from scrapy_dripper.engines.checked import checked
from scrapy_dripper.engines.rules import marks
from scrapy_dripper.engines.stages import after_engine, apply, overruled, takes_too_much
from scrapy_dripper.fallback import NOT_A_PAGE, fall_back, fill_shell, metadata
from scrapy_dripper.fallback_names import NOTHING_MEANT, check_fallback
from scrapy_dripper.garbage import paused
from scrapy_dripper.metadata import detected_language
from scrapy_dripper.metadata.facts import missing
from scrapy_dripper.output import NOTHING, write
from scrapy_dripper.output.hidden import hidden_blocks, hidden_nodes
from scrapy_dripper.output.items import Items
from scrapy_dripper.page import Page, PageError, read
from scrapy_dripper.page.errors import Over
from scrapy_dripper.page.page import Wishes
from scrapy_dripper.retrieval import measure, with_front_matter, with_retrieval
from scrapy_dripper.sites import Said, SiteMemory, Templates, digest, furniture, hashes, is_audited, places, say, unpack
from scrapy_dripper.workers.one_worker import OneWorker

logger = logging.getLogger(__name__)

NODES_TOGETHER = 60_000
"""How many elements to hold in memory as trees before their pages are finished: about 50 ordinary pages."""
HIDDEN = "hidden"
"""The name of the removal of hidden text among the overruled steps of :attr:`Extraction.details`."""
DOCUMENTS_TOGETHER = 256
"""How many documents to hold before they are finished. Those that cannot be read have no elements."""


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A document, its options, the result of reading it, and the seconds that reading took."""

    document: Document
    config: Config
    found: Page | PageError | Extraction
    seconds: float


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
    :class:`crawl.in_process.InProcess <scrapy_dripper.crawl.in_process.InProcess>`.
    """

    watch: Callable[[Document | None], None] | None = None
    """Called before each step with the document it processes, or None if it processes a whole batch.

    A caller can use it to tell a batch of heavy pages, which makes progress, from one that is stuck.
    """

    def __init__(self, config: Config | None = None, engine: Engine | str | None = None) -> None:
        """``engine`` is an engine object, or a name or dotted path as in ``DRIPPER_ENGINE``.

        By default, the configuration names the engine. A worker process can only load an engine by name or dotted
        path, so pages for an engine object are never sent there.
        """
        if config is not None and not isinstance(config, Config):
            raise TypeError(f"Extractor takes a Config, as in Extractor({_as_config(config)}), not {short(config)}")
        self.config = config or Config()
        self._closed = False
        if isinstance(engine, str):
            self.config, engine = replace(self.config, engine=engine), None
        check_fallback(self.config)
        measure(self.config)  # its tokenizer may be missing
        self._wishes = Wishes.of(self.config)
        self.memory = SiteMemory() if self.config.site_memory else None
        """The site memory, which learns from each document; None unless ``DRIPPER_SITES`` asks for it."""
        self.templates = Templates() if self.config.templates else None
        """The templates, which are learnt from earlier documents; None unless ``DRIPPER_SITES`` asks for them."""
        self._worker = OneWorker(self.config, local_engine=engine is not None)
        try:
            self.engine = engine or load_engine(self.config)
        except BaseException:
            self.close()
            raise
        # Other engines may wait for seconds, in which other threads would pile up garbage.
        self._pause = paused if self.engine.name == "tagger" else nullcontext

    def extract(self, documents: Iterable[Document | str | bytes]) -> list[Extraction]:
        """Return one extraction per document, in order. No document makes this method raise.

        If the model cannot process a document, the configured fallback does, and the extraction says why. Raise
        TypeError if there is no list around a document, and RuntimeError after :meth:`close`.
        """
        if isinstance(documents, (str, bytes, bytearray, memoryview, Document)):
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
                made = self._finish(self._chunk(waiting))
            if not made:
                return extractions
            extractions += made

    def _chunk(self, documents: Iterator[Document | str | bytes]) -> list[_Read]:
        """Read the next documents, as many as may be held in memory together. Return an empty list at the end."""
        size = self.config.batch_size if self.templates is not None else DOCUMENTS_TOGETHER
        chunk: list[_Read] = []
        nodes = 0
        for one in islice(documents, size):
            document = one if isinstance(one, Document) else Document(one)
            config = document.config or self.config
            start = time.perf_counter()
            found = self._read(document, config)
            chunk.append(_Read(document, config, found, time.perf_counter() - start))
            nodes += len(found.tree.nodes) if isinstance(found, Page) else 0
            if nodes > NODES_TOGETHER:
                break
        return chunk

    def _finish(self, chunk: Sequence[_Read]) -> list[Extraction]:
        """Label the pages of a chunk together and write their extractions."""
        said = [self._say(one) for one in chunk]
        start = time.perf_counter()
        pages = [
            one.found
            for one, what in zip(chunk, said, strict=True)
            if isinstance(one.found, Page) and len(one.found.blocks) and not (what and what.outcome.is_answer)
        ]
        answers = iter(self._label(pages))
        per_block = (time.perf_counter() - start) / max(1, sum(len(page.blocks) for page in pages))

        extractions = []
        for one, what in zip(chunk, said, strict=True):
            start = time.perf_counter()
            seconds = one.seconds
            if isinstance(one.found, Extraction):
                extraction = one.found
            else:
                n = len(one.found.blocks) if isinstance(one.found, Page) else 0
                asked = n > 0 and not (what and what.outcome.is_answer)
                labels = next(answers) if asked else _of_template(what) if what else _NO_BLOCKS
                known = one.found.metadata if isinstance(one.found, Page) else None
                extraction = self._describe(one.document, one.config, self._from_labels(one, labels, n), known)
                extraction = _with_lesson(extraction, what, labels)
                seconds += per_block * n * asked
            self._learn(one.document, extraction)
            seconds += time.perf_counter() - start
            extractions.append(extraction.with_details(milliseconds=seconds * 1000))
        return extractions

    def _say(self, one: _Read) -> Said | None:
        """Return what the templates of a page's host say about the page, or None if templates do not apply to it."""
        page, document = one.found, one.document
        known = known_of(document)[1]
        if known is None and self.templates is not None:
            known = self.templates.known(document.url)
        # Templates have learnt from pages with the options of the crawl. They do not apply to a page with other
        # options.
        if known is None or not isinstance(page, Page) or page.truncated or page.wishes != self._wishes:
            return None
        if not len(page.blocks):
            return None
        self._begin(document)
        try:
            return say(page, unpack(known), audit=is_audited(document.url))
        except Exception:  # the model then labels the page
            logger.debug("cannot compare %(url)s with templates", {"url": document.url}, exc_info=True)
            return None

    def _learn(self, document: Document, extraction: Extraction) -> None:
        """Let this extractor's own site memory and templates learn from a document, unless a crawl has supplied its
        own.
        """
        if not isinstance(extraction, TeachingExtraction):
            return
        known, templates = known_of(document)
        if self.memory is not None and known is None and extraction.digest:
            self.memory.learn(document.url, extraction.digest)
        if self.templates is not None and templates is None and extraction.lesson:
            self.templates.learn(document.url, extraction.lesson)

    def _from_labels(self, one: _Read, labels: Labels | EngineError, n: int) -> Extraction:
        """Return the extraction of a document with n blocks: from its labels, from its data, or from the fallback."""
        document, config = one.document, one.config
        made = self._write(document, config, one.found, labels) if isinstance(one.found, Page) else one.found
        if _reason(made) in (FallbackReason.NO_BLOCKS, FallbackReason.NO_MAIN):
            made = self._filled(document, config, made)
        if isinstance(made, PageError):
            found = self._fall_back(document, config, made.reason, str(made))
            if made.limit is not None:
                found = found.with_details(limit=made.limit)
            nothing = found.is_empty and config.fallback not in NOTHING_MEANT
            if made.reason is FallbackReason.LOW_QUALITY and nothing:  # a poor text is better than none
                return self._from_labels(replace(one, config=replace(config, min_quality=None)), labels, n)
            made = found
        if n and isinstance(one.found, Page):
            lost = () if made.text is None else missing(one.found.facts, one.found.blocks.text, made.text)
            return made.with_details(blocks=n, missing=list(lost))
        return made

    def _filled(self, document: Document, config: Config, made: Extraction | PageError) -> Extraction | PageError:
        """Return the article in the data of a page that a script would fill. Return other pages as they are.

        If the data hold none, the page has the reason ``js_shell``.
        """
        shell = self._shell(document, config)
        if shell is None:
            return made
        if isinstance(made, PageError):
            return PageError(FallbackReason.JS_SHELL, shell.error or "") if shell.is_empty else shell
        if shell.is_empty:
            return replace(made, fallback_reason=shell.fallback_reason, error=shell.error)
        return shell.with_details(rules=made.details.get("rules"))

    def _shell(self, document: Document, config: Config) -> Extraction | None:
        """Return the extraction of a page that a script would fill, or None for other pages."""
        self._begin(document)
        try:
            shell = fill_shell(document, config)
            return shell and with_retrieval(shell, None, document, config)
        except Exception:  # the page is then treated as if it had no data
            logger.debug("cannot read the data of %(url)s", {"url": document.url}, exc_info=True)
            return None

    def _describe(
        self, document: Document, config: Config, extraction: Extraction, found: Metadata | None = None
    ) -> Extraction:
        """Add the page's metadata and front matter to an extraction, as configured."""
        if not config.reads_metadata or extraction.fallback_reason in NOT_A_PAGE:
            return extraction
        if found is None:
            self._begin(document)
            found = metadata(document, config)
        if found.language is None:
            found = replace(found, language=detected_language(extraction.text or ""))
        extraction = replace(extraction, metadata=found)
        return with_front_matter(extraction, found) if config.markdown.front_matter else extraction

    def fall_back(self, document: Document, reason: FallbackReason, error: str | None = None) -> Extraction:
        """Run the configured fallback on a document and return its extraction. Never raises."""
        return self._fall_back(document, document.config or self.config, reason, error)

    def _fall_back(self, document: Document, config: Config, reason: FallbackReason, error: str | None) -> Extraction:
        self._begin(document)
        found = self._worker.fall_back(document, config, reason, error)
        return found or fall_back(document, config, reason, error)

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

    def _known(self, document: Document) -> bytes | None:
        """Return what the site memory knows about the host of a document, or None without a site memory."""
        known = known_of(document)[0]
        return self.memory.known(document.url) if known is None and self.memory is not None else known

    def _informed(self, document: Document) -> Document:
        """Return a document with what the site memory and the templates know about its host."""
        if self.memory is None and self.templates is None:
            return document
        templates = known_of(document)[1]
        if templates is None and self.templates is not None:
            templates = self.templates.known(document.url)
        return informed(document, self._known(document), templates)

    def _begin(self, document: Document | None) -> None:
        if self.watch is not None:
            self.watch(document)

    def _read(self, document: Document, config: Config) -> Page | PageError | Extraction:
        """Return the page of a document, the error that prevented it, or the extraction made by a worker process."""
        self._begin(document)
        from_worker = self._worker.extract(self._informed(document), config)
        if from_worker is not None:
            return self._with_custom_fallback(document, config, from_worker)
        try:
            return read(document, config, self.engine.profile, self.engine.limits.max_blocks)
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
        if found.fallback_reason is FallbackReason.LOW_QUALITY and answer.is_empty:
            return self._worker.extract(document, replace(config, min_quality=None)) or answer
        answer = replace(answer, metadata=found.metadata)
        return with_front_matter(answer, found.metadata) if config.markdown.front_matter and found.metadata else answer

    def _label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Label pages together. If that raises, halve the batch until the failing page is alone."""
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
            return self._label(pages[:half]) + self._label(pages[half:])
        return [checked(answer, page) for answer, page in zip(answers, pages, strict=True)]

    def _write(
        self, document: Document, config: Config, page: Page, answer: Labels | EngineError
    ) -> Extraction | PageError:
        """Return the extraction of a page, or the reason why the fallback is to extract it."""
        if isinstance(answer, EngineError):
            return PageError(answer.reason, str(answer))
        self._begin(document)
        try:
            ruled = marks(page, config.rules)
            quality, least = answer.quality, config.min_quality
            if quality is not None and least is not None and quality < least and not ruled.whole:
                error = f"expected word F1 of {quality:.3f}, under DRIPPER_MIN_QUALITY = {least:g}"
                return PageError(FallbackReason.LOW_QUALITY, error, "DRIPPER_MIN_QUALITY")
            known = self._known(document) if config.site_memory else None
            taken, learnt = _compared(page, answer.main, known)
            steps = list(after_engine(page, replace(answer, main=answer.main & ~taken), ruled, config))
            main, hidden = steps[-1].main, hidden_nodes(page.tree)
            unsure = answer.overruled + overruled(steps)
            if hidden.any() and _is_the_page(page, answer, main, hidden):
                hidden, unsure = np.zeros_like(hidden), (*unsure, HIDDEN)
            extraction, items = self._compose(document, config, page, answer, main, hidden)
            more = {"rules": ruled.blocks, "repeated": int((taken & ~main).sum()), "overruled": list(unsure)}
            extraction = with_retrieval(extraction.with_details(**more), items, document, config)
            return teaching(extraction, digest=learnt)
        except PageError as error:
            return PageError(error.reason, str(error), error.limit)  # the caught one keeps the tree in memory
        except MemoryError:
            return PageError(FallbackReason.OVERSIZE, *_NO_MEMORY)
        except Exception as error:
            logger.debug("cannot write %(url)s", {"url": document.url}, exc_info=True)
            return PageError(FallbackReason.OUTPUT_ERROR, f"{type(error).__name__}: {error}")

    def _compose(
        self,
        document: Document,
        config: Config,
        page: Page,
        answer: Labels,
        main: npt.NDArray[np.bool_],
        hidden: npt.NDArray[np.bool_],
    ) -> tuple[Extraction, Items]:
        """Return the extraction of a page whose main blocks and hidden nodes are known, and its content list. Errors of
        the writers propagate.
        """
        # "Nothing is main" is a valid answer, and a better one than a fallback's (docs/reference/fallback.md).
        nothing = not main.any() and len(page.blocks) > 0
        written = NOTHING if nothing else write(page, main, config, len(document.html), hidden)
        if not len(page.blocks) and not (written.text or written.markdown):
            raise PageError(FallbackReason.NO_BLOCKS, "no visible text, and formulas that cannot be read")
        over = _exceeded(page, answer, written.truncated, config)
        extraction = Extraction(
            url=document.url,
            title=page.title,
            main_html=written.main_html,
            markdown=written.markdown,
            text=written.text,
            source=answer.source or self.engine.name,
            fallback_reason=FallbackReason.NO_MAIN if nothing else None,
            error=over and over.problem,
            labels=tuple(main.tolist()),
            probabilities=tuple(answer.probabilities.tolist()),
            truncated=page.truncated or answer.truncated or written.truncated,
            page_type=answer.page_type,
            quality=answer.quality,
            details={
                "blocks": len(main),
                "page_type_probability": answer.page_type_probability,
                "work": {str(name): int(value) for name, value in answer.work.items()},
                "limit": over and over.setting,
            },
        )
        return extraction, written.content


def _as_config(value: object) -> str:
    """Return the call that makes a configuration of what is none, if it can be guessed."""
    names = {option.name for option in fields(Config)}
    if isinstance(value, dict) and value and all(name in names for name in value):
        return f"Config({', '.join(f'{name}={short(one)}' for name, one in value.items())})"
    return 'Config(fallback="empty")'


def _reason(made: Extraction | PageError) -> FallbackReason | None:
    return made.reason if isinstance(made, PageError) else made.fallback_reason


def _exceeded(page: Page, answer: Labels, cut: bool, config: Config) -> Over | None:
    """Return the limit because of which an extraction has only the first part of its page, if it has."""
    if page.truncated or not (answer.truncated or cut):
        return page.over
    if answer.truncated:
        return Over("too many tokens for the model")
    setting = 'DRIPPER_LIMITS["output"]'
    return Over(f"an output over {setting} = {config.limits.output} times the size of the page", setting)


def _compared(page: Page, main: npt.NDArray[np.bool_], known: bytes | None) -> tuple[npt.NDArray[np.bool_], bytes]:
    """Return which main blocks are furniture, given what the site memory knows, and return the digest of the page."""
    if known is None:
        return np.zeros_like(main), b""
    found = places(page)
    return furniture(page, main, found, hashes(known)), digest(found, main)


def _is_the_page(page: Page, answer: Labels, main: npt.NDArray[np.bool_], hidden: npt.NDArray[np.bool_]) -> bool:
    """Return True if what counts as hidden is too much of a page's main text to be hidden from readers.

    However sure a model is of a block, it may be hidden: instructions for language models are prose.
    """
    after = main & ~hidden_blocks(page, hidden)
    return takes_too_much(page, answer.probabilities, main, after, sure=math.inf)


def _of_template(said: Said) -> Labels:
    """Return the labels of a page that a template has labelled."""
    # The process of a crawl with workers does not need it.
    from scrapy_dripper.engines.tagger.whole import structures_whole

    assert said.main is not None
    assert said.probabilities is not None
    p = said.probabilities
    steps = list(apply([structures_whole(said.page, p)], said.page, p, said.main))
    return Labels(p, steps[-1].main, source="template", overruled=overruled(steps))


def _with_lesson(extraction: Extraction, said: Said | None, labels: Labels | EngineError) -> Extraction:
    """Add to an extraction the outcome of the templates, and what they learn from the page."""
    if said is None or isinstance(labels, EngineError) or labels.truncated:
        return extraction
    return teaching(extraction.with_details(template=said.outcome.value), lesson=said.lesson(labels.main))


_NO_BLOCKS = Labels(np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.bool_))
"""The labels of a page without blocks, such as a page that only has formulas for a script to draw. The engine is not
asked about it. They also stand in for those of a document that is not a page, and are not read there."""


_NO_MEMORY = Over("out of memory; in a worker process, DRIPPER_WORKER_MEMORY sets the limit", "DRIPPER_WORKER_MEMORY")
