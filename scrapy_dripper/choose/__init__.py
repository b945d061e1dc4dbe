"""Decide what is written of a page: which blocks, images and comments, in steps, each with its reason.

The steps choose which blocks of a page are main, in order, by the probabilities of its engine. A step corrects what the
probabilities of a model do not say, or carries out what the user has asked for. It never takes away what the model is
sure of (:func:`takes_too_much`), unless the user has asked for that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_dripper.choose.boilerplate import MOST_BOILERPLATE, without_boilerplate
from scrapy_dripper.choose.comments import FORUM, may_be_thread, posts_of, with_comments
from scrapy_dripper.choose.decision import IS_WHOLE, decide
from scrapy_dripper.choose.duplicates import without_duplicates
from scrapy_dripper.choose.headings import LONGEST_HEADING, MOST_EMPTY, with_headings, with_headline, with_name_facts
from scrapy_dripper.choose.mask import mask_of
from scrapy_dripper.choose.scored import SURE, UNLIKELY, Labels, ScoredPage
from scrapy_dripper.choose.short_pages import LONGEST_ERROR, with_short_page
from scrapy_dripper.choose.user_rules import with_rules, with_rules_again
from scrapy_dripper.page.page import Bools, Flag, Mask, Tree
from scrapy_dripper.page.tags import TAGS, tag_mask
from scrapy_dripper.page.vocabulary import HEROES, SIGNATURES, NamePattern, complete, either
from scrapy_dripper.structures.asides import without_dialogs
from scrapy_dripper.structures.callouts import callout_names
from scrapy_dripper.structures.code import code_box
from scrapy_dripper.structures.embeds import names as embed_names
from scrapy_dripper.structures.embeds import with_embeds
from scrapy_dripper.structures.footnotes import FootnoteMarks
from scrapy_dripper.structures.hidden import hidden_blocks, hidden_nodes

if TYPE_CHECKING:
    from scrapy_dripper.structures.items import Card
    from scrapy_dripper.structures.posts import ThreadPost

__all__ = ["Choice", "Labels", "ScoredPage", "choose", "mask_of"]

MOST_TAKEN = 0.2
"""Maximum share of a page's expected main text that a step may take away."""
MOST_TERM_LISTS = 3
"""Maximum number of lists of terms with the same classes. More of them are cards of a shop, or the users of a forum."""
MOST_HERO_BLOCKS = 12
"""Maximum number of blocks of a hero. A larger element is the page."""
ASKED = math.inf
"""The value of :attr:`Step.free` for what the user has asked for."""
MODEL = ""
"""The reason of labels that follow from the probabilities of a model."""
REPEATED, HIDDEN = "repeated", "hidden"
"""The names of the step of the site memory, and of the removal of hidden text, in ``Choice``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the choice. ``change`` returns the labels of a page, given those before."""

    name: str
    """The name in ``Extraction.details["overruled"]`` and in the stats."""
    reason: str
    """Why a label was changed."""
    change: Callable[[ScoredPage, Bools], Bools]
    by_model: bool = False
    """True if the step is only for labels that follow from the probabilities of an engine."""
    free: float = 0
    """Number of words that the step may take away, however sure the model is of them."""
    option: str = ""
    """The option that the step carries out. Where a rule of the user selects the whole main content, it only drops."""

    def applies(self, scored: ScoredPage) -> bool:
        """Return False if the step is for other labels, or if what the user's rules say leaves nothing to do."""
        if self.by_model and scored.labels.main is not None:
            return False
        whole = scored.marks is not None and scored.marks.whole
        return not (self.option and whole) or getattr(scored.page.config, self.option) == "drop"


