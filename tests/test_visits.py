"""Recursive readers and writers visit each node of their input a few times, whatever is nested in whatever.

A writer that visits a child twice doubles its work with each level: 18 nested ``<mstyle>`` once took eight seconds.
Time would show that only on deep input, so the calls of each recursive function are counted and compared with the
number of nodes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
VISITS = 8
"""Maximum number of calls of a recursive function, per node of its input."""
WRITTEN = 4
"""How often :func:`run` writes each page. Chunks are written twice: to measure them, and as they are."""
DEPTH, SEEDS = 200, 3
LEAVES = (
    "amp-mathml amp-youtube audio body col colgroup d-math frameset html image input listing lite-youtube math-field "
    "math-renderer mjx-container optgroup option plaintext source tex-math track wbr xmp youtube-video"
).split()
"""Tags around the whole page, around text, or around nothing that is written."""


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
            if path.is_relative_to(PACKAGE) and "<" not in code.co_name:
                name = f"{path.relative_to(PACKAGE).as_posix()}:{getattr(code, 'co_qualname', code.co_name)}"
                found[name] = self._count[code]
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


SPANNED = "<table><tr><td rowspan=2><b><i>a</i></b><b><i>b</i></b><td>c<tr><td><ul><li><b>x <i>y</i></b><ul><li>" * 20
"""Tables with spanning cells, which become HTML, in each other, with lists and emphasis that is merged."""
MEASURED = [*(kind for kind in KINDS if kind != "data"), "spanning cells"]


@pytest.mark.parametrize("kind", MEASURED)
def test_each_node_is_visited_a_few_times(kind: str) -> None:
    for seed in range(SEEDS):
        made = SPANNED if kind == "spanning cells" else KINDS[kind](Random(f"{kind} {seed}"), DEPTH, 200)
        calls, nodes = run(made)
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
