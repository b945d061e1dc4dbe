"""The decision on the tree of a page: groups of like siblings and structures are main as a whole or not at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose import first_labels
from scrapy_dripper.choose.decision import DecisionRule, best_cut, decide
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.page import Page
from scrapy_dripper.page.vocabulary import found_in
from scrapy_dripper.structures.callouts import ALERTS, CALLOUT_FAMILIES, callout_names, has_callout_class
from scrapy_dripper.testing import page as page_of

TEXT = "The ferry leaves the northern pier at nine and comes back after dark, when the gulls have gone to sleep."


def labels(page: Page, chances: list[float]) -> str:
    """Return the label of each block: "1" if it is main."""
    size = np.array([len(text.split()) for text in page.blocks.text], dtype=np.float32)
    found = first_labels(ScoredPage(page, Labels(np.array(chances, dtype=np.float32), sizes=size)))
    return "".join("1" if one else "0" for one in found)


def run(tag: str, n: int) -> str:
    return "".join(f"<{tag} class=row>{TEXT}</{tag}>" for _ in range(n))


ROWS = f"<article>{run('p', 12)}</article><aside>{run('p', 12)}</aside>"


@pytest.mark.parametrize(
    ("body", "chances", "expected"),
    [
        # An article whose probabilities sink is whole, and so is the thread behind a first post.
        (ROWS, [0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.5, 0.45, 0.45, 0.4] + [0.05] * 12, "1" * 12 + "0" * 12),
        # A single paragraph of a list that is not main does not become main.
        (ROWS, [0.9] * 12 + [0.1, 0.1, 0.6] + [0.1] * 9, "1" * 12 + "0" * 12),
        # What the model is sure of pays its price.
        (ROWS, [0.99] * 6 + [0.01] * 18, "1" * 6 + "0" * 18),
        # Blocks of other shapes are decided one by one.
        (
            f"<div><h2>A title</h2><p>{TEXT}</p><div>{TEXT}</div><p>{TEXT}</p></div>",
            [0.9, 0.95, 0.1, 0.95],
            "1101",
        ),
        # So are the rows of a table that lays out a page, with a menu beside the text.
        (
            f"<table>{(row := f'<tr><td>{TEXT}</td></tr>')}<tr><td>{TEXT}</td><td>{run('p', 3)}</td></tr>{row}</table>",
            [0.7, 0.42, 0.97, 0.97, 0.97, 0.7],
            "101111",
        ),
        # But a table with header cells is data.
        (
            f"{run('p', 3)}<table><tr><th>Pay<p>in dollars</p></th></tr>{'<tr><td>1950</td></tr>' * 6}</table>",
            [0.9] * 3 + [0.95, 0.95] + [0.42] * 6,
            "1" * 11,
        ),
        # Titles of panels may be less likely than text.
        (f"<div role=tablist><a role=tab>One</a> <a role=tab>Two</a></div>{run('p', 3)}", [0.3] + [0.9] * 3, "1111"),
        ("<p>a</p>", [0.9], "0"),  # too few words can be expected to be main
    ],
    ids=["sinking", "one of many", "half and half", "other shapes", "layout", "data", "tabs", "nothing"],
)
def test_groups_are_whole(body: str, chances: list[float], expected: str) -> None:
    assert labels(page_of(body), chances) == expected


@pytest.mark.parametrize("types", [{"forum": 0.3}, {}])
def test_of_each_post_the_button_is_left_out(types: dict[str, float]) -> None:
    """The price of a long thread of which each post is in part is that of one."""
    page = page_of(f"<div class=post><p>{TEXT}</p><a>Reply to this post</a></div>" * 200)
    chances = np.array([0.9, 0.3] * 200, dtype=np.float32)

    assert first_labels(ScoredPage(page, Labels(chances, page_types=types))).tolist() == [True, not types] * 200


SPLIT = {
    "code of lines": "<pre><div>first one</div><div>second one</div></pre>",
    "list": "<ol><li><p>first one</p><li><p>second one</p></ol>",
    "definitions": "<dl><dt>first one</dt><dd>second one</dd></dl>",
    "table": "<table><tr><td><p>first one</p></tr><tr><td><p>second one</p></tr></table>",
    "call-out": '<div class="admonition note"><h4>first one</h4><p>second one</p></div>',
    "figure": "<figure><p>first one</p><figcaption>second one</figcaption></figure>",
    "folded": "<details><summary>first one</summary><p>second one</p></details>",
    "quotation": "<blockquote><p>first one</p><footer>second one</footer></blockquote>",
}


@pytest.mark.parametrize("structure", SPLIT.values(), ids=SPLIT)
def test_a_structure_is_whole(structure: str) -> None:
    page = page_of(f"<main>{run('p', 3)}{structure}</main>")
    soft = structure[1:4] not in ("ol>", "tab")  # what authors write is rarely boilerplate

    assert labels(page, [0.95, 0.95, 0.95, 0.35, 0.9])[3:] == "11"
    assert labels(page, [0.95, 0.95, 0.95, 0.15, 0.6])[3:] == ("11" if soft else "00")
    assert labels(page, [0.95, 0.95, 0.95, 0.01, 0.3])[3:] == "00"


@pytest.mark.parametrize(("number", "kept"), [(3, "11"), (4, "00")])
def test_many_lists_of_terms_are_cards_or_users(number: int, kept: str) -> None:
    """They are nothing that authors write, which is rarely boilerplate."""
    page = page_of(f"<main>{run('p', 3)}{'<dl class=x><dt>first one</dt><dd>second one</dd></dl>' * number}</main>")

    assert labels(page, [0.95, 0.95, 0.95, *([0.15, 0.35] * number)])[3:5] == kept


TREES = st.recursive(
    st.sampled_from(["<p class=a>w</p>", "<p class=b>w</p>", "w<br><br>", "<li>w</li>"]),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>",
        st.sampled_from(["div", "section", "figure"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=8,
)


@given(TREES, st.data())
def test_each_unit_has_the_least_energy_given_its_parts(body: str, data: st.DataObject) -> None:
    """The labels are those of a slow search that is written as the docstring of the module says."""
    page = page_of(body)
    n = len(page.blocks)
    p = np.array(data.draw(st.lists(st.floats(0, 1, width=32), min_size=n, max_size=n)), dtype=np.float32)
    size = np.array(data.draw(st.lists(st.integers(20, 60), min_size=n, max_size=n)), dtype=np.float32)
    rule = DecisionRule(price=data.draw(st.sampled_from([0.0, 5.0, 40.0])), decay=0.5)
    is_thread = data.draw(st.booleans())
    types = {"forum": 0.2 if is_thread else 0.1}
    found = best_cut(p, size, rule.recall_of(types), rule.min_words)
    if found is None:
        assert not decide(page.tree, p, size, rule, types).any()
        return
    cut, expected = min(found[0], rule.most_cut), found[1]
    gain = [(w + 0.3) * (q - cut) * 100 / expected for w, q in zip(size.tolist(), p.tolist(), strict=True)]

    def least(unit: Unit) -> tuple[float, list[int], bool]:
        """Return minus the least energy of a unit, its main blocks, and whether it is in part."""
        blocks = blocks_of(unit)
        whole = sum(gain[block] for block in blocks)
        best = max((0.0, [], False), (whole, blocks, False), key=lambda one: one[0])
        if isinstance(unit, int):
            return best
        parts = [least(part) for part in unit.parts]
        mixed = sum(one[0] for one in parts)
        if unit.depth is not None:
            in_part = sum(one[2] for one in parts)
            counted = len(parts) - in_part if is_thread and in_part >= 0.8 * len(parts) else len(parts)
            mixed -= rule.price * counted**0.5 * rule.decay**unit.depth
        return (mixed, [block for one in parts for block in one[1]], True) if mixed > best[0] else best

    _, main, _ = least(units_of(page))
    assert np.flatnonzero(decide(page.tree, p, size, rule, types)).tolist() == sorted(main)


class Unit(NamedTuple):
    """Blocks and units that are decided together, with a price if the depth is known."""

    parts: list[Unit | int]
    depth: int | None


def blocks_of(unit: Unit | int) -> list[int]:
    return [unit] if isinstance(unit, int) else [block for part in unit.parts for block in blocks_of(part)]


def units_of(page: Page) -> Unit:
    """Return the units of a page, in its root."""
    tree = page.tree
    blocks = [range(a, b) for a, b in zip(tree.block_start, tree.block_end, strict=True)]

    def visit(node: int, depth: int) -> Unit | int:
        inside = [child for child in range(node + 1, tree.end[node]) if blocks[child] and is_part(child, node)]
        if len(blocks[node]) == 1:
            return blocks[node][0]
        alone = set(blocks[node]) - {block for child in inside for block in blocks[child]}
        groups: dict[object, list[Unit | int]] = {block: [block] for block in alone}
        for child in inside:
            shape = child if tree.nodes[child].tag == "td" else ("shape", tree.tag_class[child])
            groups.setdefault(shape, []).append(visit(child, depth + 1))
        is_figure = tree.nodes[node].tag == "figure"
        units = [Unit(some, depth + 1) if len(some) > 1 else some[0] for some in groups.values()]
        return Unit(units, depth if is_figure else None)

    def is_part(child: int, node: int) -> bool:
        """True for the outermost of the elements below a node that hold other blocks than it."""
        up = tree.parent[child]
        while up != node and blocks[up] == blocks[node]:
            up = tree.parent[up]
        return up == node and blocks[child] != blocks[node]

    root = visit(0, 0)
    return root if isinstance(root, Unit) else Unit([root], None)


_TOKENS = st.sampled_from([*CALLOUT_FAMILIES, *map(str.upper, ALERTS), *ALERTS, "callout-tip", "fade", "card", ""])


@given(st.lists(_TOKENS, max_size=4), st.sampled_from([" ", "\n", "\u00a0", "-"]))
def test_call_outs_have_one_of_the_names_that_are_searched(tokens: list[str], between: str) -> None:
    name = between.join(tokens)
    assert found_in(name, callout_names) or not has_callout_class(name)
