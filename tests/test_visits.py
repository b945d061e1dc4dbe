"""Recursive readers and writers visit each node of their input a few times, whatever is nested in whatever.

A writer that visits a child twice doubles its work with each level: 18 nested ``<mstyle>`` once took eight seconds.
Time would show that only on deep input, so the calls of each recursive function are counted and compared with the
number of nodes.
"""

from __future__ import annotations

import ast
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from lxml import html as lxml_html

import scrapy_dripper
from scrapy_dripper import Document
from scrapy_dripper.config import Config
from scrapy_dripper.fallback import fill_shell
from scrapy_dripper.metadata.read import read_metadata
from scrapy_dripper.output import write
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_json import clean, to_json
from scrapy_dripper.output.urls import outlinks
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse

PACKAGE = Path(scrapy_dripper.__file__).parent
ROOMS = ("output", "metadata", "fallback", "page")
"""The packages that read and write what comes from pages."""
VISITS = 8
"""Maximum number of calls of a recursive function, per node of its input."""
WRITTEN = 4
"""How often :func:`run` writes each page. Chunks are written twice: to measure them, and as they are."""
DEPTH, SEEDS = 200, 3
NOT_HERE = {
    "metadata/tree.py:_text": "the links in a heading, of at most 60 elements each, whose text is read whole",
    "output/items.py:_without_images": 'the option DRIPPER_MARKDOWN["types"], which copies each item once',
    "output/chunks.py:_fragments": "the runs of a long line, each once",
    "output/chunks.py:_merged": "the same",
    "output/chunks.py:_trimmed": "the two ends of a line, each level once",
    "page/parse.py:_tree": "parses again at most once",
    "output/reader.py:Reader.add": "for the parts of a line, which hold no display formula",
    "output/markdown_inline.py:InlineWriter._first": "ruby and dropped links: each level once",
    "output/block_tags.py:_joined": "the levels of a list of Google Docs, at most nine",
}
"""A function of each circle that the trees below do not reach, with the reason."""

MATH = (
    "mrow mstyle mstyle:mathvariant=bold mfrac mfrac:linethickness=0 msqrt mroot mfenced mfenced:open=[ menclose "
    "mphantom maction semantics mtable mtr mtd mlabeledtr mmultiscripts msub msup msubsup munder mover munderover "
    "mtext mpadded math mi mo merror mprescripts:x=y none:x=y annotation-xml:x=y"
).split()
MATHJAX = (
    "mjx-mrow mjx-mstyle mjx-mfrac mjx-frac mjx-num mjx-den mjx-msqrt mjx-sqrt mjx-root mjx-mroot mjx-msub mjx-msup "
    "mjx-script mjx-base mjx-mtable mjx-itable mjx-mtr mjx-mtd mjx-munder mjx-mover mjx-under mjx-over mjx-texatom "
    "mjx-mi mjx-mo mjx-mn mjx-menclose mjx-mpadded mjx-TeXAtom mjx-row mjx-box"
).split()
BLOCKS = (
    "div section article blockquote ul ol li dl dt dd table tr td th caption figure figcaption details summary "
    "aside p h2 h4 pre code center aside:class=note div:class=warning div:class=footnote div:role=doc-endnotes "
    "ul:role=list fieldset form main header footer nav address hgroup"
).split()
INLINE = (
    "span b i em strong a:href=/x u s del ins sub sup code kbd ruby rt rp q cite mark small font abbr:title=x label "
    "span:style=font-weight:bold button bdo samp var a:href=#fn1 br:x=y img:src=/i.png math mi"
).split()


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
            if PACKAGE in path.parents and path.relative_to(PACKAGE).parts[0] in ROOMS and "<" not in code.co_name:
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


def tree(rng: random.Random, tags: list[str], depth: int, nodes: int) -> str:
    """Return nested elements in random order, with at most a number of nodes beside the chain of the given depth."""
    left = nodes

    def element(inner: str) -> str:
        nonlocal left
        tag, _, attribute = rng.choice(tags).partition(":")
        name, _, value = attribute.partition("=")
        own = f' {name}="{value}"' if name else ""
        beside = ""
        while left > 0 and rng.random() < 0.5:
            left -= 1
            other = rng.choice(tags).partition(":")[0]
            beside += f"<{other}>{rng.choice(['x', 'word', '1', ''])}</{other}>"
        text = rng.choice(["x", "a word", "", "1"])
        return (
            f"<{tag}{own}>{text}{beside}{inner}</{tag}>"
            if rng.random() < 0.5
            else f"<{tag}{own}>{inner}{beside}</{tag}>"
        )

    made = "x"
    for _ in range(depth):
        made = element(made)
    return made


def run(html: str) -> tuple[dict[str, int], int]:
    """Send a page through all readers and writers. Return their calls, and the number of nodes."""
    page = cut(parse(f"<html><body>{html}</body></html>"), "https://a.example/")
    config = Config()
    with counted() as calls:
        written = write(page, np.ones(len(page.blocks), dtype=np.bool_), config)
        for tables in ("html", "linear"):
            write(page, np.ones(len(page.blocks), dtype=np.bool_), Config(markdown={"tables": tables}))
        clean(to_json(written.content))
        outlinks(written.content)
        chunks(written.content, size=2_000)
    return calls.of_readers(), len(page.tree.nodes)


@cache
def measured(kind: str, seed: int) -> tuple[dict[str, int], int]:
    return run(KINDS[kind](random.Random(f"{kind} {seed}")))


def spanned(levels: int) -> str:
    """Return tables with spanning cells, which become HTML, in each other, with lists and emphasis."""
    opening = "<table><tr><td rowspan=2>a<td>b<tr><td><ul><li><b>x <i>y <u>z</u></i></b><ul><li>"
    return opening * levels + "x"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "MathML": lambda rng: f"<p>A<math>{tree(rng, MATH, DEPTH, 100)}</math> b</p>",
    "MathJax": lambda rng: (
        f'<p>A<mjx-container jax="CHTML"><mjx-math>{tree(rng, MATHJAX, DEPTH, 100)}</mjx-math></mjx-container></p>'
    ),
    "blocks": lambda rng: tree(rng, BLOCKS, DEPTH, 200),
    "inline": lambda rng: f"<p>{tree(rng, INLINE, DEPTH, 200)}</p><p id=fn1>1. A note.</p>",
    "all": lambda rng: tree(rng, [*BLOCKS, *INLINE, *MATH], DEPTH, 200),
    "spanning cells": lambda _: spanned(20),
    "lists in tables": lambda rng: tree(rng, "table tr td ul ol li th dl dd blockquote p".split(), DEPTH, 200),
}


@pytest.mark.parametrize("kind", KINDS)
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
    reached = {name for kind in KINDS for seed in range(SEEDS) for name in measured(kind, seed)[0]}
    short = {name.partition(":")[0] + ":" + name.rpartition(".")[2].rpartition(":")[2] for name in reached}
    missing, known = set(), set()
    for path in (path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))):
        file = path.relative_to(PACKAGE).as_posix()
        for circle in circles(path):
            names = {f"{file}:{name}" for name in circle}
            known |= names
            if not (names & NOT_HERE.keys() or any(f"{file}:{name.rpartition('.')[2]}" in short for name in circle)):
                missing |= names

    assert not sorted(missing)
    assert not NOT_HERE.keys() - known, "these are no longer recursive"


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
            read_metadata(lxml_html.document_fromstring(page), "https://a.example/")
            fill_shell(Document(page), Config())
        assert all(count <= VISITS * 2 * depth for count in calls.of_readers().values())
