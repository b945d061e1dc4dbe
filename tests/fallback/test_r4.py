"""The fallback ``r4``, compared with the definitions and algorithms as written in the paper, and on some pages."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import HtmlElement

from scrapy_dripper.config import Config, MethodOptions
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.fallback import fall_back
from scrapy_dripper.fallback.methods import Elements, by_r4, main_elements
from scrapy_dripper.page.parse import parse

SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
MENU = "".join(f'<li><a href="/{i}">Topic {i}</a></li>' for i in range(12))
ARTICLE = f"<h1>Tides</h1><p>{SENTENCE * 4}</p><p>{SENTENCE * 3}</p><p>{SENTENCE * 5}</p>"
PAGE = f"""<html><head><title>Tides</title></head><body><div class="top"><ul>{MENU}</ul></div>
<div class="page"><div class="story">{ARTICLE}</div><div class="side"><ul>{MENU}</ul></div></div>
<div class="end"><p><a href="/imprint">Imprint</a></p></div></body></html>"""


def extracted(html: str) -> Extraction:
    return fall_back(Document(html, "http://example.com/"), Config(fallback="r4"), FallbackReason.ENGINE_ERROR)


# ---------------------------------------------------------------------------- the paper, word by word
UNRATED = "A NAV HR SPAN EM BODY SCRIPT HEADER H1 H2 H3 H4 H5 BR IFRAME".split()


def leaves(node: HtmlElement, distance: int = 1, linked: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Yield the texts below a node, the number of edges to each, and whether it is in a link."""
    linked = linked or node.tag == "a"
    yield node.text or "", distance, linked
    for child in node:
        yield from leaves(child, distance + 1, linked)
        yield child.tail or "", distance, linked


def inner_text(node: HtmlElement) -> str:
    return " ".join(" ".join(text for text, _, _ in leaves(node)).split())


def child_nodes(node: HtmlElement) -> int:
    texts = [node.text, *(child.tail for child in node)]
    return len(node) + sum(bool(text and text.strip()) for text in texts)


def depth_in(body: HtmlElement, node: HtmlElement) -> int:
    return 0 if node is body else 1 + depth_in(body, node.getparent())


def definition_3_1(body: HtmlElement, n: HtmlElement) -> list[float]:
    in_link = any(a.tag == "a" for a in (n, *n.iterancestors()))
    word_ratio = sum(len(text.split()) / distance for text, distance, linked in leaves(n) if not (linked or in_link))
    links = len(list(n.iter("a")))
    max_depth = max(depth_in(body, node) + (child_nodes(node) > 0) for node in body.iter())
    depth = depth_in(body, n)
    position_ratio = 1 if depth <= max_depth / 2 else max_depth / depth - 1
    return [word_ratio, 1 if links == 0 else 1 / links, 0 if child_nodes(n) <= 2 else 1, position_ratio]


def definition_3_2(ratios: list[list[float]]) -> list[list[float]]:
    columns = []
    for values in zip(*ratios, strict=True):
        mean = sum(values) / len(values)
        deviation = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        columns.append([(value - mean) / (deviation if deviation > 1e-12 else 1) for value in values])
    return [list(point) for point in zip(*columns, strict=True)]


def algorithm_1(points: list[list[float]]) -> list[float]:
    return [sum(point[prop] for point in points) / len(points) for prop in range(4)]


def algorithm_2(nodes: list[HtmlElement], points: list[list[float]], centroid: list[float]) -> list[HtmlElement]:
    distance = {}
    for node, point in zip(nodes, points, strict=True):
        distance[node] = round(sum((point[i] - centroid[i]) ** 2 for i in range(4)), 9)
    rated, c_set = list(nodes), []
    for _ in range(min(3, len(nodes))):
        node = next(n for n in rated if not any(distance[other] > distance[n] for other in rated))
        rated.remove(node)
        c_set.append(node)
    return c_set


def algorithm_3(c_set: list[HtmlElement]) -> list[HtmlElement]:
    kept = list(c_set)
    for n1 in c_set:
        for n2 in c_set:
            if inner_text(n1) == inner_text(n2) and n1 in n2.iterancestors() and n2 in kept:
                kept.remove(n2)
    return kept


def algorithm_4(c_set: list[HtmlElement]) -> list[HtmlElement]:
    text_pond = {n: len(inner_text(n).split()) / len(list(n.iter())) for n in c_set}
    best = max(text_pond.values(), default=0)
    chosen = [n for n in c_set if text_pond[n] == best > 0]
    return [n for n in c_set if any(n is m or n.getparent() is m.getparent() for m in chosen)]


def algorithm_5(main: list[HtmlElement], tr: float = 1.5, hr: int = 7) -> set[HtmlElement]:
    removed = set()
    for n in (node for root in main for node in root.iter()):
        in_link = any(a.tag == "a" for a in n.iterancestors())
        text = "".join(inner_text(n).split())
        outside = "".join("".join(t for t, _, linked in leaves(n) if not (linked or in_link)).split())
        if len(text) > tr * len(outside) and len(list(n.iter("a"))) > hr:
            removed.add(n)
        same = len({child.tag for child in n}) == 1 and len(n) == child_nodes(n) >= 2
        links = all(child_nodes(child) == 1 and len(child) and child[0].tag == "a" for child in n)
        if same and links and n.find(".//img") is None:
            removed.add(n)
    return {node for root in removed for node in root.iter()}