def with_replies(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the posts of a thread added of which nothing is main."""
    if not main.any() or not may_be_thread(scored):
        return main
    from scrapy_dripper.choose.threads import with_posts  # of few pages

    return with_posts(scored, main)


def with_facts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the facts added that stand beside the name of a page, and those of a recipe."""
    if not main.any():
        return main
    labels = with_name_facts(scored, main)
    if "recipe" in scored.page.declared.types or any(fact.kind == "ingredient" for fact in scored.page.facts):
        from scrapy_dripper.choose.recipes import of_recipe  # of few pages

        labels[[*of_recipe(scored, main)]] = True
    return labels


def without_notes(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels without signatures, and what else a forum adds to its posts."""
    signed = scored.names.matching(_signature)
    if not signed and scored.page_type != FORUM:
        return main
    from scrapy_dripper.choose.threads import notes  # of few pages

    labels: Bools = main.copy()
    labels[[*notes(scored, main, signed)]] = False
    return labels


_PROSE = Flag.HEADING | Flag.PARAGRAPH | Flag.LIST | Flag.QUOTE
_signature = complete(SIGNATURES, having=("sig",))
_hero = NamePattern(re.compile(either(HEROES)), HEROES)
_LINK, _TABLE, _TERMS = TAGS["a"], TAGS["table"], TAGS["dl"]
_heads_table = tag_mask("caption", "th")
STEPS = (
    Step(
        "short_page",
        "a fragment is main as a whole, and an error page or a bot wall is not",
        with_short_page,
        by_model=True,
        free=LONGEST_ERROR,
    ),
    Step("replies", "it is a reply of the thread", with_replies, by_model=True),
    Step("facts", "it is a fact that stands beside the name of the page", with_facts, by_model=True),
    Step(
        "embeds",
        "a text embeds the post or the link",
        lambda scored, main: with_embeds(scored.page, main, scored.names.matching(embed_names)),
        by_model=True,
    ),
    # Last of these, so that no other step adds a duplicate again.
    Step("duplicates", "what is in the source twice, but shown once, is kept once", without_duplicates, by_model=True),
    Step(
        REPEATED,
        "the site memory knows it from other pages",
        lambda scored, main: main if scored.repeated is None else main & ~scored.repeated(main),
        free=ASKED,
    ),
    Step("rules", "a rule of DRIPPER_RULES", with_rules, free=ASKED),
    Step("comments", "DRIPPER_COMMENTS: readers' comments", with_comments, free=ASKED, option="comments"),
    Step("headline", "DRIPPER_TITLE: the headline and its lead come first", with_headline, free=ASKED, option="title"),
    # After the headline, whose lead these could be.
    Step(
        "dialogs",
        "it is a dialog that is not open",
        lambda scored, main: without_dialogs(scored.page, main, scored.names.matching),
        free=ASKED,
    ),
    Step("notes", "a forum adds it to its posts", without_notes, free=MOST_BOILERPLATE),
    Step("boilerplate", "it stands within the text, but is not of it", without_boilerplate, free=MOST_BOILERPLATE),
    Step("headings", "a heading follows its section", with_headings, free=MOST_EMPTY * LONGEST_HEADING),
    Step("rules", "a rule of DRIPPER_RULES", with_rules_again, free=ASKED),
)
"""All steps, in their order. What only follows from the page comes first."""


class Change(NamedTuple):
    """The labels of a page's n blocks after a step, of shape (n,)."""

    step: str
    """The name of the step; empty for the first labels."""
    reason: str
    """The reason for which labels were changed."""
    main: Bools
    is_overruled: bool = False
    """True if the step would have taken too much away, and therefore changed nothing."""


_LISTS = frozenset({"collection", "listing"})
"""Types of pages whose main content may be cards."""
_DECLARED_LISTS = frozenset({"collectionpage", "offercatalog", "searchresultspage"})
"""schema.org types of such pages, in lower case."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What is written of a page of n blocks."""

    scored: ScoredPage
    main: Bools
    """Which blocks are main, shape (n,)."""
    by_page: Bools
    """The same, judging by the page alone: before what the site memory, rules and options change."""
    hidden: Bools
    """The nodes whose text is hidden from readers, and therefore left out of the output."""
    changes: tuple[Change, ...]
    """The labels after each step that applies to the page."""
    overruled: tuple[str, ...]
    """Names of the steps that changed nothing, because they would have taken away what the model is sure of."""

    @cached_property
    def mask(self) -> Mask:
        """The nodes of the page that are written."""
        return mask_of(self.scored.page, self.main, self.hidden)

    @cached_property
    def posts(self) -> list[ThreadPost]:
        """The posts in the main content that are marked as such."""
        return posts_of(self.scored, self.main)

    @cached_property
    def cards(self) -> list[Card]:
        """The cards of the page, if it is a list of them and no thread."""
        page = self.scored.page
        is_list = self.scored.page_type in _LISTS or not _DECLARED_LISTS.isdisjoint(page.declared.types)
        if not is_list or self.posts:
            return []
        from scrapy_dripper.structures.posts import list_cards  # reads dates and names, as thread_posts does

        return list_cards(page, self.main, self.hidden)

    def reasons(self) -> list[str]:
        """Return for each block why it has its label: the reason of the step that changed it last.

        It is :data:`MODEL` for labels that no step has changed, or that were changed back.
        """
        first = before = self.changes[0].main
        found = [MODEL] * len(first)
        for change in self.changes[1:]:
            for i in np.flatnonzero(change.main != before).tolist():
                found[i] = MODEL if change.main[i] == first[i] else change.reason
            before = change.main
        return found

    def taken_by(self, step: str) -> int:
        """Return how many blocks are not main that a step has taken away."""
        pairs = pairwise(self.changes)
        return sum(int((before.main & ~after.main & ~self.main).sum()) for before, after in pairs if after.step == step)


def choose(scored: ScoredPage) -> Choice:
    """Decide what is written of a page.

    However sure a model is of a block, it may be hidden: instructions for language models are prose. But if most of the
    main text counts as hidden, something that cannot be seen here shows it, such as a style sheet or a script.
    """
    changes = tuple(apply(STEPS, scored))
    overruled = tuple(dict.fromkeys(change.step for change in changes if change.is_overruled))
    main, hidden = changes[-1].main, hidden_nodes(scored.page.tree)
    by_page = next((before.main for before, after in pairwise(changes) if after.step == REPEATED), main)
    seen = main & ~hidden_blocks(scored.page, hidden, whole=True) if hidden.any() else main
    if seen is not main and takes_too_much(scored, main, seen, sure=math.inf):
        hidden, overruled = np.zeros_like(hidden), (*overruled, HIDDEN)
    return Choice(scored, main, by_page, hidden, changes, overruled)


def apply(steps: Iterable[Step], scored: ScoredPage) -> Iterator[Change]:
    """Yield the first labels of a page, and those after each step that applies to it."""
    main = first_labels(scored)
    yield Change("", MODEL, main)
    for step in steps:
        if not step.applies(scored):
            continue
        changed = step.change(scored, main)
        stops = changed is not main and step.free < ASKED and takes_too_much(scored, main, changed, step.free)
        main = main if stops else changed
        yield Change(step.name, step.reason, main, stops)


def first_labels(scored: ScoredPage) -> Bools:
    """Return the labels of an engine or a template, or else those that follow from the probabilities."""
    labels = scored.labels
    if labels.main is not None:
        return labels.main
    tree, names = scored.page.tree, scored.names
    whole = names.matching(callout_names)
    prose = np.concatenate([[0], np.cumsum(scored.flags & _PROSE != 0)])
    # A box of code has no paragraphs, lists or headings, whatever its class says.
    free_of_prose = prose[tree.block_start] == prose[tree.block_end]
    boxes = [node for node in names.matching(code_box) if free_of_prose[node]]
    heroes = names.matching(_hero)
    heroes = [node for node in heroes if tree.block_end[node] - tree.block_start[node] <= MOST_HERO_BLOCKS]
    titles = [node for node in tree.tabs if tree.nodes[node].get("role") != "tabpanel"]  # of panels
    written = [*whole, *heroes, *boxes, *titles, *_footnotes(tree), *_structures(tree)]
    soft = (scored.flags & Flag.CODE != 0) | scored.page.within(written)
    tables, favor = _data_tables(tree), scored.page.config.favor
    types, rule, p = labels.page_types, labels.decision, labels.probabilities
    whole = [*whole, *boxes, *tables]
    main = decide(tree, p, scored.size, rule, types, favor, soft=soft, whole=whole)
    # Of a part in doubt, headings and sentences stay with the others.
    is_said = (scored.size > LONGEST_HEADING) | (scored.flags & Flag.HEADING != 0)
    main &= (p >= UNLIKELY / rule.favored(favor)) | is_said | soft | scored.page.within(tables)
    return main


def _structures(tree: Tree) -> list[int]:
    """Return the structures that authors write: those that are whole, but no lists of terms that are cards or users."""
    found = np.flatnonzero(IS_WHOLE[tree.tag])
    _, kind, number = np.unique(tree.tag_class[found], return_inverse=True, return_counts=True)
    written: list[int] = found[(tree.tag[found] != _TERMS) | (number[kind] <= MOST_TERM_LISTS)].tolist()
    return written


def _data_tables(tree: Tree) -> list[int]:
    """Return the tables with a caption or header cells, which lay out no page."""
    nodes = np.flatnonzero(_heads_table[tree.tag])
    found: set[int] = set()
    for _ in range(3):  # a header cell is in a row, and the row may be in a section of its table
        nodes = np.maximum(tree.parent[nodes], 0)
        found.update(nodes[tree.tag[nodes] == _TABLE].tolist())
    return sorted(found)


def _footnotes(tree: Tree) -> list[int]:
    """Return the footnotes of a page, which are recognised in the same way as for Markdown."""
    marks = FootnoteMarks(tree.nodes[0])
    links = ((tree.nodes[i], tree.nodes[i].get("href") or "") for i in tree.refers if tree.tag[i] == _LINK)
    notes = {marks.note(link, href) for link, href in links if href[:1] == "#"} - {None}
    return [i for i, node in enumerate(tree.nodes) if node in notes] if notes else []


def takes_too_much(scored: ScoredPage, before: Bools, after: Bools, free: float = 0, sure: float = SURE) -> bool:
    """Return True if a change of labels takes away more than a share of the expected main text (:data:`MOST_TAKEN`), or
    a block with a probability of at least ``sure``.

    A text of which a copy stays is not taken away, and ``free`` words do not count. The expected text of a block is its
    length times its probability. If all probabilities are 0 or 1, which is how an engine without probabilities answers,
    no block is surer than another, and only the share counts.
    """
    texts, p = scored.page.blocks.text, scored.probabilities
    lost = np.flatnonzero(before & ~after).tolist()
    if not lost:
        return False
    kept = {texts[i] for i in np.flatnonzero(after).tolist()}
    lost = [i for i in lost if texts[i] not in kept]
    if sum(len(texts[i].split()) for i in lost) <= free:
        return False
    graded = bool(((p > 0) & (p < 1)).any())
    expected = scored.chars * (p if graded else before)
    return (graded and bool((p[lost] >= sure).any())) or expected[lost].sum() > MOST_TAKEN * expected.sum()
