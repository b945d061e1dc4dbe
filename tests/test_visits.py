"""Recursive readers and writers visit each node of their input a few times, whatever is nested in whatever.

A writer that visits a child twice doubles its work with each level: 18 nested ``<mstyle>`` once took eight seconds.
Time would show that only on deep input, so the calls of each recursive function are counted and compared with the
number of nodes.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from lxml import html as lxml_html

import scrapy_dripper
from scrapy_dripper import Document
from scrapy_dripper.choose import mask_of
from scrapy_dripper.config import Config
from scrapy_dripper.declared.metadata import metadata_of
from scrapy_dripper.fallback.shell import fill_shell
from scrapy_dripper.output import write
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_json import sanitized, to_json, to_mineru
from scrapy_dripper.output.urls import outlinks
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper.structures import mathml
from tests.trees import BLOCKS, INLINE, KINDS, MATH

PACKAGE = Path(scrapy_dripper.__file__).parent
NO_READERS = frozenset(
    "learning cli commands crawl corpus inspection child workers config.py checks.py rules.py".split()
)
"""The rooms and modules that read no trees of pages, or leave that to others."""
READERS = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in NO_READERS]
VISITS = 8
"""Maximum number of calls of a recursive function, per node of its input."""
WRITTEN = 4
"""How often :func:`run` writes each page. Chunks are written twice: to measure them, and as they are."""
DEPTH, SEEDS = 200, 3
NOT_HERE = {
    "declared/text.py:_text": "the links in a heading, of at most 60 elements each, whose text is read whole",
    "structures/items.py:_without_images": 'the option DRIPPER_MARKDOWN["types"], which copies each item once',
    "structures/items.py:trimmed": "the two ends of a line, each level once",
    "output/chunks.py:_fragments": "the runs of a long line, each once",
    "output/chunks.py:_merged": "the same",
    "page/parse.py:_tree": "parses again at most once",
    "output/reader.py:Reader.add": "for the parts of a line, which hold no display formula",
    "output/content_list.py:_joined": "the levels of a list of Google Docs, at most nine",
    "data.py:_without_controls": "metadata, in which strings are nested twice",
    "exporters.py:_of_kind": "the texts of a list, which are no lists",
    "engines/qwen3/simplify.py:_make": "tries once more, with another name",
    "engines/tagger/lexicon.py:_longest": "words of our own, once",
    "extractor.py:Extractor._answers": "halves a batch if its engine fails",
}
"""A function of each circle that the trees below do not reach, with the reason."""
LEAVES = (
    "amp-mathml amp-youtube audio body col colgroup d-math frameset html image input listing lite-youtube math-field "
    "math-renderer mjx-container optgroup option plaintext source tex-math track wbr xmp youtube-video"
).split()
"""Tags around the whole page, around text, or around nothing that is written."""


def functions(tree: ast.AST) -> dict[str, ast.AST]:
    """Return the functions of a module by their qualified names."""
    found: dict[str, ast.AST] = {}

    def collect(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
                if isinstance(child, ast.FunctionDef):
                    found[inner[:-1]] = child
            collect(child, inner)

    collect(tree, "")
    return found


def calls_in(path: Path) -> dict[str, set[str]]:
    """Return for each function of a module which of them it names, also through tables of the module."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    names = functions(module)
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.rpartition(".")[2], []).append(name)
    tables: dict[str, set[str]] = {}
    for node in module.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                used = {getattr(one, "attr", getattr(one, "id", "")) for one in ast.walk(node)}
                tables[target.id] = used & known.keys()

    def calls(function: ast.AST) -> Iterator[str]:
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                for one in tables.get(node.id, ()):
                    yield from known[one]
                yield from (one for one in known.get(node.id, ()) if "." not in one or one.rpartition(".")[0] in names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield from (one for one in known.get(node.attr, ()) if "." in one)

    return {name: set(calls(node)) for name, node in names.items()}


def circles(path: Path) -> set[frozenset[str]]:
    """Return the groups of functions of a module that can call each other, or themselves."""
    graph = calls_in(path)
    reach: dict[str, set[str]] = {}
    for name in graph:
        seen: set[str] = set()
        todo = list(graph[name])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += graph[one]
        reach[name] = seen
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in reach if a in reach[a]}


class Calls:
    """Counts the calls of the package's functions that are active more than once at a time."""

    def __init__(self) -> None:
        self._active: Counter[CodeType] = Counter()
        self._count: Counter[CodeType] = Counter()
        self._recursive: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call":
            self._active[code] += 1
            self._count[code] += 1
            if self._active[code] > 1:
                self._recursive.add(code)
        elif event == "return":
            self._active[code] -= 1

    def of_readers(self) -> dict[str, int]:
        """Return the number of calls of each function that was active twice, by file and name."""
        found: dict[str, int] = {}
        for code in self._recursive:
            path = Path(code.co_filename)
            if path in READERS and "<" not in code.co_name:
                name = f"{path.relative_to(PACKAGE).as_posix()}:{getattr(code, 'co_qualname', code.co_name)}"
                found[name.replace(".<locals>", "")] = self._count[code]
        return found


