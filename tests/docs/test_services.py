"""The examples of docs/guides/library.md run as they are."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "guides" / "library.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S))


class FastAPI:
    """Stands in for FastAPI, which is not required by anything here."""

    def post(self, path: str) -> Callable[[Any], Any]:
        return lambda function: function


class Request:
    """A request with a page as its body."""

    async def body(self) -> bytes:
        return b"<h1>Tides</h1><p>The tide comes in twice a day, and goes out again.</p>"


def test_the_service_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop stays free meanwhile, and JSON can hold the answer."""
    fastapi = ModuleType("fastapi")
    fastapi.FastAPI, fastapi.Request = FastAPI, Request  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastapi", fastapi)
    (tmp_path / "service.py").write_text(FILES["service.py"], encoding="utf-8")
    extract = runpy.run_path(str(tmp_path / "service.py"))["extract"]

    async def both() -> list[Any]:
        return await asyncio.gather(extract(Request()), extract(Request(), "https://example.org/"))

    first, second = json.loads(json.dumps(asyncio.run(both())))

    assert first == second
    assert first["markdown"].startswith("# Tides\n\nThe tide comes in twice a day")


def test_the_pool_prints_all_pages(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(FILES["pool.py"], encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "pool.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )

    assert re.findall(r"^50 # Day (\d+)$", done.stdout, re.M) == ["0", "50", "100", "150"]
