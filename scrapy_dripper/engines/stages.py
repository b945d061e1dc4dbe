"""The steps in which the blocks of a page get their labels, each with its reason in words, for people to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.engines.captions import with_captions
from scrapy_dripper.engines.comments import with_comments
from scrapy_dripper.engines.headline import with_headline
from scrapy_dripper.engines.machine_text import without_machine_text
from scrapy_dripper.engines.rules import Marks
from scrapy_dripper.page.page import Page

Bools: TypeAlias = npt.NDArray[np.bool_]
Stage: TypeAlias = "tuple[str, Bools]"
"""The reason for which labels were changed, and the labels of a page's n blocks after that, of shape (n,)."""

MODEL = ""
"""The reason of labels that follow from the probabilities of a model."""
RULED = "a rule of DRIPPER_RULES"
HEADLINES = {
    "keep": "the headline comes first, with its lead",
    "drop": "DRIPPER_TITLE is 'drop'",
}


def after_engine(page: Page, answer: Labels, ruled: Marks, config: Config) -> Iterator[Stage]:
    """Yield the labels of an engine, and then those after each step: the user's rules, the options for comments,
    headline and captions, and the removal of text for machines.

    Main content selected by a ``whole`` rule is not changed, unless one of these is to be dropped.
    """
    yield MODEL, answer.main
    main = said = ruled.on(answer.main)
    yield RULED, main
    if not ruled.whole or config.comments == "drop":
        main = with_comments(page, answer.probabilities, main, config.comments, answer.page_type)
        yield f"DRIPPER_COMMENTS is {config.comments!r}", main
    if not ruled.whole or config.title == "drop":
        main = with_headline(page, answer.probabilities, main, config.title)
        yield HEADLINES[config.title], main
    if not ruled.whole or config.captions == "drop":
        main = with_captions(page, main, config.captions)
        yield f"DRIPPER_CAPTIONS is {config.captions!r}", main
    if not ruled.whole:
        main = without_machine_text(page, main)
        yield "placeholders, labels scrambled with UUIDs, and lists of fields for scripts are not for readers", main
    yield RULED, ruled.on_result(said, main)


def final(stages: Iterable[Stage]) -> Bools:
    """Return the labels of the last stage."""
    *_, (_, main) = stages
    return main


def reasons(stages: Iterable[Stage]) -> list[str]:
    """Return for each block why it has its last label: the reason of the stage that changed it last.

    It is :data:`MODEL` for labels that no stage after the first has changed, or that were changed back.
    """
    (_, first), *rest = stages
    found, before = [MODEL] * len(first), first
    for reason, main in rest:
        for i in np.flatnonzero(main != before).tolist():
            found[i] = MODEL if main[i] == first[i] else reason
        before = main
    return found
