"""Convert the content list to plain JSON values and back.

An item or run is an object with a ``type``. Fields with their default value are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, cast, get_args

from scrapy_dripper.characters import without_controls
from scrapy_dripper.structures.items import (
    Audio,
    Boxed,
    Cell,
    Code,
    CodeBlock,
    Footnote,
    Footnotes,
    Formula,
    Image,
    Item,
    Items,
    List,
    ListItem,
    Paragraph,
    Quote,
    Run,
    Table,
    Title,
    Video,
    inside,
    line_text,
    plain_text,
)
from scrapy_dripper.structures.tables import table_html

_ITEMS = {one.type: one for one in get_args(Item)}
_RUNS = {one.type: one for one in get_args(Run)}
_HELD: dict[str, tuple[int, Mapping[str | None, Any]]] = {
    "items": (1, _ITEMS),
    "runs": (1, _RUNS),
    "caption": (1, _RUNS),
    "terms": (2, _RUNS),
    "rows": (2, {None: Cell}),
    "notes": (1, {None: Footnote}),
}
"""For the fields that hold objects: how many lists are around each, and its class by its ``type``."""
_PARTS = (Cell, ListItem, Footnote)
_ENTRIES = (1, {None: ListItem})
"""The same for the items of a list."""


_FIELDS: dict[Any, list[tuple[str, Any]]] = {
    kind: [(field.name, None if field.default is MISSING else field.default) for field in fields(kind)]
    for kind in (*get_args(Item), *get_args(Run), *_PARTS)
}
"""The fields of classes with their defaults; None for those that must be given, which are never None."""


class ContentError(ValueError):
    """A value is not a content list."""


def to_json(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return items as dicts, lists, strings, numbers and booleans."""
    return [_encode(item) for item in items]


def from_json(values: Sequence[Any]) -> Items:
    """Return the items for values written by :func:`to_json`. Raise :exc:`ContentError` for anything else."""
    try:
        return cast("Items", _decode(values, *_HELD["items"]))
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        raise ContentError(f"not a content list ({type(error).__name__}: {error})") from None


def sanitized(values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a content list as JSON values without control characters. Raise :exc:`ContentError` if it is none."""
    return to_json(from_json(_without_controls(values)))


def _without_controls(value: Any) -> Any:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, dict):
        return {name: _without_controls(one) for name, one in value.items()}
    return [_without_controls(one) for one in value] if isinstance(value, list) else value


def length(items: Sequence[Item]) -> int:
    """Return the characters of items as JSON without white space."""
    return len(_encoder(items))


def _encode(value: Any) -> Any:
    if type(value) is tuple:
        return [_encode(one) for one in value]
    if type(value) is float:  # of a box
        return value
    return {name: _encode(one) if type(one) is tuple else one for name, one in _fields(value).items()}


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object that have another value than their default, and its type."""
    kind = type(value)
    found: dict[str, Any] = {} if kind in _PARTS else {"type": kind.type}
    for name, default in _FIELDS[kind]:
        one = getattr(value, name)
        if one != default:
            found[name] = one
    if kind is Table and not value.simple:
        found["html"] = table_html(value)
    return found


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, default=_fields).encode


def _decode(value: Any, lists: int, kinds: Mapping[str | None, Any]) -> Any:
    if lists:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list (got {type(value).__name__})")
        return tuple(_decode(one, lists - 1, kinds) for one in value)
    values = dict(value)
    kind = kinds[None if None in kinds else values.pop("type")]
    if kind is Table:
        values.pop("html", None)
    for name, one in values.items():
        held = _ENTRIES if kind is List and name == "items" else _HELD.get(name)
        if held:
            values[name] = _decode(one, *held)
        elif name == "bbox":
            left, top, right, bottom = map(float, one)
            values[name] = left, top, right, bottom
        elif not (one is None or isinstance(one, (str, int))):
            raise TypeError(f"expected a string, a number or a boolean (got {type(one).__name__})")
    return kind(**values)