@contextmanager
def counted() -> Iterator[Calls]:
    calls = Calls()
    before = sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def run(html: str) -> tuple[dict[str, int], int]:
    """Send a page through all readers and writers. Return their calls, and the number of nodes."""
    page = cut(parse(f"<html><body>{html}</body></html>"), "https://a.example/")
    config = Config()
    with counted() as calls:
        written = write(page, mask_of(page, np.ones(len(page.blocks), dtype=np.bool_)), config)
        for tables in ("html", "linear"):
            write(page, mask_of(page, np.ones(len(page.blocks), dtype=np.bool_)), Config(markdown={"tables": tables}))
        sanitized(to_json(written.content))
        to_mineru(written.content)
        outlinks(written.content)
        chunks(written.content, size=2_000)
    return calls.of_readers(), len(page.tree.nodes)


@cache
def measured(kind: str, seed: int) -> tuple[dict[str, int], int]:
    return run(SPANNED if kind == "spanning cells" else KINDS[kind](Random(f"{kind} {seed}"), DEPTH, 200))


SPANNED = "<table><tr><td rowspan=2><b><i>a</i></b><b><i>b</i></b><td>c<tr><td><ul><li><b>x <i>y</i></b><ul><li>" * 20
"""Tables with spanning cells, which become HTML, in each other, with lists and emphasis that is merged."""
MEASURED = [*(kind for kind in KINDS if kind != "data"), "spanning cells"]


@pytest.mark.parametrize("kind", MEASURED)
def test_each_node_is_visited_a_few_times(kind: str) -> None:
    for seed in range(SEEDS):
        calls, nodes = measured(kind, seed)
        over = {name: count / nodes for name, count in calls.items() if count > WRITTEN * VISITS * nodes}
        assert not over, f"seed {seed}: {over}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<math><mstyle>", "x"),
        ("<math><mstyle mathvariant=bold>", "x"),
        ("<math><mfenced><mstyle>", "x"),
        ("<mjx-container><mjx-math><mjx-mstyle>", "x"),
        ("<math><mtable><mtr><mtd>", "x"),
        ("<math><msup><mi>x</mi>", "y"),
        ("<math><mover>", "<mo>^</mo>"),
    ],
)
def test_forty_levels(before: str, after: str) -> None:
    """40 nested ``<mstyle>``, 1.4 kB, once took more than 100 seconds."""
    calls, nodes = run(f"<p>{before * 40}{after}")

    assert max(calls.values(), default=0) <= WRITTEN * VISITS * nodes


def test_every_recursive_function_is_here() -> None:
    """A new reader that calls itself has to be reached by the trees above, or to have a reason in this module."""
    reached = {name for kind in MEASURED for seed in range(SEEDS) for name in measured(kind, seed)[0]}
    short = {name.partition(":")[0] + ":" + name.rpartition(".")[2].rpartition(":")[2] for name in reached}
    missing, known = set(), set()
    for path in READERS:
        file = path.relative_to(PACKAGE).as_posix()
        for circle in circles(path):
            names = {f"{file}:{name}" for name in circle}
            known |= names
            if not (names & NOT_HERE.keys() or any(f"{file}:{name.rpartition('.')[2]}" in short for name in circle)):
                missing |= names

    assert not sorted(missing)
    assert not sorted(NOT_HERE.keys() - known), "these are no longer recursive"


def test_every_tag_with_a_reader_is_in_the_trees() -> None:
    """A reader of another tag has to be reached as well, unless nothing can be in its element, or text only."""
    tags = {tag.partition(":")[0] for tag in (*MATH, *BLOCKS, *INLINE)}
    content_list = import_module("scrapy_dripper.output.content_list")

    assert set(mathml._WRITERS) - {"script", "style"} <= tags
    assert set(content_list._ENTER) - {*content_list.UNSEEN, *LEAVES} <= tags


@pytest.mark.parametrize("nested", ["objects", "lists", "graph"])
def test_declared_data_is_walked_without_recursion(nested: str) -> None:
    """JSON-LD and the data of scripts may be nested as deeply as the parser of JSON allows, and more."""
    for depth in (50, 900, 5_000):
        value = {
            "objects": '{"@type": "Article", "about": ' * depth + "1" + "}" * depth,
            "lists": "[" * depth + "]" * depth,
            "graph": '{"@graph": [' * depth + "]}" * depth,
        }[nested]
        script = f'<script type="application/ld+json">{value}</script>'
        page = f"<html><head>{script}</head><body><div id=app></div></body></html>"
        with counted() as calls:
            metadata_of(lxml_html.document_fromstring(page), "https://a.example/")
            fill_shell(Document(page), Config())
        assert all(count <= VISITS * 2 * depth for count in calls.of_readers().values())
