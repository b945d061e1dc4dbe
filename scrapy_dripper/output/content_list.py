"""Main-HTML to a list of typed items, in one walk over the tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from lxml import etree

from scrapy_dripper.output import block_tags, inline_tags
from scrapy_dripper.output.code.blocks import Guess
from scrapy_dripper.output.items import Footnotes, Image, Item, Items, List, Paragraph, Quote, Run, Runs
from scrapy_dripper.output.math.delimiters import notation
from scrapy_dripper.output.reader import Enter, Leave, Reader, skip
from scrapy_dripper.page.sentence import in_sentence
from scrapy_dripper.page.tags import UNSEEN


def content_list(
    root: etree._Element, base_url: str = "", scripts: Sequence[str] = (), guess: Guess | None = None
) -> Items:
    """Return the content of a tree, such as that of Main-HTML, as items in document order.

    Relative URLs are resolved against ``base_url``; what cannot be resolved stays as it is written. ``scripts`` of the
    page can say how it writes formulas; those in the tree are looked at too. ``guess`` is asked for the language of
    code whose page does not name it.
    """
    found = (text for script in root.iter("script") for text in (script.get("src"), script.text) if text)
    reader = Reader(root, base_url, notation(chain(scripts, found)), _ENTER, _other)
    reader.guess = guess
    return reader.read(root)


def _other(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element that is in no table: a comment, a custom element, or one of a line."""
    tag = element.tag
    if not isinstance(tag, str):
        return skip
    if "-" in tag and not in_sentence(element):
        return block_tags.block_with_class(reader, element)
    return inline_tags.inline(reader, element)


def _button(reader: Reader, element: etree._Element) -> Leave:
    if in_sentence(element):
        return inline_tags.inline(reader, element)
    return block_tags.ENTER["button"](reader, element)


_ENTER: dict[Any, Enter] = {
    **dict.fromkeys(UNSEEN, lambda _reader, _element: skip),
    **inline_tags.ENTER,
    **block_tags.ENTER,
    "button": _button,
}


def only(items: Items, types: Collection[str]) -> Items:
    """Return the items of some types, in lists, quotes and footnotes too. Tables stay as they are.

    Without ``image``, lines of text lose their images as well.
    """
    kept: list[Item] = []
    for item in items:
        if item.type not in types:
            continue
        if isinstance(item, Paragraph) and "image" not in types:
            runs = _without_images(item.runs)
            if runs:
                kept.append(item if runs is item.runs else Paragraph(runs))
        elif isinstance(item, Quote):
            inner = only(item.items, types)
            kept += [Quote(inner)] if inner else []
        elif isinstance(item, List):
            entries = [replace(entry, items=only(entry.items, types)) for entry in item.items]
            left = tuple(entry for entry in entries if entry.items or any(entry.terms))
            kept += [replace(item, items=left)] if left else []
        elif isinstance(item, Footnotes):
            kept.append(Footnotes(tuple(replace(note, items=only(note.items, types)) for note in item.notes)))
        else:
            kept.append(item)
    return tuple(kept)


def _without_images(runs: Runs) -> Runs:
    kept: list[Run] = []
    changed = False
    for run in runs:
        inner: Runs | None = getattr(run, "runs", None)
        if type(run) is Image:
            changed = True
        elif inner is None:
            kept.append(run)
        else:
            left = _without_images(inner)
            changed |= left is not inner
            if left:
                kept.append(run if left is inner else replace(run, runs=left))  # type: ignore[arg-type]
    return tuple(kept) if changed else runs
