"""Pages for which a function once read the same text again for each of many elements. It now reads a text only once.

The tests count the characters that the function is given, or the lines of code that run. If a page is twice as long,
the count may at most double.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.choose import duplicates, with_replies
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction, FallbackReason, Metadata
from scrapy_dripper.declared.elements import MOST_ELEMENTS, MOST_VALUES
from scrapy_dripper.fallback import fall_back, metadata, shell, trafilatura_output
from scrapy_dripper.fallback.methods import MAX_PARAGRAPHS, limited_tree
from scrapy_dripper.output import reader
from scrapy_dripper.page.page import Page
from scrapy_dripper.structures import code, formulas
from scrapy_dripper.structures.footnotes import without_label
from scrapy_dripper.structures.items import Item, Paragraph, Text
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.testing import page as page_of
from tests.steps import is_linear, lines_of

handlers = import_module("scrapy_dripper.output.content_list")  # whose name is that of its function as well

HEAD = "<h1>Title</h1><p>" + "word " * 40 + "</p>"

READ: dict[str, tuple[Any, str, Callable[[int], str]]] = {
    "numbers in each other": (
        code, "_digits", lambda n: HEAD + "<div class=ln>" * n + "<i>1</i>" * 2 * n + "a" + "</div>" * n,
    ),
    "numbers beside each other": (
        code, "_digits", lambda n: HEAD + "<div class=ln>" + "<pre class=ln>1</pre>" * 4 * n + "a</div>",
    ),
    "opening delimiters": (
        formulas, "_prose", lambda n: HEAD + "<p>" + "\\( " * 4 * n + "and the of it\\)",
    ),
    "texts for screen readers": (
        handlers, "tells_of_window", lambda n: HEAD + "<p>a <b>" + "<span class=sr-only>" * n + "1 " * 3 * n,
    ),
    "numbers for screen readers": (
        reader, "numbers_of", lambda n: HEAD + "<p>" + "1 a " * n + "<span class=sr-only>1</span>" * n,
    ),
    "annotations": (
        formulas, "balanced", lambda n: HEAD + "<p>x<math>" + "<annotation encoding=tex>" * n + "{ a" * 4 * n,
    ),
    "images in a link": (
        reader, "spaced", lambda n: f"<p>words<a title=qqq href='http://{'a.b-' * n}'>" + "<p><img src=b.png>" * n,
    ),
}  # fmt: skip
"""By name: a module, its function that reads, and a function that returns the page of a size."""


def _asciimath(n: int) -> str:
    return f"`{'((' * n}x{')(d))' * n}`"


def _references(n: int) -> str:
    """Return a drawing in which each group shows the one before it twice."""
    groups = "".join(f"<g id=g{i}>{f'<use href=#g{i - 1} />' * 2}</g>" for i in range(1, n))
    return f"<svg><defs><g id=g0><text>twice</text></g>{groups}</defs><use href=#g{n - 1} /></svg>"


MULTIPLYING: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "AsciiMath": (_asciimath, _asciimath),
    "AsciiMath in a script": (
        lambda n: f"<script type=math/asciimath>{_asciimath(n)[1:-1]}</script>", _asciimath,
    ),
    "srcset": (
        lambda n: f"<img alt=boat srcset='{','.join(f'{i}.png {i}w' for i in range(250 * n))}'>",
        lambda n: f"![boat]({250 * n - 1}.png)",
    ),
    "<picture> in each other": (
        lambda n: "<picture><source srcset='s.png 1w, l.png 2w'>" * n + "<img alt=boat>", lambda _: "![boat](l.png)",
    ),
    "<use>": (lambda n: f"before {_references(n)} after", lambda _: "before after"),
    "<use> in a formula": (
        lambda n: f"before <mjx-container jax=SVG>{_references(n)}</mjx-container> after", lambda _: "before",
    ),
}  # fmt: skip
"""By name: what could take exponential time or room, and what is written for it."""


def _fall_back(page: str) -> Extraction:
    extractor = Extractor(Config(processes=0), engine=FakeEngine())
    return extractor.fall_back(Document(page), FallbackReason.ENGINE_ERROR)


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return Extractor(Config(processes=0, fallback="empty", limits={"output": 10_000}), engine=FakeEngine())


@pytest.mark.parametrize("name", READ)
def test_what_is_read_grows_with_the_page(name: str, extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, page = READ[name]
    read = getattr(module, function)
    chars = 0

    def counted(text: str) -> Any:
        nonlocal chars
        chars += len(text)
        return read(text)

    monkeypatch.setattr(module, function, counted)
    counts = []
    for n in (110, 220, 440):
        chars = 0
        (found,) = extractor.extract([Document(page(n))])
        assert found.fallback_reason is None
        counts.append(chars)

    assert counts[2] <= 2.5 * counts[1] + 1_000, counts
    assert counts[2] <= 60 * len(page(440)), counts


@pytest.mark.parametrize("name", MULTIPLYING)
def test_what_could_multiply_is_read_once(name: str, extractor: Extractor) -> None:
    """A formula between backquotes stays as it stands, the largest of 100,000 candidates is the image, and no
    reference in a drawing is followed.
    """
    made, written = MULTIPLYING[name]

    (found,) = extractor.extract([f"{HEAD}<p>{made(400)}"])
    assert found.fallback_reason is None
    assert written(400) in (found.markdown or "").replace("\\", "")
    assert len(found.main_html or "") <= 2 * len(made(400)) + 1_000
    assert is_linear(extractor.extract, lambda n: [f"{HEAD}<p>{made(n)}"], 100)


def test_nodes_in_boxes_that_are_named_as_line_numbers(extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single letter deep in them proves that they are no line numbers. It is found without reading each box again."""
    is_numbers, read = code.is_numbers, 0

    def counted(element: Any) -> bool:
        nonlocal read
        read += sum(1 for _ in element.iter()) if not code.is_deep(element) else 0
        return is_numbers(element)

    monkeypatch.setattr(code, "is_numbers", counted)
    extractor.extract([HEAD + ("<div class=ln>" * 400 + "a" + "</div>" * 400) * 10])
    assert read <= 30 * 4_000