def the_paper(body: HtmlElement) -> set[HtmlElement]:
    """Return the main content of a page according to the paper."""
    rated = [n for n in body.iter() if child_nodes(n) and n.tag.upper() not in UNRATED]
    paths = [sum(a in rated for a in (n, *n.iterancestors())) for n in body.iter()]
    if max(paths) < sum(child in rated for child in body):
        main = [body]
    else:
        points = definition_3_2([definition_3_1(body, n) for n in rated])
        main = algorithm_4(algorithm_3(algorithm_2(rated, points, algorithm_1(points)))) if rated else []
    nodes = {node for root in main for node in root.iter()}
    rest = nodes - algorithm_5(main)
    own = "".join((n.text or "") + "".join(child.tail or "" for child in n) for n in rest)
    return rest if own.strip() else nodes


texts = st.sampled_from(["", "", "one", "two words", "a sentence of six words here"])
tags = st.sampled_from("div div section p ul li a span td h2 img b".split())
trees = st.recursive(
    st.builds(lambda tag, text: (tag, text, [], ""), tags, texts),
    lambda inner: st.builds(lambda *parts: parts, tags, texts, st.lists(inner, max_size=5), texts),
    max_leaves=30,
)


def built(tree: tuple[str, str, list[tuple[str, str, list[object], str]], str], parent: HtmlElement) -> None:
    tag, text, children, tail = tree
    element = parent.makeelement(tag)
    element.text, element.tail = text, tail
    parent.append(element)
    for child in children:
        built(child, element)  # type: ignore[arg-type]


@given(st.lists(trees, max_size=4))
def test_section_3_algorithms_1_to_5(
    forest: list[tuple[str, str, list[tuple[str, str, list[object], str]], str]],
) -> None:
    """Our linear algorithms give the same result as the paper's loops over all pairs."""
    body = parse("<body></body>").find("body")
    assert body is not None
    for tree in forest:
        built(tree, body)
    nodes = list(body.iter())
    number = {node: i for i, node in enumerate(nodes)}
    parent = np.array([-1, *(number[node.getparent()] for node in nodes[1:])])
    end = np.array([i + sum(1 for _ in node.iter()) for i, node in enumerate(nodes)])

    main = main_elements(Elements(nodes, parent, end), MethodOptions(form="paper"))

    assert {node for node, is_main in zip(nodes, main, strict=True) if is_main} == the_paper(body)


@pytest.mark.parametrize("shape", ["nested", "flat", "comb"])
def test_many_elements(shape: str) -> None:
    """Loops over pairs of elements, or over all ancestors of elements, would take far too long here."""
    m = 30_000
    i = np.arange(m)
    if shape == "nested":
        parent, end = i - 1, np.full(m, m)
    elif shape == "flat":
        parent, end = np.where(i > 0, 0, -1), np.where(i > 0, i + 1, m)
    else:
        parent, end = np.where(i % 2, i - 1, np.maximum(i - 2, -1)), np.where(i % 2, i + 1, m)
    nodes: list[Any] = [SimpleNamespace(tag=tag, text="some words", tail="") for tag in ("body", *["div"] * (m - 1))]

    assert main_elements(Elements(nodes, parent, end), MethodOptions()).any()


# ---------------------------------------------------------------------------- pages
def test_an_article_between_menus() -> None:
    found = extracted(PAGE)

    assert found.source == "fallback:r4"
    assert found.title == "Tides"
    assert found.text is not None
    assert found.markdown is not None
    assert found.text.startswith("Tides\n")
    assert found.text.count("sandcastle") == 12
    assert "Topic" not in found.markdown
    assert "Imprint" not in found.markdown
    assert 'class="story"' in str(found.main_html)


def test_a_page_of_few_elements_keeps_its_paragraphs() -> None:
    """According to the paper, only the paragraph with the most words per tag would be main content."""
    story = f"<p>{SENTENCE * 4}</p>" * 4
    page = f'<body><nav><a href="/">Home</a></nav><article>{story}</article><footer>End</footer></body>'

    assert (extracted(page).text or "").count("sandcastle") == 16
    assert (by_r4(page, "", Config(methods={"form": "paper"}), len(page)).text or "").count("sandcastle") == 4


def test_a_page_in_chinese() -> None:
    """Each character is a word. Otherwise, a paragraph would have a single word."""
    story = "".join(f"<p>{'潮水每天涨落两次，沙滩上的每座沙堡都要算上这一点。' * n}</p>" for n in (4, 3, 5))
    found = extracted(PAGE.replace(ARTICLE, story))

    assert (found.text or "").count("沙堡") == 12
    assert "Topic" not in (found.text or "")


def test_a_group_of_links_inside_of_the_content_is_left_out() -> None:
    """Breadcrumbs and lists of sections (section 3.5); a list of pictures with links stays."""
    pictures = "".join(f'<li><a href="/{i}"><img src="/{i}.png" alt="">Beach {i}</a></li>' for i in range(3))
    found = extracted(PAGE.replace("<h1>", f"<ul>{MENU[:120]}</ul><ul>{pictures}</ul><h1>"))

    assert "sandcastle" in (found.text or "")
    assert "Topic" not in (found.text or "")
    assert "Beach 2" in (found.text or "")


def test_an_old_page_is_taken_whole() -> None:
    """If the body has more children than levels, all of them are the content (section 3.1, criterion 3)."""
    found = extracted(f"<body><p>{SENTENCE}</p><p>Second.</p><p>Third.</p><blockquote>Last</blockquote></body>")

    assert (found.text or "").split("\n")[-1] == "Last"
    assert "Second." in (found.text or "")
