"""What the model needs to know of a page: its blocks as text, and the tagger's labels as a draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scrapy_dripper.engines.base import Engine, Labels
from scrapy_dripper.engines.qwen3.draft import Draft, drafts
from scrapy_dripper.page.page import Page, Wishes
from scrapy_dripper.page.simplify import simplify


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A page as the model reads it."""

    blocks: Sequence[str]
    """Simplified HTML of each block; empty where the model need not be asked."""
    draft: Draft
    oversize: str
    """What happens if it is too long: an answer to ``DRIPPER_OVERSIZE``."""
    kept: Labels | None = None
    """The tagger's labels, where it is sure enough for the model not to be asked."""


class Reader:
    """Reads pages for the model. It needs none itself, and so can be in another process."""

    def __init__(self, tagger: Engine, profile: str, truncate_chars: int | None, cascade: float | None) -> None:
        """Pages for which the tagger's confidence is at least ``cascade`` keep its labels.

        So do not those of which it expects less than they ask for (``DRIPPER_MIN_QUALITY``).
        """
        self.tagger = tagger
        self._profile, self._truncate_chars, self._cascade = profile, truncate_chars, cascade

    def read(self, pages: Sequence[Page]) -> list[Reading]:
        """Return the reading of each page."""
        found = []
        for page, draft in zip(pages, drafts(self.tagger, pages, self._profile), strict=True):
            if self._cascade is not None and draft.confidence >= self._cascade and not _is_low(draft, page.wishes):
                kept = replace(draft.labels, source=self.tagger.name)
                found.append(Reading((), draft, page.oversize, kept))
            else:
                found.append(Reading(simplify(page, self._truncate_chars), draft, page.oversize))
        return found


def _is_low(draft: Draft, wishes: Wishes) -> bool:
    quality, least = draft.labels.quality, wishes.min_quality
    return quality is not None and least is not None and quality < least