def test_elements_for_screens() -> None:
    def run(page: Page) -> None:
        p = np.full(len(page.blocks), 0.5, dtype=np.float32)
        list(duplicates._copies(ScoredPage(page, Labels(p)), p > 0))

    def made(n: int) -> Page:
        return page_of("<div class=mobile>" * n + "".join(f"<p>x{i}</p>" for i in range(2 * n)))

    assert is_linear(run, made, 220)


@pytest.mark.parametrize("close", ["", "</div>"], ids=["in each other", "beside each other"])
def test_replies_that_nothing_is_main_of(close: str) -> None:
    def run(page: Page) -> None:
        p = np.array([0, 1] + [0] * (len(page.blocks) - 2), dtype=np.float32)
        with_replies(ScoredPage(page, Labels(p, page_types={"forum": 1.0})), p > 0)

    def made(n: int) -> Page:
        return page_of(f"<div class=post><b>Ann, 2 May 2021</b><p>{HEAD}{close}" * n)

    assert is_linear(run, made, 60)


@pytest.mark.parametrize("levels", [100, 400])
def test_values_in_the_data_of_a_page(levels: int) -> None:
    """A value is read again with each one around it. There is one limit for all of them together."""
    data = '{"body":' * levels + f"[{'0,' * 1_000}0]" + "}" * levels
    document = Document(f'<body><div id=root></div><script id="__NEXT_DATA__">{data}</script>')

    assert lines_of(lambda: shell.fill_shell(document, Config())) < 50 * len(document.html)


def test_a_page_has_only_so_many_names() -> None:
    metas = "".join(f"<meta property=og:title content='name {i}'>" for i in range(1_000))
    names = page_of(metas + "<p>x").declared.headlines

    assert names == tuple(f"name {i}" for i in range(MOST_ELEMENTS))


