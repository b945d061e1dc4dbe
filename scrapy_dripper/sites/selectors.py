"""Selectors for the places of a template: short CSS that a person can read, made of the tags and classes of pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache, partial

from scrapy_dripper.page.page import Page
from scrapy_dripper.rules import KEEP, MODEL
from scrapy_dripper.sites.memory import name_of

BOXES = frozenset(
    "html body div section article aside nav header footer main form fieldset details summary dialog".split()
)
"""Elements with which a theme divides a page, and not a writer a text. Custom elements are such boxes as well."""
LONGEST_PATH = 32
"""Maximum number of elements in a path. Deeper elements are within the last of them."""
_NAMED = BOXES - {"html", "body", "div", "section", "form", "fieldset", "details", "summary"}
"""Tags that say by themselves which part of a page they are."""
_FLAT = frozenset("p h1 h2 h3 h4 h5 h6".split())
"""Tags of elements that are not in one another, because parsers end the first where the next begins."""
MOST_INSIDE = 5
"""Number of elements in an element with which it is not compared with a text."""
_escaped = partial(re.compile(r"^-|[^\w-]").sub, r"\\\g<0>")


def path_of_each(page: Page) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the number of the path of each node, and each path: the number of the one above it (-1 for none), and the
    tag and the classes of its last element.
    """
    tree = page.tree
    steps: dict[int, str] = {}
    numbers: dict[tuple[int, str], int] = {}
    paths: list[tuple[int, str]] = []
    of_each: list[int] = []
    parents, depths = tree.parent.tolist(), tree.depth.tolist()
    for node, own in enumerate(tree.tag_class.tolist()):
        above = of_each[parents[node]] if parents[node] >= 0 else -1
        if depths[node] >= LONGEST_PATH:
            of_each.append(above)
            continue
        if own not in steps:
            steps[own] = name_of(tree.nodes[node]).decode("utf-8", "replace").strip()
        key = above, steps[own]
        if key not in numbers:
            numbers[key] = len(paths)
            paths.append(key)
        of_each.append(numbers[key])
    return of_each, paths


def is_box(step: str) -> bool:
    """Return True if the last element of a path is a box."""
    tag = step.partition(" ")[0]
    return tag in BOXES or "-" in tag


Steps = tuple[str, ...]
"""The tags and classes of the elements from the root to a place."""


def distilled(said: Mapping[Steps, str], own: Container[Steps], most: int) -> dict[tuple[str, str], None]:
    """Return the rules of places as kinds and selectors, given what happens to each place, from the root down.

    A place has the label of the one above it, unless a rule says something else. A box that is kept has a rule if it is
    in ``own``, which has the boxes with text of their own: one that is new might hold anything.
    """
    places: dict[str, list[Steps]] = defaultdict(list)
    for path in said:
        places[_tag(path)].append(path)
    rules: dict[tuple[str, str], None] = {}
    held: dict[Steps, str] = {}
    for path, kind in said.items():
        held[path] = above = held.get(path[:-1], MODEL)
        kept_box = kind == KEEP and is_box(path[-1])
        if kind and (path in own if kept_box else kind != above):
            held[path] = kind
            others = [other for other in places[_tag(path)] if said[other] != kind]
            rules[kind, shortest(path, others)] = None
            if len(rules) > most:
                break
    return rules


def shortest(path: Steps, others: Sequence[Steps]) -> str:
    """Return the shortest selector of a path that selects none of the others, and has a name in it."""
    for size in range(1, len(path) + 1):
        part = path[-size:]
        others = [other for other in others if len(other) >= size and _selects(part[0], other[-size])]
        if not others and any(_says_something(step) for step in part):
            break
    unwanted: dict[int, set[str]] = defaultdict(set)
    for other in others:
        for i in range(1, min(len(path), len(other)) + 1):
            more = sorted(_classes(other[-i]) - _classes(path[-i]))
            if more:
                unwanted[i].add(more[0])
                break
    return " > ".join(_css(step, unwanted[len(part) - i]) for i, step in enumerate(part))


def _selects(step: str, other: str) -> bool:
    return _tag((step,)) == _tag((other,)) and _classes(step) <= _classes(other)


def _tag(path: Steps) -> str:
    return path[-1].partition(" ")[0]


@lru_cache(maxsize=10_000)
def _classes(step: str) -> frozenset[str]:
    return frozenset(step.split(" ")[1:])


def _says_something(step: str) -> bool:
    return " " in step or step in _NAMED or "-" in step


def _css(step: str, unwanted: Iterable[str]) -> str:
    tag, *classes = map(_escaped, step.split(" "))
    without = "".join(f":not(.{_escaped(name)})" for name in sorted(unwanted))
    return ".".join([tag, *classes]) + without


def of_text(step: str, text: str) -> str | None:
    """Return XPath for the elements that have the tag and the classes of a step and only a text, or None if there is
    none.

    The text of nested elements takes quadratic time, so elements with many others inside are left out.
    """
    if '"' in text and "'" in text:
        return None
    quote = '"' if "'" in text else "'"
    tag, *classes = step.split(" ")
    has = "".join(f"[contains(concat(' ', @class, ' '), ' {name} ')]" for name in classes if "'" not in name)
    few = "" if tag in _FLAT else f"[not(descendant::*[{MOST_INSIDE}])]"
    return f"//{tag}{has}{few}[normalize-space()={quote}{text}{quote}]"
