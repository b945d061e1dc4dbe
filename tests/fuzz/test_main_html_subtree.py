"""Main-HTML is a subtree of the page, for any markup and labels: its elements, its text, and how it is parsed again."""

from __future__ import annotations

import re
from itertools import compress

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from fuzz.checks import is_part, source_text, visible_text
from fuzz.mutate import ATTRIBUTES, SNIPPETS, TAGS
from scrapy_dripper.choose import mask_of
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.output.main_html import main_tree, to_html
from scrapy_dripper.page import Page
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures.hidden import hidden_nodes
from tests.security.checks import active

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


def read(profile: str, html: str, draw: st.DataObject) -> tuple[Page, npt.NDArray[np.bool_]]:
    """Return the page of a document and labels for its blocks."""
    rules = PROFILES[profile]
    page = rules.cut(rules.parse(html), "")
    n = len(page.blocks)
    labels = draw.draw(st.one_of(st.just([True] * n), st.lists(st.booleans(), min_size=n, max_size=n)))
    return page, np.array(labels, dtype=np.bool_)


def words(text: str) -> str:
    return re.sub(r"\W", "", text)


profiles = pytest.mark.parametrize("profile", PROFILES)


@profiles
@given(html=soups(), data=st.data())
def test_elements_are_those_of_the_page(profile: str, html: str, data: st.DataObject) -> None:
    """Each element is one of the page's, in the same order and with the same parent."""
    page, main = read(profile, html, data)
    for i, node in enumerate(page.tree.nodes):
        node.set(NUMBER, str(i))

    made = list(main_tree(page, mask_of(page, main)).iter())

    numbers = [int(element.get(NUMBER, "-1")) for element in made]
    assert numbers == sorted(set(numbers))
    for element, number in zip(made, numbers, strict=True):
        parent = element.getparent()
        around = -1 if parent is None else int(parent.get(NUMBER, "-1"))
        assert around == page.tree.parent[number]


@profiles
@given(html=soups(), data=st.data())
def test_text_is_in_the_page_in_order(profile: str, html: str, data: st.DataObject) -> None:
    """Every kept text occurs in the source in order; all text of main blocks is kept, unless it is hidden."""
    page, main = read(profile, html, data)

    kept = words(visible_text(main_tree(page, mask_of(page, main))))

    assert is_part(kept, words(source_text(html)))
    if hidden_nodes(page.tree).any():
        return
    if profile == "native":
        assert kept == words("".join(compress(page.blocks.text, main.tolist())))
    for text in compress(page.blocks.text, main.tolist()):
        assert is_part(words(text), kept)


@profiles
@given(html=soups(), data=st.data())
def test_reads_again_as_it_was_written(profile: str, html: str, data: st.DataObject) -> None:
    page, main = read(profile, html, data)
    tree = main_tree(page, mask_of(page, main))

    again = parse(etree.tostring(tree, method="html", encoding="unicode") + " ")

    assert words(visible_text(again)) == words(visible_text(tree))


@profiles
@given(html=soups(), data=st.data())
def test_nothing_in_it_runs(profile: str, html: str, data: st.DataObject) -> None:
    page, main = read(profile, html, data)
    assert active(to_html(main_tree(page, mask_of(page, main)))) is None
