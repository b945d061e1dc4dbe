"""Large pages and Scrapy's limit on pages in callbacks: batches fill as documented, and nothing waits forever.

The first batch is answered only when so many pages have come as must be let in by then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRAPYS = {"SCRAPER_SLOT_MAX_ACTIVE_SIZE": 5_000_000}
ROOT = Path(__file__).parents[2]
PATIENCE = 240
"""Seconds after which a crawl counts as stuck."""


def crawl(**job: Any) -> dict[str, Any]:
    """Run ``big_crawl.py`` to its end and return its report."""
    command = [sys.executable, "-m", "tests.load.big_crawl", json.dumps({"settings": {}, **job})]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def workers(number: int) -> dict[str, Any]:
    """Return the settings of a crawl with a number of worker processes."""
    return {"DRIPPER_PROCESSES": number, "DRIPPER_ENGINE": "tests.load.big_engine.load"}


@pytest.mark.parametrize("settings", [{}, workers(1)], ids=["thread", "worker"])
@pytest.mark.parametrize("size", [40_000, 400_000])
def test_while_one_batch_is_labelled_the_next_one_fills(size: int, settings: dict[str, Any]) -> None:
    """The add-on's limit leaves room for two batches of pages up to 500 kB."""
    result = crawl(bytes=size, pages=32, hold=16, settings=settings)

    assert sorted(map(int, result["items"])) == list(range(32))
    if not settings:  # a slow worker gets a stand-in, which takes the pages that have arrived
        assert result["batches"][1] == 8
    assert sum(result["batches"]) == 32
    assert result["stats"]["dripper/queue/max"] >= 16


@pytest.mark.parametrize(
    ("size", "settings", "room"),
    [
        (400_000, SCRAPYS, 13),
        (2_000_000, {}, 4),
        (400_000, {"DRIPPER_BATCH_SIZE": 32}, 64),
        (400_000, {**SCRAPYS, **workers(1)}, 13),
        (2_000_000, {**SCRAPYS, **workers(2)}, 3),
        (40_000, workers(2), 24),
    ],
    ids=[
        *("Scrapy's limit", "2 MB", "large batches"),
        *("worker, Scrapy's limit", "2 workers, 2 MB and Scrapy's limit", "2 workers"),
    ],
)
def test_a_limit_that_is_met_holds_nothing_up(size: int, settings: dict[str, Any], room: int) -> None:
    """Only pages that fit are accepted. A batch that cannot be filled is sent anyway, and no item is lost."""
    pages = max(12, room + 8)
    result = crawl(bytes=size, pages=pages, hold=room, settings=settings)

    assert sorted(map(int, result["items"])) == list(range(pages))
    assert room <= result["stats"]["dripper/queue/max"] <= room + 8
    assert not [name for name in result["stats"] if name.startswith("dripper/fallback")]
