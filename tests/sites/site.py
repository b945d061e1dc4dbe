"""A small site: articles of one theme, and pages of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scrapy_dripper import Config, Document, Extraction, Extractor
from scrapy_dripper.sites import Hosts
from scrapy_dripper.sites.templates import Templates
from scrapy_dripper.testing import FakeEngine

MENU = "<nav><ul><li><a href='/'>Home</a></li><li><a href='/all'>All articles</a></li></ul></nav>"
FOOT = "<footer><p>The newsletter comes every week.</p><p>All rights reserved.</p></footer>"


def article(number: int, body: str | None = None, *, foot: str = FOOT, title: str | None = None) -> str:
    """Return an article with unique text. Its main content begins with ``MAIN``."""
    text = f"MAIN sentence of article {number}, which says what {number} times {number} is, and what it is not. "
    body = f"<p>{text}</p><p>{text * 2}</p><p>{text}</p>" if body is None else body
    title = title or f"MAIN title {number}"
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body class='page-{number}'>{MENU}"
        f"<div class='wrap'><article class='post post-{number}'><header class='head'><h1>{title}</h1>"
        f"<p class='date'>{number % 28 + 1} May 2024</p></header><div class='body'>{body}</div></article></div>"
        f"<aside class='side'><p>Read this week: a tale of {number} ships</p></aside>{foot}</body></html>"
    )


def listing(number: int) -> str:
    """Return a page of another template."""
    rows = "".join(f"<tr class='row'><td><a href='/{i}'>Ship {i}</a></td><td>{i} m</td></tr>" for i in range(9))
    return (
        f"<html><body><table class='ships'><tr><th>Name</th><th>Length {number}</th></tr>{rows}</table></body></html>"
    )


def url(number: int) -> str:
    return f"https://e.org/articles/{number}"


def truth(text: str) -> float:
    """Return the probability that a block is main content."""
    return 0.9 if "MAIN" in text else 0.1


class Reader:
    """An extractor with templates, and an engine that counts its pages. One page at a time."""

    def __init__(self, main: Callable[[str], float] = truth, templates: Templates | None = None) -> None:
        self.engine = FakeEngine(main=lambda text: self.main(text))
        self.main = main
        self.templates = Templates() if templates is None else templates
        hosts = Hosts(templates=self.templates)
        self.extractor = Extractor(Config(sites="templates", processes=0), self.engine, hosts=hosts)

    @property
    def asked(self) -> int:
        """The number of pages that the engine was asked about."""
        return sum(self.engine.batches)

    def read(self, html: str, address: str) -> Extraction:
        """Extract a page."""
        (found,) = self.extractor.extract([Document(html, address)])
        return found

    def outcomes(self, pages: Iterable[tuple[str, str]]) -> list[str | None]:
        """Extract pages, each with its own URL, and return their outcomes."""
        return [self.read(html, address).details.get("template") for html, address in pages]

    def learnt(self, pages: int = 12) -> Reader:
        """Extract articles until their template answers."""
        self.outcomes((article(number), url(number)) for number in range(pages))
        return self