def test_what_mathjax_drew_is_looked_at_once() -> None:
    """Each drawing without another form of its formula is kept."""
    from scrapy_dripper.page import nodes

    searched = 0

    class Container:
        def find(self, _tag: str) -> None:
            nonlocal searched
            searched += 1

    container = Container()

    class Drawing:
        tag = "svg"

        def iterancestors(self, _tag: str) -> Iterator[Container]:
            return iter([container])

    drawings: list[Any] = [Drawing() for _ in range(100)]
    assert nodes.drawn(drawings) == set(drawings)
    assert searched == 1


def test_a_footnote_of_dots_is_read_once() -> None:
    class Counted(tuple[Item, ...]):
        cut = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            if isinstance(key, slice):
                Counted.cut += len(found)
                return Counted(found)
            return found

    dots, words = Paragraph((Text("."),)), Paragraph((Text("words"),))
    items = Counted([dots] * 1_000 + [words] * 10)

    assert without_label(items, "1") == (words,) * 10
    assert Counted.cut <= len(items)


@pytest.mark.parametrize("shape", ["<div>", "<table><tr><td>", "<ul><li>"])
def test_trafilatura_sees_no_deep_trees(shape: str) -> None:
    """Elements beyond the maximum depth become siblings, and keep all their text."""
    page = HEAD + shape * 150 + "".join(f"<p>text number {i}</p>" for i in range(100))
    root, truncated = limited_tree(page, flat=True)

    assert max(len(list(node.iterancestors())) for node in root.iter()) == 49
    assert not truncated
    assert "".join(root.itertext()).count("text number") == 100
    found = _fall_back(page)
    assert "text number 99" in (found.text or "")


