"""The items of the spiders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Page:
    """One crawled page. The spider sets the first two fields, and scrapy-dripper fills the last three."""

    url: str
    title: str | None = None
    main_html: str | None = None
    markdown: str | None = None
    dripper: dict[str, Any] | None = None


@dataclass
class AppPage(Page):
    """A page, with the way in which it was downloaded."""

    rendered: bool = False
