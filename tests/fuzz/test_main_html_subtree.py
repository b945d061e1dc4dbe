"""Main-HTML is a subtree of the page, for any markup and labels: its elements, its text, and how it is parsed again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.cases import Case
from fuzz.checks import check, run
from fuzz.mutate import ATTRIBUTES, SNIPPETS, TAGS
from scrapy_dripper.choose import mask_of
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.output.main_html import main_tree

NUMBER = "data-n"

_tags = st.sampled_from([tag.decode() for tag in TAGS])
_attributes = st.sampled_from(["", "", *(f" {one.decode('utf-8', 'replace')}" for one in ATTRIBUTES)])
_words = st.integers(0, 999).map("w{} ".format)


def soups() -> st.SearchStrategy[str]:
    """Return documents of tags, words and awkward markup in any order."""
    start, end = st.builds("<{}{}>".format, _tags, _attributes), _tags.map("</{}>".format)
    awkward = st.sampled_from([one.decode("utf-8", "replace") for one in SNIPPETS])
    parts = st.lists(st.one_of(_words, _words, start, end, awkward), max_size=25)
    return st.builds(lambda parts: "<p>w." + "".join(parts), parts)


@pytest.mark.parametrize("profile", PROFILES)
@given(html=soups(), data=st.data())
def test_elements_are_those_of_the_page(profile: str, html: str, data: st.DataObject) -> None:
    """Each element is one of the page's, in the same order and with the same parent."""
    rules = PROFILES[profile]
    page = rules.cut(rules.parse(html), "")
    n = len(page.blocks)
    labels = data.draw(st.one_of(st.just([True] * n), st.lists(st.booleans(), min_size=n, max_size=n)))
    for i, node in enumerate(page.tree.nodes):
        node.set(NUMBER, str(i))

    made = list(main_tree(page, mask_of(page, np.array(labels, dtype=np.bool_))).iter())

    numbers = [int(element.get(NUMBER, "-1")) for element in made]
    assert numbers == sorted(set(numbers))
    for element, number in zip(made, numbers, strict=True):
        parent = element.getparent()
        around = -1 if parent is None else int(parent.get(NUMBER, "-1"))
        assert around == page.tree.parent[number]


@pytest.mark.parametrize("engine", ["random", "v1.0"])
@given(html=soups(), seed=st.integers(0, 9))
def test_text_is_in_the_page_in_order(engine: str, html: str, seed: int) -> None:
    """Every kept text occurs in the source in order; all text of main blocks is kept, unless it is hidden. It is the
    same when Main-HTML is parsed again, and nothing in it runs.
    """
    case = Case(html, engine=engine, seed=seed)
    check(case, run(case))