@pytest.mark.parametrize(("paragraphs", "asked"), [(1_000, True), (MAX_PARAGRAPHS + 1, False)])
def test_trafilatura_gets_no_second_opinion_on_pages_of_paragraphs(
    paragraphs: int, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jusText would search all paragraphs for each one."""
    fast: list[bool] = []
    extract = trafilatura_output.bare_extraction

    def noted(*args: Any, **options: Any) -> Any:
        fast.append(options["fast"])
        return extract(*args, **options)

    monkeypatch.setattr(trafilatura_output, "bare_extraction", noted)
    page = HEAD + "<p>Cons</p>" * paragraphs
    found = _fall_back(page)
    assert (found.text or "").count("Cons") >= 1_000
    assert fast == [not asked]


@pytest.mark.parametrize(("cells", "kept"), [(5, True), (400, False)])
def test_trafilatura_sees_no_table_of_spans(cells: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trafilatura writes a cell for each slot that a spanning cell covers."""
    spans: list[int] = []
    extract = trafilatura_output.bare_extraction

    def noted(root: Any, **options: Any) -> Any:
        spans.append(len(root.xpath("//td/@colspan | //td/@rowspan")))
        return extract(root, **options)

    monkeypatch.setattr(trafilatura_output, "bare_extraction", noted)
    rowspan, colspan = (2, 10) if kept else (65_534, 1_000)
    rows = "".join(f'<tr><td rowspan="{rowspan}" colspan="{colspan}">Number {n}.' for n in range(cells))
    page = f"{HEAD}<p>{'Some words before it. ' * 20}<table>{rows}</table>"
    found = _fall_back(page)
    assert all(f"Number {n}." in (found.text or "") for n in range(cells))
    assert spans == [2 * cells if kept else 0]


# ---------------------------------------------------------------------- so long that old code would not have finished
LONG = 50_000


def _about(head: str, body: str = "") -> Metadata:
    page = f"<!doctype html><html><head>{head}</head><body>{body}<p>Text of the page.</p></body></html>"
    return metadata(Document(page, url="https://example.org/a"), Config())


def _ld(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f'<script type="application/ld+json">{text}</script>'


def _article(**fields: object) -> dict[str, object]:
    return {"@context": "https://schema.org", "@type": "NewsArticle", **fields}


@pytest.mark.parametrize(
    "script",
    [
        '"author" ' * 12_000,
        '"publisher": {"name ' * 12_000,
        '"' + '\\"' * LONG,
        '"@type":[' * 20_000,
        "[" * LONG,
        '"author" "names" "a b" ' * 5_000,
        {"@graph": [{"@type": "Article", "@id": f"#{i}", "author": {"@id": f"#{i + 1}"}} for i in range(5_000)]},
        {"@type": "BreadcrumbList", "itemListElement": [{"position": float("nan"), "name": "x"}] * 20_000},
        _article(author=[[[{"name": {"name": ["x"] * 1_000}}]]] * 1_000),
        _article(author="Ann Bell and " * LONG),
        _article(author={"@id": "#a", "name": None}, **{"@id": "#a"}),
        [[[[[[_article()]]]]]] * 10_000,
    ],
    ids=range(12),
)
def test_hostile_json_ld(script: object) -> None:
    assert _about("<title>A title</title>" + _ld(script)).title == "A title"


@pytest.mark.parametrize(
    ("meta", "headline"),
    [
        ("", "<" * LONG),
        ("", "<!-- >" * LONG),
        ("", "\\u003c!-- \\u003e" * 9_000),
        ("", '\\u0022author\\u0022 "' * 9_000),
        (f'<meta name="description" content="{"&lt;" * LONG}"><meta name="author" content="{"(" * LONG}">', ""),
    ],
    ids=range(5),
)
def test_hostile_strings(meta: str, headline: str) -> None:
    assert _about(meta + _ld(_article(author="Ann Bell", headline=headline))).author == "Ann Bell"


def test_names_are_as_many_as_on_real_pages() -> None:
    names = [f"Ann Bell{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(MOST_VALUES + 100)]
    expected = "; ".join(names[:MOST_VALUES])
    assert MOST_VALUES == 500
    assert _about("".join(f'<meta name="citation_author" content="{name}">' for name in names)).author == expected
    assert _about(_ld(_article(author=names))).author == expected
    assert _about(_ld(_article(author=[{"@type": "Person", "name": name} for name in names]))).author == expected


@pytest.mark.parametrize(
    "body",
    [
        '<div class="byline">' * LONG,
        '<div class="breadcrumb">' * LONG + "<a href=/>x</a>",
        '<i itemprop="author">' * LONG,
        '<p itemprop="itemListElement" typeof="ListItem">' * LONG,
        "<h1>" * LONG,
        "<h1>x</h1>" * LONG,
        "<time>" * LONG,
        '<b class="date">May 6, </b>' * LONG,
        "<h1>A</h1>" + "<p>2024 " * LONG,
        '<p class="' + "date " * LONG + '">',
        "<p " + 'itemprop="' + "author " * LONG + '">',
        "<a rel=author>By Ann and " + "Bo Chan and " * LONG,
        "".join(f"<p class='author-{i}'>" for i in range(20_000)),
        '<footer><a href="/licenses/by/4.0">x</a>' * 20_000,
    ],
    ids=range(14),
)
def test_hostile_bodies(body: str) -> None:
    assert _about("<title>A title</title>" + _ld(_article(headline="A title")), body).language is None


@pytest.mark.parametrize(
    "attack",
    [
        "<p>" + "\\(" * LONG,
        "<p>" + " \\[ x" * LONG,
        _ld('"@type":[' * 20_000),
        _ld(_article(articleBody="<a " + "=" * LONG)),
    ],
    ids=range(4),
)
def test_fallback(attack: str) -> None:
    sentence = "This is the first sentence of an article that is long enough to be one. "
    page = Document(f"<html><body><article><p>{sentence * 5}</p>{attack}</article></body></html>")
    found = fall_back(page, Config(fallback="trafilatura"), FallbackReason.NO_MAIN)
    assert found.error is None
    assert sentence.strip() in (found.text or "")
