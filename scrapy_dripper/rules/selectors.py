"""Match CSS selectors on all elements of a page in linear time, and evaluate XPath with libxml2.

For ``div p``, libxml2 takes quadratic time in the size of a page, because it compares each match with all others. So
selectors are parsed by cssselect, but not translated into XPath.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from cssselect import SelectorError as CssError
from cssselect import parse
from cssselect.parser import Attrib, Class, CombinedSelector, Element, Hash, Matching, Negation, SpecificityAdjustment
from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

Test = Callable[["HtmlElement"], bool]
Find = Callable[[Sequence["HtmlElement"], Sequence[int]], list[int]]
"""Returns the numbers of the elements that a selector selects, in order. The arguments are the elements of a page in
document order, and the number of each element's parent, -1 for the root."""

logger = logging.getLogger(__name__)

LONGEST = 1_000
"""Maximum length of a selector, in characters."""
DEEPEST = 20
"""Maximum nesting of ``:is`` and ``:not``. Each level needs Python's stack, whose depth differs between platforms."""
_literals = re.compile(r"\"[^\"]*\"|'[^']*'").sub


class SelectorError(ValueError):
    """A selector cannot be used. The message says why."""


def is_xpath(selector: str) -> bool:
    """Return True if a selector is XPath, judging by its beginning. No CSS selector begins in this way."""
    return selector.lstrip().startswith(("/", "(", "./"))


@lru_cache(maxsize=10_000)  # the maximum number of rules
def find(selector: str) -> Find:
    """Return a function that finds the elements of a selector. Raise :exc:`SelectorError` if it is invalid."""
    if not 0 < len(selector.strip()) <= LONGEST:
        raise SelectorError(f"expected from 1 to {LONGEST:,} characters")
    return _xpath(selector) if is_xpath(selector) else _css(selector)


def _css(selector: str) -> Find:
    try:
        chains = [_Chain(one.parsed_tree, one.pseudo_element) for one in parse(selector)]
    except (CssError, RecursionError) as error:
        raise SelectorError(str(error) or type(error).__name__) from None

    def found(nodes: Sequence[HtmlElement], parents: Sequence[int]) -> list[int]:
        return sorted({i for chain in chains for i in chain.find(nodes, parents)})

    return found


class _Chain:
    """Simple selectors with the combinators between them: ``article > p .note``.

    For each element, the matching prefixes of the chain are bits of a number: bit j is set if the first j + 1 simple
    selectors match and end at the element. One pass in document order is enough, because ancestors and earlier siblings
    of an element come before it.
    """

    def __init__(self, tree: Any, pseudo_element: object) -> None:
        if pseudo_element is not None:
            raise SelectorError(f"pseudo-elements are not supported (got ::{pseudo_element})")
        parts: list[tuple[str, Test]] = []
        while isinstance(tree, CombinedSelector):
            parts.append((tree.combinator, _simple(tree.subselector)))
            tree = tree.selector
        parts.append(("", _simple(tree)))
        parts.reverse()
        self._tests = [test for _, test in parts]
        self._inside, self._child, self._after, self._next = (
            sum(1 << j for j, (combinator, _) in enumerate(parts) if combinator == one) for one in (" ", ">", "~", "+")
        )

    def find(self, nodes: Sequence[HtmlElement], parents: Sequence[int]) -> list[int]:
        """Return the numbers of the elements at which the whole chain matches."""
        if len(self._tests) == 1:
            return [i for i, node in enumerate(nodes) if self._tests[0](node)]
        last = 1 << (len(self._tests) - 1)
        own = [0] * len(nodes)
        above, before, previous = list(own), list(own), list(own)  # of ancestors; of earlier children, of the last one
        found = []
        for i, (node, parent) in enumerate(zip(nodes, parents, strict=True)):
            possible = 1
            if parent >= 0:
                above[i] = above[parent] | own[parent]
                possible |= (above[i] << 1) & self._inside | (own[parent] << 1) & self._child
                possible |= (before[parent] << 1) & self._after | (previous[parent] << 1) & self._next
            bits = 0
            for j, test in enumerate(self._tests):
                if possible >> j & 1 and test(node):
                    bits |= 1 << j
            own[i] = bits
            if parent >= 0:
                before[parent] |= bits
                previous[parent] = bits
            if bits & last:
                found.append(i)
        return found


