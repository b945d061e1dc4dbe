"""The engine ``qwen3``: turn pages into prompts with drafts, and decoded answers back into labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Engine, EngineError, EngineLostError, Labels, Limits
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.draft import Draft, drafts
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared, model_folder
from scrapy_dripper.engines.qwen3.grammar import Grammar
from scrapy_dripper.engines.qwen3.loop import Decoded, DecodeTask
from scrapy_dripper.engines.qwen3.prompt import Prompt
from scrapy_dripper.engines.qwen3.simplify import simplify
from scrapy_dripper.engines.qwen3.windows import Part, Splitter, average
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page.page import Page, Wishes


class Decodes(Protocol):
    """Runs the model, in this process or in another one."""

    @property
    def limit(self) -> int:
        """Maximum number of tokens of a prompt together with its answer."""

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels or the error of each task, in order."""

    def close(self) -> None:
        """Release the model."""


class Qwen3Engine:
    """Label blocks with a Qwen3 model whose answers are restricted to labels."""

    name = "qwen3"
    limits = Limits()

    def __init__(
        self, prepared: Prepared, tagger: Engine, decoder: Decodes | None = None, *, cascade: float | None = None
    ) -> None:
        """``tagger`` writes the drafts. Without a ``decoder``, the model is opened in this process, which can raise
        :exc:`ModelError`.

        A page keeps the tagger's labels if the tagger's confidence is at least ``cascade``, unless the expected quality
        is below the page's minimum (``DRIPPER_MIN_QUALITY``).
        """
        self.profile = prepared.profile
        """Name of the profile by which pages must be cut."""
        self.decoder: Decodes = decoder or Decoder(prepared)
        self._prepared, self._tagger, self._cascade = prepared, tagger, cascade
        tokenizer = prepared.tokenizer()
        self._grammar, self._prompt = Grammar(tokenizer, prepared.answer), Prompt(tokenizer, prepared.prompt)

    @classmethod
    def load(cls, config: Config) -> Qwen3Engine:
        """Return the configured engine. Raise ModelError if it cannot work."""
        prepared = load_prepared(model_folder(config))
        return cls(prepared, drafting_tagger(config), Decoder(prepared), cascade=config.cascade)

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels or the error of each page. It is OversizeError for a page that is too long."""
        try:
            return self._label(pages)
        except EngineLostError as error:
            return [error] * len(pages)

    def close(self) -> None:
        """Release the model and the tagger."""
        self.decoder.close()
        self._tagger.close()

    def _label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        prepared = self._prepared
        answers: dict[int, Labels | EngineError] = {}
        splitter = Splitter(self._prompt, self._grammar, self.decoder.limit, prepared.window_tokens)
        asked: list[tuple[int, Draft, Sequence[str]]] = []
        for i, (page, draft) in enumerate(zip(pages, drafts(self._tagger, pages, self.profile), strict=True)):
            if self._cascade is not None and draft.confidence >= self._cascade and not _is_low(draft, page.wishes):
                answers[i] = replace(draft.labels, source=self._tagger.name)
            else:
                asked.append((i, draft, simplify(page, prepared.truncate_chars)))
        tasks: list[DecodeTask] = []
        parts: dict[int, list[Part]] = {}
        prompts = self._prompt.encode(["".join(blocks) for _, _, blocks in asked])
        for (i, draft, blocks), prompt in zip(asked, prompts, strict=True):
            divided = splitter.parts(blocks, prompt, pages[i].oversize)
            if isinstance(divided, EngineError):
                answers[i] = divided
            else:
                parts[i] = divided
                tasks += [self._task(part, draft) for part in divided]
        decoded = iter(self.decoder.decode(tasks) if tasks else ())
        for i, own in parts.items():
            answers[i] = _merged(len(pages[i].blocks), own, [next(decoded) for _ in own])
        return [answers[i] for i in range(len(pages))]

    def _task(self, part: Part, draft: Draft) -> DecodeTask:
        answer = self._grammar.answer(len(part.blocks))
        main = draft.labels.main[part.blocks.start : part.blocks.stop]
        return DecodeTask(part.prompt, answer, main, self._grammar.main, self._grammar.other)


def drafting_tagger(config: Config) -> Tagger:
    """Return the bundled tagger, which writes the drafts."""
    return Tagger.load(replace(config, engine="tagger", model=None))


def _is_low(draft: Draft, wishes: Wishes) -> bool:
    quality, least = draft.labels.quality, wishes.min_quality
    return quality is not None and least is not None and quality < least


def _merged(n: int, parts: Sequence[Part], decoded: Sequence[Decoded | EngineError]) -> Labels | EngineError:
    """Return the labels of a page of n blocks from those of its parts. Blocks outside the parts are other."""
    good: list[Decoded] = []
    for one in decoded:
        if isinstance(one, EngineError):
            return one
        good.append(one)
    end = parts[-1].blocks.stop
    p = np.zeros(n)
    p[:end] = average([part.blocks for part in parts], [one.probabilities for one in good], end)
    main = p > 0.5
    if len(parts) == 1:
        main[:end] = good[0].main  # not derived from probabilities, because rounding can change the label
    work = {
        "passes": sum(one.passes for one in good),
        "positions": sum(one.positions for one in good),
        "draft": sum(len(one.main) for one in good),
        "draft_kept": sum(one.kept for one in good),
        "windows": len(parts),
    }
    return Labels(p.astype(np.float32), main, truncated=end < n, work=work)
