"""A crawl over sockets in which passes fail for one page. Only that page may be affected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.engines.qwen3.fakes import PREPARED

PAGES = 4


def crawl(fail: int) -> dict[str, Any]:
    """Run a crawl to its end and return its output. A process that does not end is an error."""
    script = Path(__file__).with_name("qwen3_crawl_process.py")
    job = json.dumps({"folder": str(PREPARED), "pages": PAGES, "fail": fail})
    done = subprocess.run([sys.executable, str(script), job], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_no_memory_for_one_page() -> None:
    """It is retried once and falls back alone, and nothing is left over."""
    found = crawl(fail=100)

    assert len(found["passes"]) == 2
    reasons = [item["by"]["fallback_reason"] for item in found["items"]]
    assert reasons == [None, None, "engine_error", None]
    assert [item["by"]["source"] for item in found["items"]] == ["qwen3", "qwen3", "fallback:html", "qwen3"]
    assert "a quiet line number 3" in found["items"][2]["markdown"]
    assert found["stats"]["dripper/fallback/engine_error"] == 1
    assert found["stats"]["dripper/pages/qwen3"] == PAGES - 1
    assert (found["threads"], found["children"]) == (["MainThread"], 0)


def test_memory_that_becomes_free_again() -> None:
    """The last try succeeds, and the page has its usual labels."""
    found, whole = crawl(1), crawl(0)

    assert [item["by"]["source"] for item in found["items"]] == ["qwen3"] * PAGES
    assert [item["main_html"] for item in found["items"]] == [item["main_html"] for item in whole["items"]]
    assert len(whole["passes"]) < len(found["passes"])
    assert not any("fallback/engine_error" in name for name in found["stats"])
