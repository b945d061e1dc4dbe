"""Convert Main-HTML to a list of typed items, in one walk over the tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from lxml import etree

from scrapy_dripper.output import block_tags, inline_tags, list_tags
from scrapy_dripper.output.bounds import UNBOUNDED, Allowance
from scrapy_dripper.output.content_json import weigh
from scrapy_dripper.output.footnotes import gathered
from scrapy_dripper.output.items import Footnotes, Image, Item, Items, List, Paragraph, Quote, Run, Runs
from scrapy_dripper.output.math.delimiters import notation
from scrapy_dripper.output.reader import Enter, Leave, Reader, skip
from scrapy_dripper.page.sentence import in_sentence
from scrapy_dripper.page.tags import UNSEEN


def content_list(
    root: etree._Element,
    base_url: str = "",
    scripts: Sequence[str] = (),
    most: int = UNBOUNDED,
) -> Items:
    """Return the content of a tree, such as that of Main-HTML, as items in document order.

    Relative URLs are resolved against ``base_url``; URLs that cannot be resolved are kept as they are. ``scripts`` of
    the page, and scripts in the tree, can configure how the page writes formulas. Raise
    :exc:`~scrapy_dripper.output.bounds.TooLongError` if the list has more than ``most`` characters as JSON. Resolving
    relative URLs may add at most half of that.
    """
    found = (text for script in root.iter("script") for text in (script.get("src"), script.text) if text)
    reader = Reader(root, base_url, notation(chain(scripts, found)), _ENTER, _other, most)
    items = gathered(reader.read(root))
    if reader.inline_notes:
        items = (*items, Footnotes(tuple(reader.inline_notes)))
    weigh(items, Allowance("content list", most))
    return items


def _other(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element without a handler: a comment, a custom element, or an inline element."""
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
    **list_tags.ENTER,
    "button": _button,
}


def only(items: Items, types: Collection[str]) -> Items:
    """Return the items of some types. The content of lists, quotes, footnotes and tables is not filtered.

    If ``image`` is not among the types, images in lists, quotes, footnotes and text are removed as well.
    """
    kept = tuple(item for item in items if item.type in types)
    return kept if "image" in types else _without_image(kept)


def _without_image(items: Items) -> Items:
    """Remove the images in items, and items that hold nothing else."""
    kept: list[Item] = []
    for item in items:
        if isinstance(item, Paragraph):
            runs = _without_images(item.runs)
            kept += [item] if runs is item.runs else [Paragraph(runs)] if runs else []
        elif isinstance(item, Quote):
            inner = _without_image(item.items)
            kept += [replace(item, items=inner)] if inner else []
        elif isinstance(item, List):
            entries = [replace(entry, items=_without_image(entry.items)) for entry in item.items]
            left = tuple(entry for entry in entries if entry.items or any(entry.terms))
            kept += [replace(item, items=left)] if left else []
        elif isinstance(item, Footnotes):
            notes = (replace(note, items=_without_image(note.items)) for note in item.notes)
            kept_notes = tuple(note for note in notes if note.items)
            kept += [Footnotes(kept_notes)] if kept_notes else []
        elif not isinstance(item, Image):
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