def _simple(tree: Any, depth: int = 0) -> Test:
    """Return a test for one simple selector: a tag with classes, an id, attributes, and negations."""
    if depth > DEEPEST:
        raise SelectorError(f"':not' and ':is' can be nested at most {DEEPEST} deep")
    tests: list[Test] = []
    while not isinstance(tree, Element):
        if isinstance(tree, Class):
            tests.append(_has_class(tree.class_name))
        elif isinstance(tree, Hash):
            tests.append(_attribute("id", "=", tree.id))
        elif isinstance(tree, Attrib):
            _refuse_namespace(tree)
            value: Any = getattr(tree.value, "value", tree.value)
            folded = getattr(tree, "flag", None) == "i"  # only newer releases of cssselect have it
            tests.append(_attribute(tree.attrib.lower(), tree.operator, value, folded=folded))
        elif isinstance(tree, Negation):
            tests.append(_none_of([_simple(tree.subselector, depth + 1)]))
        elif isinstance(tree, (Matching, SpecificityAdjustment)):  # :is and :where, which select the same elements
            tests.append(_any_of([_simple(one, depth + 1) for one in tree.selector_list]))
        else:
            raise SelectorError(
                "only tags, classes, ids and attributes, with ':not', ':is' and ':where', are supported "
                f"(got {type(tree).__name__}: {getattr(tree, 'ident', getattr(tree, 'name', ''))})"
            )
        tree = tree.selector
    _refuse_namespace(tree)
    if tree.element:
        tests.append(_is_tag(tree.element.lower()))
    tests.reverse()  # the tag is the cheapest test, so it comes first
    return tests[0] if len(tests) == 1 else lambda node: all(test(node) for test in tests)


def _refuse_namespace(tree: Any) -> None:
    """Raise :exc:`SelectorError` for a namespace, because the elements of a parsed page have none."""
    if tree.namespace not in (None, "*"):
        raise SelectorError(f"namespaces are not supported (got {tree.namespace}|)")


def _is_tag(tag: str) -> Test:
    return lambda node: node.tag == tag


def _has_class(name: str) -> Test:
    return lambda node: name in (node.get("class") or "").split()


def _none_of(tests: Sequence[Test]) -> Test:
    return lambda node: not any(test(node) for test in tests)


def _any_of(tests: Sequence[Test]) -> Test:
    return lambda node: any(test(node) for test in tests)


def _attribute(name: str, operator: str, value: str | None, *, folded: bool = False) -> Test:
    if operator == "exists" or value is None:
        return lambda node: node.get(name) is not None
    if folded:
        value = value.lower()
    compared: dict[str, Callable[[str], bool]] = {
        "=": lambda has: has == value,
        "~=": lambda has: value in has.split(),
        "|=": lambda has: has == value or has.startswith(f"{value}-"),
        "^=": lambda has: bool(value) and has.startswith(value),
        "$=": lambda has: bool(value) and has.endswith(value),
        "*=": lambda has: bool(value) and value in has,
    }
    if operator not in compared:
        raise SelectorError(f"an attribute can be compared by {' '.join(compared)} (got {operator})")
    compare = compared[operator]
    if folded:
        return lambda node: (has := node.get(name)) is not None and compare(has.lower())
    return lambda node: (has := node.get(name)) is not None and compare(has)


def _xpath(selector: str) -> Find:
    if "$" in _literals("", selector):
        raise SelectorError("variables are not supported")
    try:
        path = etree.XPath(selector)
        if not isinstance(path(etree.Element("html")), list):
            raise SelectorError("expected XPath that selects elements, not a number, a string or a boolean")
    except (etree.XPathError, RecursionError) as error:
        raise SelectorError(str(error)) from None

    def found(nodes: Sequence[HtmlElement], parents: Sequence[int]) -> list[int]:  # noqa: ARG001 (libxml2 knows them)
        numbers = {node: i for i, node in enumerate(nodes)}
        try:
            selected = cast("list[object]", path(nodes[0]))
        except etree.XPathError as error:  # such as an unknown function, which is only detected when it is called
            _log_once(selector, str(error))
            return []
        return sorted(numbers[node] for node in selected if isinstance(node, etree._Element) and node in numbers)

    return found


@lru_cache(maxsize=1_000)
def _log_once(selector: str, error: str) -> None:
    words = {"selector": selector, "error": error}
    logger.warning("The selector %(selector)r of a rule selects nothing: %(error)s", words)
