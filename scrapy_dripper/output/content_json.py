"""Convert the content list to plain JSON values and back.

An item or run is an object with a ``type``. Fields with their default value are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, cast, get_args

from scrapy_dripper.characters import without_controls
from scrapy_dripper.output.items import Cell, Footnote, Item, Items, List, ListItem, Run, Table
from scrapy_dripper.output.tables import table_html

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


def clean(values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a content list as JSON values without control characters. Raise :exc:`ContentError` if it is none."""
    return to_json(from_json(_clean(values)))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, dict):
        return {name: _clean(one) for name, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


def length(items: Sequence[Item]) -> int:
    """Return the characters of items as JSON without white space."""
    return len(_encoder(items))


def _encode(value: Any) -> Any:
    if type(value) is tuple:
        return [_encode(one) for one in value]
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
        elif not (one is None or isinstance(one, (str, int))):
            raise TypeError(f"expected a string, a number or a boolean (got {type(one).__name__})")
    return kind(**values)
