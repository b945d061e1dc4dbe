"""Pages to label, an endpoint that labels them, and the command as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.tests.fake_endpoint import FakeEndpoint
from scrapy_dripper.cli import main
from scrapy_dripper.data import Document
from scrapy_dripper.inspection.answers import Sheet, sheet

Annotate = Callable[..., int]


def html(title: str = "Tides", extra: str = "") -> str:
    """Return a page of six blocks, three of them main: 2, 3 and 4."""
    return f"""<!doctype html><html><head><title>{title}</title><link rel="canonical" href="https://example.com/{title}">
</head><body><nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article class="post"><h1>{title}</h1><p>The first paragraph of {title} says what the water does at noon.</p>
<p>The second one, with a <b>bold</b> word, says why it does so.</p>{extra}</article>
<aside><p>Read more about something else</p></aside>
<footer><p>Copyright, all rights reserved</p></footer></body></html>"""


MAIN = [2, 3, 4]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder with three pages."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("Tides", "Moons", "Winds"):
        (folder / f"{name}.html").write_text(html(name), encoding="utf-8")
    return folder


@pytest.fixture
def annotate(tmp_path: Path, fake: FakeEndpoint) -> Annotate:
    """The command; with ``ask=True`` it asks the fake endpoint about one page at a time."""

    def run(*arguments: object, ask: bool = False) -> int:
        asking = ["--endpoint", fake.url, "--model", "reader-1", "--concurrency", "1"] if ask else []
        return main(["annotate", *map(str, arguments), *asking, "-o", str(tmp_path / "labels.jsonl")])

    return run


def records(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the records of the label file."""
    text = (tmp_path / "labels.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def sheet_of(text: str, name: str = "page", profile: str = "native") -> Sheet:
    """Return the annotation sheet of a page."""
    return sheet(Document(text.encode()), f"{name}.html", name, profile)
