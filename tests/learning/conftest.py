"""A site on which the bundled model is wrong, with pages that a person has corrected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_dripper.data import Document
from scrapy_dripper.inspection.answers import Sheet, sheet, task_of

SITE = "https://tides.example"
TOPICS = ("harbour", "estuary", "lagoon", "strait", "island", "channel", "delta", "cape")


def html(topic: str, site: str = SITE) -> str:
    """Return an article of two paragraphs, and two long stories below it that are not main content on this site."""
    story = (
        "In a village by the {}, a fisherman told us how his father once waited for the spring tide for three days, "
        "and what he found on the sand in the morning, when the water had gone further than anybody remembered."
    )
    return f"""<!doctype html><html><head><title>The {topic}</title><link rel="canonical" href="{site}/{topic}"></head>
<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<div class="story-0{len(topic)} lead"><h1>The {topic}</h1>
<p>Twice a day the water of the {topic} rises, and twice it falls, as the moon and the sun pull at the sea together.</p>
<p>At noon the {topic} is widest, and boats that came in with the flood lie at its upper end until the evening.</p>
<div class="sponsored"><p>{story.format(topic)}</p><p>{story.format("sea beyond the " + topic)}</p></div></div>
<footer><p>Copyright, all rights reserved</p></footer></body></html>"""


def is_main(text: str) -> bool:
    """Return True for the blocks that a person labels main."""
    return any(words in text for words in ("Twice a day", "At noon")) or text.startswith("The ")


def page_of(topic: str, site: str = SITE) -> Sheet:
    """Return a page as the inspector reads it."""
    return sheet(Document(html(topic, site).encode()), f"{topic}.html", topic)


def correct(folder: Path, topic: str, site: str = SITE, main: Callable[[str], bool] = is_main) -> None:
    """Put a page into a folder, with the inspector's export beside it."""
    page = page_of(topic, site)
    labels = {str(i): "main" if main(text) else "other" for i, text in enumerate(page.page.blocks.text, 1)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{topic}.html").write_text(html(topic, site), encoding="utf-8")
    answer = json.dumps({"task": task_of(page), "labels": labels})
    (folder / f"{page.id}.answer.json").write_text(answer, encoding="utf-8")


@pytest.fixture
def corrections(tmp_path: Path) -> Path:
    """A folder of six corrected pages of the site."""
    for topic in TOPICS[:6]:
        correct(tmp_path / "corrections", topic)
    return tmp_path / "corrections"