def to_mineru(items: Sequence[Item]) -> list[list[dict[str, Any]]]:
    """Return items in the schema of MinerU's tools for web pages and PDFs: a list with the nodes of its one page.

    Quotations and footnotes become what they hold, formats and links the text in them, and rules and marks of posts are
    left out, because the schema has none of these. ``raw_content``, the HTML of a node, is None, as in figure 7 of the
    paper on MinerU-HTML, and so is ``bbox``, its place on a rendered page, unless a browser has said it.
    """
    return [[_mineru_node(one, *node) for item in items for one in _unfolded(item) for node in _mineru(one)]]


def _mineru_node(item: Item, kind: str, content: Any) -> dict[str, Any]:
    inline = {"inline": False} if kind == "code" else {}
    box = item.bbox if isinstance(item, Boxed) else None
    return {"type": kind, "bbox": box and [*box], "raw_content": None, **inline, "content": content}


def _unfolded(item: Item) -> Iterator[Item]:
    """Yield what a quotation or footnotes hold, or an item with the images in it. Items are a few levels deep."""
    if isinstance(item, (Quote, Footnotes)):
        yield from (one for held in inside(item) for one in _unfolded(held))
        return
    yield item
    if isinstance(item, Paragraph):
        yield from (run for run in _flat(item.runs) if isinstance(run, Image))


def _mineru(item: Item) -> Iterator[tuple[str, Any]]:
    """Yield type and content of the node of an item, if there is one."""
    match item:
        case Title():
            yield "title", {"title_content": line_text(item.runs), "level": item.level}
        case Paragraph():
            pieces = _pieces(item.runs)
            if pieces:
                yield "paragraph", pieces
        case CodeBlock():
            yield "code", {"code_content": item.text, "language": item.language, "by": item.by or "tag_pre_code"}
        case Formula():
            yield "equation-interline", {"math_content": item.latex, "math_type": "latex", "by": item.origin}
        case Table():
            nested = any(isinstance(one, Table) for row in item.rows for cell in row for one in cell.items)
            content = {"html": table_html(item), "is_complex": not item.simple, "table_nest_level": str(1 + nested)}
            yield ("simple_table" if item.simple else "complex_table"), {**content, "caption": _lines(item.caption)}
        case List():
            yield "list", {**_mineru_list(item), "list_nest_level": str(_levels(item))}
        case Image():
            named = {"alt": item.alt, "title": item.title, "caption": _lines(item.caption)}
            yield "image", {"url": item.src, "data": None, **named}
        case Video() | Audio():
            yield item.type, {"sources": [item.src], "title": item.title, "caption": _lines(item.caption)}


def _mineru_list(item: List) -> dict[str, Any]:
    entries = []
    for entry in item.items:
        held = [*map(Paragraph, filter(None, entry.terms)), *(one for one in entry.items if not isinstance(one, List))]
        lists = [_mineru_list(one) for one in entry.items if isinstance(one, List)]
        child = {**lists[0], "items": [one for some in lists for one in some["items"]]} if lists else None
        entries.append({"c": plain_text(held)} | ({"child_list": child} if child else {}))
    return {"items": entries, "list_attribute": item.kind}


def _levels(item: List) -> int:
    return 1 + max((_levels(one) for entry in item.items for one in entry.items if isinstance(one, List)), default=0)


def _lines(caption: Sequence[Run]) -> list[str]:
    return [line_text(caption)] if caption else []


def _pieces(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Return runs as text, inline code and inline formulas, with the formats and links around them removed."""
    pieces: list[dict[str, str]] = []
    for run in _flat(runs):
        kind, text = {Code: "code-inline", Formula: "equation-inline"}.get(type(run), "text"), line_text([run])
        if isinstance(run, Formula):
            text = run.latex
        if kind == "text" and pieces and pieces[-1]["t"] == "text":
            pieces[-1]["c"] += text
        elif text and not isinstance(run, Image):
            pieces.append({"c": text, "t": kind})
    return [piece for piece in pieces if piece["c"].strip()]


def _flat(runs: Sequence[Run]) -> Iterator[Run]:
    for run in runs:
        if inner := getattr(run, "runs", ()):
            yield from _flat(inner)
        else:
            yield run
