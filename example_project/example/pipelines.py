"""The item pipelines of the example project."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scrapy.crawler import Crawler

from example.items import Page

LONGEST_NAME = 60


def slug(url: str) -> str:
    """Return a file name for a URL, which only has lower-case letters, digits, hyphens and underscores."""
    parts = urlsplit(url)
    readable = unquote(f"{parts.hostname or ''} {parts.path.removesuffix('/')} {parts.query}")
    words = re.sub(r"\W+", "-", unicodedata.normalize("NFKC", readable).lower())
    return words[:LONGEST_NAME].strip("-") or "page"


class MarkdownFiles:
    """Write the Markdown of each page to a separate file, ``OUTPUT_DIR/markdown/NAME.md``."""

    def __init__(self, crawler: Crawler) -> None:
        self.folder = Path(crawler.settings["OUTPUT_DIR"]) / "markdown"
        self.stats = crawler.stats
        self.names: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MarkdownFiles:
        """Return the pipeline of this crawl."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Create the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def process_item(self, item: Page) -> Page:
        """Write the file of a page, unless the page has no text."""
        if item.markdown:
            head = f"---\nurl: {json.dumps(item.url)}\ntitle: {json.dumps(item.title, ensure_ascii=False)}\n---\n\n"
            file = self.folder / f"{self.free_name(slug(item.url))}.md"
            file.write_text(head + item.markdown.rstrip() + "\n", encoding="utf-8")
            self.stats.inc_value("example/markdown_files")
        return item

    def free_name(self, name: str) -> str:
        """Return the name, with a number added if another page of this crawl has it."""
        number, free = 1, name
        while free in self.names:
            number += 1
            free = f"{name}-{number}"
        self.names.add(free)
        return free
