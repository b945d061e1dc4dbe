"""The steps that choose which blocks of a page are main, in order, after its engine has labelled them.

A step corrects what the probabilities of a model do not say, or carries out what the user has asked for. It never takes
away what the model is sure of (:func:`takes_too_much`), unless the user has asked for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scrapy_dripper.choose.below_headline import with_hero_links, with_price, with_recipe_facts
from scrapy_dripper.choose.comments import with_comments
from scrapy_dripper.choose.duplicates import without_duplicates
from scrapy_dripper.choose.furniture import (
    MOST_CONTROL_WORDS,
    MOST_NOSCRIPT_WORDS,
    MOST_OFFER_WORDS,
    MOST_SIGNATURE_WORDS,
    without_controls,
    without_noscript,
    without_offers,
    without_signatures,
)
from scrapy_dripper.choose.given import Bools, Given
from scrapy_dripper.choose.headings import MOST_WORDS, with_headings, without_empty_headings
from scrapy_dripper.choose.headline import with_headline
from scrapy_dripper.choose.short_pages import LONGEST_ERROR, with_short_page
from scrapy_dripper.choose.siblings import (
    with_alike,
    with_continued,
    with_holes,
    with_parts,
    with_titles,
)
from scrapy_dripper.choose.structures import with_footnotes, with_whole_structures
from scrapy_dripper.choose.user_rules import with_rules, with_rules_again
from scrapy_dripper.structures.hidden import hidden_blocks, hidden_nodes

MOST_TAKEN = 0.2
"""Maximum share of a page's expected main text that a step may take away."""
SURE_PROBABILITY = 0.8
"""A step may not take away a block of at least this probability."""
ASKED = math.inf
"""The value of :attr:`Step.free` for what the user has asked for."""
MODEL = ""
"""The reason of labels that follow from the probabilities of a model."""
HIDDEN = "hidden"
"""The name of the removal of hidden text in ``Extraction.details["overruled"]``."""
TAGGER, TEMPLATE = "tagger", "template"
"""Which labels a step is for, if it is not for all: those of the tagger, and those of a site's template."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step after the engine. ``change`` returns the labels of a page, given those before."""

    name: str
    """The name in ``Extraction.details["overruled"]`` and in the stats."""
    reason: str
    """Why a label was changed. An option's step says so itself if it has no reason, or if the option is ``drop``."""
    change: Callable[[Given, Bools], Bools]
    engines: frozenset[str] = frozenset()
    """Whose labels the step is for; empty for those of every engine."""
    free: float = 0
    """Number of words that the step may take away, however sure the model is of them."""
    option: str = ""
    """The option that the step carries out. Where a rule of the user selects the whole main content, it only drops."""

    def applies(self, given: Given) -> bool:
        """Return False if what the user's rules say leaves nothing to do."""
        whole = given.marks is not None and given.marks.whole
        return not (self.option and whole) or getattr(given.page.config, self.option) == "drop"

    def reason_for(self, given: Given) -> str:
        """Return why the step has changed labels of a page."""
        value = getattr(given.page.config, self.option) if self.option else ""
        return self.reason if self.reason and value != "drop" else f"DRIPPER_{self.option.upper()} is {value!r}"


