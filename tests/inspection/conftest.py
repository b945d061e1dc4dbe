"""The inspector as a function, and the data in its file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from tests.cli.conftest import here, run  # noqa: F401

Inspect = Callable[..., Path]

PAGE = """<!doctype html><html lang="en"><head><title>Tides</title><link rel="canonical" href="https://example.com/tides">
<style>p { color: rgb(1, 2, 3) }</style></head><body><nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article class="post"><h1>Tides</h1>
<p>Tides are the rise and fall of sea levels caused by the <b>gravitational</b> pull of the Moon and the Sun, together
with the rotation of the Earth. Most coasts see two high waters and two low waters in a little more than a day.</p>
<p>The range between them is largest about twice a month, near new moon and full moon, when the two bodies pull along
one line. These are called spring tides, although they have nothing to do with the season.</p>
<details><summary>Neap tides</summary><p>Between them come the neap tides, whose range is the smallest.</p></details>
</article><aside><p>Share this page, and read more about something else</p></aside>
<footer><p>Copyright 2026, all rights reserved</p></footer></body></html>"""


@pytest.fixture
def inspected(tmp_path: Path) -> Inspect:
    """Write the inspector of a page and return its file."""

    def inspect(html: str | bytes = PAGE, *flags: str, name: str = "page.html") -> Path:
        path, output = tmp_path / name, tmp_path / f"{name}.inspect.html"
        path.write_bytes(html if isinstance(html, bytes) else html.encode("utf-8", "surrogatepass"))
        assert main(["inspect", str(path), "-o", str(output), *flags]) == 0
        return output

    return inspect


def data_of(path: Path) -> dict[str, Any]:
    """Return the data that the script of an inspector reads."""
    (text,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.S
    )
    found = json.loads(text)
    assert isinstance(found, dict)
    return found
