"""Data in scripts that refer to themselves: what is read of them is bounded for the page as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper import Document
from scrapy_dripper.config import Config
from scrapy_dripper.fallback import fill_shell, shell
from scrapy_dripper.fallback.shell import MOST_CHARACTERS, Budget

MEMORY = 2_000_000_000
"""Address space of a process that reads a page, in bytes. One such page once took 5.6 GB."""


def streamed(rows: str) -> str:
    """Return a page of Next.js whose scripts push rows."""
    return f"<html><body><div id=__next></div><script>self.__next_f.push([1,{json.dumps(rows)}])</script></body></html>"


def references(count: int, length: int) -> str:
    """Return a page whose article is a list of references to one long text."""
    text = "tide " * (length // 5)
    article = json.dumps({"title": "Tides", "body": ["$1"] * count})
    return streamed(f"1:T{len(text):x},{text}2:{article}\n")


def folding(levels: int) -> str:
    """Return a page whose data hold a text under keys in each other that all count as ``body``."""
    value: Any = "The tides rise and fall twice a day. " * 20
    for i in range(levels):
        value = {"b" + "_" * (i % 9) + "ody": value, "bo_dy": value if i < 12 else "x"}
    return (
        f'<html><body><div id=root></div><script id=__NEXT_DATA__ type="application/json">{json.dumps(value)}</script>'
    )


def nuxt(count: int) -> str:
    """Return a page of Nuxt whose objects all refer to one long text."""
    payload = ["tide " * 16_000, *({"body": 0, "title": 0} for _ in range(count))]
    return f"<html><body><div id=__nuxt></div><script id=__NUXT_DATA__>{json.dumps(payload)}</script>"


@pytest.mark.parametrize(
    "html",
    [references(70_000, 40_000), references(3_000, 80_000), folding(400), nuxt(5_000)],
    ids=["references", "fewer references", "keys that fold", "Nuxt"],
)
def test_data_that_multiply(html: str) -> None:
    """The page is read in a process with little memory, and gives at most what the budget allows."""
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        "from scrapy_dripper import Document\n"
        "from scrapy_dripper.config import Config\n"
        "from scrapy_dripper.fallback import fill_shell\n"
        "found = fill_shell(Document(sys.stdin.read()), Config())\n"
        "print(len(found.text or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=html, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) <= MOST_CHARACTERS + 100


def test_an_article_in_references_is_still_read() -> None:
    text = "The tides rise and fall twice a day, and sailors plan their passages by them. " * 5
    html = streamed(f"1:T{len(text):x},{text}2:{json.dumps({'title': 'Tides', 'body': ['$1', 'And more.']})}\n")
    found = fill_shell(Document(html), Config())

    assert found is not None
    assert "sailors plan" in (found.text or "")
    assert "And more." in (found.text or "")


graphs = st.recursive(
    st.one_of(st.sampled_from(["a", "tide " * 60, "moon " * 300]), st.integers()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(
            st.sampled_from(["body", "b_ody", "bo_dy", "content", "children", "title", "x"]), inner, max_size=5
        ),
    ),
    max_leaves=40,
)


@settings(max_examples=60, deadline=None)
@given(graphs, st.integers(1, 2_000), st.integers(1, 3_000))
def test_the_budget_holds_for_any_data(data: Any, values: int, characters: int) -> None:
    """Shared texts and circles included: at most the budget is read, and each step is counted."""
    shared = {"body": data, "children": [data, data], "content": {"body": data}}
    shared["data"] = [shared]  # a circle, which JSON cannot hold and references can
    budget = Budget(values, characters)
    texts = list(shell._texts([shared, shared], budget))

    assert sum(len(text.text.replace("\n", "")) for text in texts) <= characters
    assert budget.values > -100
