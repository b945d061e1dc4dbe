"""The engine without its model: turn pages into prompts with drafts, and decoded answers back into labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from scrapy_dripper.engines.base import Engine, EngineError, Labels, ModelError
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.draft import Draft, drafts
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper.engines.qwen3.loop import Decoded, Task
from scrapy_dripper.engines.qwen3.parts import Part, Splitter
from scrapy_dripper.engines.qwen3.prepared import Prepared
from scrapy_dripper.engines.qwen3.prompt import Prompt, page_html
from scrapy_dripper.engines.qwen3.windows import average
from scrapy_dripper.page.page import Page, Wishes
from scrapy_dripper.page.simplify import simplify

Decode = Callable[[Sequence[Task]], list["Decoded | EngineError"]]
"""Returns the labels or the error of each task, in order."""


class Front:
    """Reads pages for the model, which can be in another process."""

    def __init__(
        self,
        prepared: Prepared,
        tagger: Engine,
        *,
        max_tokens: int | None = None,
        truncate_chars: int | None = None,
        cascade: float | None = None,
    ) -> None:
        """``tagger`` writes the drafts. ``max_tokens`` limits prompts in addition to the limit of the model.

        ``truncate_chars`` is by default the value that the model was trained with; 0 keeps whole texts. A page keeps
        the tagger's labels if the tagger's confidence is at least ``cascade``, unless the expected quality is below the
        page's minimum (``DRIPPER_MIN_QUALITY``).
        """
        self.tagger = tagger
        tokenizer = prepared.tokenizer()
        self._grammar, self._prompt = Grammar(tokenizer, prepared.answer), Prompt(tokenizer, prepared.prompt)
        self._profile, self._cascade = prepared.profile, cascade
        self._shape, self._max_tokens = prepared.shape, max_tokens
        self._truncate_chars = prepared.truncate_chars if truncate_chars is None else truncate_chars

    def label(self, pages: Sequence[Page], decode: Decode, limit: int) -> list[Labels | EngineError]:
        """Return the labels or the error of each page. It is OversizeError for a page that is too long.

        ``limit`` is the maximum number of tokens of a prompt together with its answer.
        """
        answers: dict[int, Labels | EngineError] = {}
        asked: list[tuple[int, Draft, Sequence[str]]] = []
        for i, (page, draft) in enumerate(zip(pages, drafts(self.tagger, pages, self._profile), strict=True)):
            if self._cascade is not None and draft.confidence >= self._cascade and not _is_low(draft, page.wishes):
                answers[i] = replace(draft.labels, source=self.tagger.name)
            else:
                asked.append((i, draft, simplify(page, self._truncate_chars)))
        splitter = Splitter(self._prompt, self._grammar, self._shape, limit, self._max_tokens)
        tasks: list[Task] = []
        parts: dict[int, list[Part]] = {}
        prompts = self._prompt.encode([page_html(blocks) for _, _, blocks in asked])
        for (i, draft, blocks), prompt in zip(asked, prompts, strict=True):
            divided = _divided(splitter, blocks, prompt, pages[i])
            if isinstance(divided, EngineError):
                answers[i] = divided
            else:
                parts[i] = divided
                tasks += [self._task(part, draft) for part in divided]
        decoded = iter(decode(tasks) if tasks else ())
        for i, own in parts.items():
            answers[i] = _merged(len(pages[i].blocks), own, [next(decoded) for _ in own])
        return [answers[i] for i in range(len(pages))]

    def _task(self, part: Part, draft: Draft) -> Task:
        answer = self._grammar.answer(len(part.blocks))
        main = draft.labels.main[part.blocks.start : part.blocks.stop]
        return Task(part.prompt, answer, main, self._grammar.main, self._grammar.other)


def check_context(decoder: Decoder, max_tokens: int | None) -> None:
    """Raise :exc:`ModelError` if the context has no room for a page of one block after the instructions."""
    prompt, grammar, limit = decoder.prompt, decoder.grammar, decoder.limit
    if Splitter(prompt, grammar, decoder.prepared.shape, limit, max_tokens).budget <= grammar.length(1):
        raise ModelError(
            f"The model in {decoder.prepared.folder} has no room for pages: it takes {limit:,} tokens here, "
            f"DRIPPER_MAX_TOKENS is {max_tokens}, and its prompt has {len(prompt.encode([''])[0]):,} without a page"
        )


def _is_low(draft: Draft, wishes: Wishes) -> bool:
    quality, least = draft.labels.quality, wishes.min_quality
    return quality is not None and least is not None and quality < least


def _divided(splitter: Splitter, blocks: Sequence[str], prompt: Ids, page: Page) -> list[Part] | EngineError:
    try:
        return splitter.parts(blocks, prompt, page.oversize, page.wishes.window_tokens)
    except EngineError as error:
        return error


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
