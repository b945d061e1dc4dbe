"""Scores of main DOM nodes, as defined by Alarte and Silva."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_dripper.page import Page
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.evaluation.blocks import main_nodes, node_prf

PAGE = (
    "<body><ul><li>Menu</li></ul><div><h1>Tides</h1><p>It <b>comes</b> in.</p><figure><img src=a.png></figure></div>"
    "<footer>End</footer></body>"
)
BLOCKS = ["Menu", "Tides", "It comes in.", "End"]


def page() -> Page:
    return cut(parse(PAGE))


def names(labels: list[bool]) -> list[str]:
    """Return the tags of the main elements and the main texts."""
    one = page()
    nodes = one.tree.nodes
    tags = [str(node.tag) for node in nodes]
    texts = [node.text for node in nodes] + [node.tail for node in nodes]
    chosen = main_nodes(one, np.array(labels))
    return [str(name) for name, is_main in zip([*tags, *texts], chosen, strict=True) if is_main]


def test_definition_2_3_a_subtree_is_main_if_all_of_its_text_is() -> None:
    """This includes the elements around the text, and other nodes between them (Definition 2.3)."""
    assert page().blocks.text == BLOCKS
    assert names([False, True, True, False]) == [
        *("div", "h1", "p", "b", "figure", "img"),
        *("Tides", "It ", "comes", " in."),
    ]

    assert names([False, False, True, False]) == ["p", "b", "It ", "comes", " in."], "not the element around"
    assert names([False] * 4) == []
    assert names([True] * 4)[:2] == ["body", "ul"], "the root of a page is its body (Definition 2.1)"


def test_section_4_precision_and_recall() -> None:
    """Ten nodes are main. Five of them are found, and also four nodes of the menu (such as its list, item and text)."""
    wanted = np.array([False, True, True, False])
    assert node_prf(page(), wanted, wanted) == (1, 1, 1)
    precision, recall, f1 = node_prf(page(), np.array([True, False, True, False]), wanted)
    assert (precision, recall) == (5 / 8, 5 / 10)
    assert f1 == pytest.approx(2 * 5 / (8 + 10))
    assert node_prf(page(), ~wanted & False, ~wanted & False) == (1, 1, 1)
    assert node_prf(page(), ~wanted & False, wanted) == (0, 0, 0)


@pytest.mark.parametrize("html", ["<img src=a.png>", "<p></p>", "<frameset></frameset>"])
def test_a_page_without_blocks_has_no_main_nodes(html: str) -> None:
    one = cut(parse(html))

    assert not main_nodes(one, np.zeros(len(one.blocks), dtype=np.bool_)).any()
