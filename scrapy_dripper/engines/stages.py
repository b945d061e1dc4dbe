"""The steps in which the blocks of a page get their labels, each with its reason in words, for people to see.

A step corrects what the probabilities of a model do not say. It never takes away what the model is sure of
(:func:`takes_too_much`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Labels
from scrapy_dripper.engines.comments import with_comments
from scrapy_dripper.engines.headline import with_headline
from scrapy_dripper.engines.rules import Marks
from scrapy_dripper.page.page import Page

Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float32]

SHARE = 0.2
"""Maximum share of a page's expected main text that a step may take away."""
SURE = 0.8
"""A step may not take away a block of at least this probability."""
ASKED = math.inf
"""The value of :attr:`Step.free` for what the user has asked for."""

MODEL = ""
"""The reason of labels that follow from the probabilities of a model."""
RULED = "a rule of DRIPPER_RULES"
HEADLINES = {
    "keep": "the headline comes first, with its lead",
    "drop": "DRIPPER_TITLE is 'drop'",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step after the decision of the model. ``change`` returns the labels of a page, given those before."""

    name: str
    """The name in ``Extraction.details["overruled"]`` and in the stats."""
    reason: str
    change: Callable[[Bools], Bools]
    free: float = 0
    """Number of words that the step may take away, however sure the model is of them."""


class Stage(NamedTuple):
    """The labels of a page's n blocks after a step, of shape (n,)."""

    reason: str
    """The reason for which labels were changed."""
    main: Bools
    overruled: str = ""
    """The name of the step if it would have taken too much away, and therefore changed nothing."""


def apply(steps: Iterable[Step], page: Page, probabilities: Floats, first: Bools) -> Iterator[Stage]:
    """Yield the labels that follow from the probabilities of a model, and then those after each step."""
    yield Stage(MODEL, first)
    main = first
    for step in steps:
        changed = step.change(main)
        if step.free < ASKED and takes_too_much(page, probabilities, main, changed, step.free):
            yield Stage(step.reason, main, step.name)
        else:
            main = changed
            yield Stage(step.reason, main)


def takes_too_much(
    page: Page, probabilities: Floats, before: Bools, after: Bools, free: float = 0, sure: float = SURE
) -> bool:
    """Return True if a change of labels takes away more than a share of the expected main text (:data:`SHARE`), or a
    block with a probability of at least ``sure``.

    All arrays have shape (n,) for the page's n blocks. A text of which a copy stays is not taken away, and ``free``
    words do not count. The expected text of a block is its length times its probability. If all probabilities are 0 or
    1, which is how an engine without probabilities answers, no block is surer than another, and only the share counts.
    """
    texts = page.blocks.text
    lost = np.flatnonzero(before & ~after).tolist()
    if lost:
        kept = {texts[i] for i in np.flatnonzero(after).tolist()}
        lost = [i for i in lost if texts[i] not in kept]
    if sum(len(texts[i].split()) for i in lost) <= free:
        return False
    chars = np.fromiter(map(len, texts), dtype=np.float64, count=len(texts))
    graded = bool(((probabilities > 0) & (probabilities < 1)).any())
    expected = chars * (probabilities if graded else before)
    return (graded and bool((probabilities[lost] >= sure).any())) or expected[lost].sum() > SHARE * expected.sum()


def after_engine(page: Page, answer: Labels, ruled: Marks, config: Config) -> Iterator[Stage]:
    """Yield the labels of an engine, and then those after each step: the user's rules, and the options for comments
    and headline.

    Main content selected by a ``whole`` rule is not changed, unless one of these is to be dropped.
    """
    p, said = answer.probabilities, ruled.on(answer.main)
    steps = [Step("rules", RULED, ruled.on, ASKED)]
    if not ruled.whole or config.comments == "drop":
        reason = f"DRIPPER_COMMENTS is {config.comments!r}"
        change = partial(with_comments, page, p, comments=config.comments, page_type=answer.page_type)
        steps.append(Step("comments", reason, change, ASKED))
    if not ruled.whole or config.title == "drop":
        steps.append(
            Step("headline", HEADLINES[config.title], partial(with_headline, page, p, title=config.title), ASKED)
        )
    steps.append(Step("rules", RULED, partial(ruled.on_result, said), ASKED))
    return apply(steps, page, p, answer.main)


def reasons(stages: Iterable[Stage]) -> list[str]:
    """Return for each block why it has its last label: the reason of the stage that changed it last.

    It is :data:`MODEL` for labels that no stage after the first has changed, or that were changed back.
    """
    first, *rest = stages
    found, before = [MODEL] * len(first.main), first.main
    for stage in rest:
        for i in np.flatnonzero(stage.main != before).tolist():
            found[i] = MODEL if stage.main[i] == first.main[i] else stage.reason
        before = stage.main
    return found


def overruled(stages: Iterable[Stage]) -> tuple[str, ...]:
    """Return the names of the steps that changed nothing because they would have taken too much away."""
    return tuple(stage.overruled for stage in stages if stage.overruled)
