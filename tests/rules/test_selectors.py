"""What selectors of rules select, and which cannot be used."""

from __future__ import annotations

import lxml.html
import pytest
from cssselect.parser import SelectorSyntaxError
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from scrapy_dripper.rules.selectors import SelectorError, find

TAGS = ("div", "p", "a")
elements = st.recursive(
    st.builds(
        lambda tag, attributes: f"<{tag}{attributes}></{tag}>",
        st.sampled_from(TAGS),
        st.sampled_from(["", " class='x'", " class='x y'", " id='i'", " title='one two'", " lang='en-GB'"]),
    ),
    lambda inner: st.builds(
        lambda tag, attributes, children: f"<{tag}{attributes}>{''.join(children)}</{tag}>",
        st.sampled_from(["div", "section"]),
        st.sampled_from(["", " class='x'", " class='y'", " id='i'"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=15,
)
simple = st.sampled_from(
    "div p a section * .x .y p.x #i div.x.y [title] [title~=two] [lang|=en] [title^=one] [title$=two] [title*=ne] "
    "p:not(.x) :is(p,a) :where(div,.y) [class=x] :not([title])".split()
)
chains = st.builds(
    lambda first, rest: first + "".join(f"{combinator}{one}" for combinator, one in rest),
    simple,
    st.lists(st.tuples(st.sampled_from([" ", " > ", " + ", " ~ "]), simple), max_size=3),
)


def selected(html: str, selector: str) -> list[int]:
    """Return the numbers of the elements of a document that a selector selects."""
    return find(selector)(list(lxml.html.document_fromstring(html).iter()))


@given(elements, st.lists(chains, min_size=1, max_size=2))
@settings(max_examples=200)
def test_it_selects_what_lxml_selects(html: str, alternatives: list[str]) -> None:
    selector = ", ".join(alternatives)
    root = lxml.html.document_fromstring(f"<html><body>{html}</body></html>")
    nodes = list(root.iter())
    try:
        expected = [nodes.index(node) for node in root.cssselect(selector)]
    except SelectorSyntaxError:  # older releases of cssselect read less
        reject()

    assert selected(f"<html><body>{html}</body></html>", selector) == sorted(expected)


def test_xpath_selects_elements_only() -> None:
    """Texts and attributes are not selected."""
    html = "<html><body><p id=a>One<b>two</b></p></body></html>"

    assert selected(html, "//p | //p/@id | //p/text()") == [2]
    assert selected(html, "(//p//b)[1]") == [3]


def test_xpath_that_fails_on_a_page_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """An unknown function is only detected when it is called."""
    for _ in range(2):
        assert selected("<html><body><p>One</p></body></html>", "//p[no-such-function()]") == []
    (record,) = caplog.records
    assert "//p[no-such-function()]" in record.getMessage()


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("div >", "Expected selector"),
        ("p::before", "pseudo-elements"),
        ("p:no-such-thing", "no-such-thing"),
        ("li:has(a, b", "Expected|unsupported"),
        ("svg|a", "[Uu]ndefined namespace"),
        ("//p[", "Invalid expression"),
        ("(count(//p))", "not a number"),
        ("//p[$x]", "variables are not supported"),
        ("", "expected from 1 to 1,000"),
        ("a" * 1_001, "expected from 1 to 1,000"),
    ],
)
def test_what_cannot_be_used_says_why(selector: str, why: str) -> None:
    with pytest.raises(SelectorError, match=why):
        find(selector)


def test_what_can_be_read_can_be_used_deep_in_a_stack() -> None:
    """A selector that is nested up to the parser's own limit could not."""

    def deep(left: int) -> list[int]:
        return (
            deep(left - 1) if left else selected("<html><body><p>One</p></body></html>", ":is(" * 20 + "p" + ")" * 20)
        )

    assert deep(500) == [2]
