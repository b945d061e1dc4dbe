"""The child process of the sandbox, killed again and again in a live crawl."""

from __future__ import annotations

import pytest
from harness import Crawl

pytest.importorskip("scrapy_dripper.sandbox")


def test_a_child_process_that_is_killed(crawl: Crawl, pages: int) -> None:
    """A page falls back if it was the child's, another child takes the next one, and none is left in the end."""
    books = crawl(
        "the sandbox's child is killed -9",
        kill_child=max(1, pages // 40),  # often: between two pages, none pays for it
        settings={"DRIPPER_SANDBOX": "always"},
    )

    books.balance()
    books.balance_items()
    kills = len(books.injected("kill -9"))
    assert len(books.by) == pages + 50
    assert kills >= 1
    assert set(books.group("fallback")) == {"sandbox_error"}
    assert books.stat("fallback/sandbox_error") <= kills
