"""Pages to label, an endpoint that labels them, and the command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.tests.fake_endpoint import FakeEndpoint, Request
from scrapy_dripper.cli import main
from scrapy_dripper.data import Document
from scrapy_dripper.inspection.answers import Sheet, sheet


def html(title: str = "Tides", extra: str = "") -> str:
    """Return a page of six blocks, three of them main: 2, 3 and 4."""
    return f"""<!doctype html><html><head><title>{title}</title><link rel="canonical" href="https://example.com/{title}">
</head><body><nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article class="post"><h1>{title}</h1><p>The first paragraph of {title} says what the water does at noon.</p>
<p>The second one, with a <b>bold</b> word, says why it does so.</p>{extra}</article>
<aside><p>Read more about something else</p></aside>
<footer><p>Copyright, all rights reserved</p></footer></body></html>"""


MAIN = [2, 3, 4]


@dataclass(frozen=True)
class Desk:
    """A folder with three pages, the file of their labels, the endpoint and the command."""

    folder: Path
    fake: FakeEndpoint
    capsys: pytest.CaptureFixture[str]

    @property
    def pages(self) -> Path:
        """The folder of the pages."""
        return self.folder / "pages"

    @property
    def labels(self) -> Path:
        """The file of labels."""
        return self.folder / "labels.jsonl"

    @property
    def requests(self) -> list[Request]:
        """What the endpoint was asked."""
        return self.fake.requests

    def annotate(self, *arguments: object, ask: bool = False) -> int:
        """Run the command; with ``ask=True`` it asks the endpoint about one page at a time."""
        asking = ["--endpoint", self.fake.url, "--model", "reader-1", "--concurrency", "1"] if ask else []
        return main(["annotate", *map(str, arguments), *asking, "-o", str(self.labels)])

    def said(self) -> str:
        """Return what the command has said since the last time."""
        return self.capsys.readouterr().err

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the file of labels."""
        return [json.loads(line) for line in self.labels.read_text(encoding="utf-8").splitlines()]

    def titles(self) -> list[str]:
        """Return the titles of the pages that are labelled."""
        return [record["title"] for record in self.records()]


@pytest.fixture
def desk(tmp_path: Path, fake: FakeEndpoint, capsys: pytest.CaptureFixture[str]) -> Desk:
    """Three pages to label."""
    made = Desk(tmp_path, fake, capsys)
    made.pages.mkdir()
    for name in ("Tides", "Moons", "Winds"):
        (made.pages / f"{name}.html").write_text(html(name), encoding="utf-8")
    return made


def sheet_of(text: str, name: str = "page", profile: str = "native") -> Sheet:
    """Return the annotation sheet of a page."""
    return sheet(Document(text.encode()), f"{name}.html", name, profile)
