"""The links of the main content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scrapy_dripper.output.items import Image, Item, Items, Link, Run, Runs, inside
from scrapy_dripper.output.text import line_text


@dataclass(frozen=True, slots=True)
class Outlink:
    """A link of the main content."""

    url: str
    """Absolute URL if the page's URL is known."""
    text: str
    """The text of the link with white space collapsed; for an image, its alternative text."""


def outlinks(items: Items) -> tuple[Outlink, ...]:
    """Return the links of a content list in order, without duplicates of the same URL and text.

    Links within the page (``#...``) are included. An image is only included if there is a link around it. The URLs of
    images and players themselves are not links.
    """
    return tuple(dict.fromkeys(link for link in _of_items(items) if link.url))


def _of_items(items: Iterable[Item]) -> Iterator[Outlink]:
    for item in items:
        if type(item) is Image:
            yield from _of_image(item)
        else:
            yield from _of_runs(getattr(item, "runs", ()))
            yield from _of_items(inside(item))


def _of_runs(runs: Runs) -> Iterator[Outlink]:
    for run in runs:
        if type(run) is Link:
            text = " ".join(line_text(run.runs).split()) or " ".join(_alts(run.runs))
            yield Outlink(run.href, text)
        elif type(run) is Image:
            yield from _of_image(run)
        else:
            yield from _of_runs(getattr(run, "runs", ()))


def _of_image(image: Image) -> Iterator[Outlink]:
    if image.href:
        yield Outlink(image.href, image.alt)
    yield from _of_runs(image.caption)


def _alts(runs: Runs) -> Iterator[str]:
    for run in runs:
        inner: tuple[Run, ...] = getattr(run, "runs", ())
        if type(run) is Image and run.alt:
            yield run.alt
        yield from _alts(inner)