_TAGGER = frozenset({TAGGER})
STEPS = (
    Step("noscript", "scripts have run", without_noscript, _TAGGER, free=MOST_NOSCRIPT_WORDS),
    Step("holes", "a small hole in the main content is filled if it is likely to be main", with_holes, _TAGGER),
    Step(
        "short_page",
        "a fragment is main as a whole, and an error page or a bot wall is not",
        with_short_page,
        _TAGGER,
        free=LONGEST_ERROR,
    ),
    Step(
        "structures",
        "lists, tables, code and call-outs are kept whole or not at all",
        with_whole_structures,
        frozenset({TAGGER, TEMPLATE}),
    ),
    Step("alike", "most blocks of the same shape are main", with_alike, _TAGGER),
    Step("continued", "a run of paragraphs of the same shape continues to its end", with_continued, _TAGGER),
    Step("parts", "parts of a list that are alike are main together", with_parts, _TAGGER),
    Step("titles", "a title that opens a panel is main with its panel", with_titles, _TAGGER),
    Step("headings", "a heading stays with the text below it", with_headings, _TAGGER),
    Step("price", "the price of a product stays with its name", with_price, _TAGGER),
    Step("footnotes", "a footnote has the label of its marks", with_footnotes, _TAGGER),
    Step("recipe_facts", "a recipe says how long it takes and how much it makes", with_recipe_facts, _TAGGER),
    Step("hero_links", "the links of a hero belong to its headline", with_hero_links, _TAGGER),
    # Last of the tagger's, so that no other step adds a duplicate again.
    Step("duplicates", "what is in the source twice, but shown once, is kept once", without_duplicates, _TAGGER),
    Step("signatures", "a signature is not part of its post", without_signatures, free=MOST_SIGNATURE_WORDS),
    Step("offers", "it offers a subscription", without_offers, free=MOST_OFFER_WORDS),
    Step("controls", "it names what a click does, or the tags of a text", without_controls, free=MOST_CONTROL_WORDS),
    Step(
        "furniture",
        "the site memory knows it from other pages",
        lambda given, main: main if given.furniture is None else main & ~given.furniture,
        free=ASKED,
    ),
    Step("rules", "a rule of DRIPPER_RULES", with_rules, free=ASKED),
    Step("comments", "", with_comments, free=ASKED, option="comments"),
    Step("empty_headings", "nothing below the heading is main", without_empty_headings, free=MOST_WORDS),
    Step("headline", "the headline comes first, with its lead", with_headline, free=ASKED, option="title"),
    Step("rules", "a rule of DRIPPER_RULES", with_rules_again, free=ASKED),
)
"""All steps, in their order. Those of an engine come first."""


class Stage(NamedTuple):
    """The labels of a page's n blocks after a step, of shape (n,)."""

    reason: str
    """The reason for which labels were changed."""
    main: Bools
    overruled: str = ""
    """The name of the step if it would have taken too much away, and therefore changed nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What is written of a page."""

    main: Bools
    """Which of the n blocks are main, shape (n,)."""
    hidden: Bools
    """The nodes whose text is hidden from readers, and therefore left out of the output."""
    overruled: tuple[str, ...]
    """Names of the steps that changed nothing, because they would have taken away what the model is sure of."""


def choose(given: Given, main: Bools) -> Choice:
    """Return what is written of a page, given the labels of its engine.

    However sure a model is of a block, it may be hidden: instructions for language models are prose. But if most of the
    main text counts as hidden, something that cannot be seen here shows it, such as a style sheet or a script.
    """
    found = list(stages(given, main))
    main, hidden = found[-1].main, hidden_nodes(given.page.tree)
    if hidden.any():
        after = main & ~hidden_blocks(given.page, hidden, whole=True)
        if takes_too_much(given, main, after, sure=math.inf):
            return Choice(main, np.zeros_like(hidden), (*overruled(found), HIDDEN))
    return Choice(main, hidden, overruled(found))


def stages(given: Given, main: Bools, engine: str = "") -> Iterator[Stage]:
    """Yield the labels of an engine, and those after each step for it or, without a name, for every engine."""
    return apply([step for step in STEPS if (engine in step.engines if engine else not step.engines)], given, main)


def apply(steps: Iterable[Step], given: Given, main: Bools) -> Iterator[Stage]:
    """Yield labels, and those after each step."""
    yield Stage(MODEL, main)
    for step in steps:
        if not step.applies(given):
            continue
        changed = step.change(given, main)
        reason = step.reason_for(given)
        if changed is not main and step.free < ASKED and takes_too_much(given, main, changed, step.free):
            yield Stage(reason, main, step.name)
        else:
            main = changed
            yield Stage(reason, main)


def takes_too_much(given: Given, before: Bools, after: Bools, free: float = 0, sure: float = SURE_PROBABILITY) -> bool:
    """Return True if a change of labels takes away more than a share of the expected main text (:data:`MOST_TAKEN`), or
    a block with a probability of at least ``sure``.

    A text of which a copy stays is not taken away, and ``free`` words do not count. The expected text of a block is its
    length times its probability. If all probabilities are 0 or 1, which is how an engine without probabilities answers,
    no block is surer than another, and only the share counts.
    """
    texts, p = given.page.blocks.text, given.probabilities
    lost = np.flatnonzero(before & ~after).tolist()
    if not lost:
        return False
    kept = {texts[i] for i in np.flatnonzero(after).tolist()}
    lost = [i for i in lost if texts[i] not in kept]
    if sum(len(texts[i].split()) for i in lost) <= free:
        return False
    graded = bool(((p > 0) & (p < 1)).any())
    expected = given.chars * (p if graded else before)
    return (graded and bool((p[lost] >= sure).any())) or expected[lost].sum() > MOST_TAKEN * expected.sum()


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
