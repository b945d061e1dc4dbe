"""Checks for values from outside. Each returns the value as its type, or raises ValueError saying what was expected."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, NamedTuple


class Method(NamedTuple):
    """A way to extract the main content of a document without a model of this package: an engine that labels no blocks,
    a fallback, and a peer of ``scrapy-dripper evaluate``.
    """

    function: str
    """The module and the name of its function in :mod:`scrapy_dripper.fallback`."""
    module: str = ""
    """The module that it imports, if an extra installs it."""
    extra: str = ""


METHODS = {
    "trafilatura": Method("trafilatura_output:by_trafilatura"),
    "html": Method("methods:whole_page"),
    "r4": Method("methods:by_r4"),
    "readability": Method("methods:by_readability", "readability", "fallbacks"),
    "justext": Method("methods:by_justext", "justext", "fallbacks"),
    "title_paragraphs": Method("methods:by_title_and_paragraphs"),
    "sore": Method("sore:by_sore", "wordllama", "sore"),
}
MODELS = ("tagger", "qwen3")
"""The engines that label blocks by a model."""
ENGINES = (*MODELS, *METHODS)
"""The engines that settings name without a path."""
OUT_OF_PROCESS = ("qwen3",)
"""The engines whose model runs in one process that serves all workers of a crawl."""
LANGUAGE_MODELS = ("qwen3",)
"""The engines that may fail to answer by finding nothing (Dripper paper, section 5.3)."""
FALLBACKS = (*METHODS, "empty", "none")
"""The built-in fallbacks. The last two return nothing by design."""
CONTENT_TYPES = (
    *("title", "paragraph", "code", "formula", "table", "list", "image", "video", "audio", "quote", "rule"),
    *("card", "footnotes"),
)
"""The types of items of a content list (:mod:`scrapy_dripper.structures.items`)."""


def is_method(name: object) -> bool:
    """Return True for the name of a method. Anything else, such as a dotted path, need not be hashable."""
    return isinstance(name, str) and name in METHODS


LONGEST_VALUE = 4_096
"""Largest number of characters of a value, as for a path on Linux. Values can come from outside."""
LONGEST_FIELD = 100
"""Largest number of characters of the name of a field."""
LONGEST_NAME = 60
"""Largest number of characters of a value for which a similar name is suggested."""

_is_field = re.compile(r"[^\W\d][\w.-]*").fullmatch

Check = Callable[[Any], Any]
"""Turn a raw value into the option's type. Raise ValueError saying what was expected."""


def short(value: object, depth: int = 1) -> str:
    """Return a short text for a value in a message, in little time, however large or deep the value is."""
    kind, most = type(value), 30
    if isinstance(value, (str, bytes)):
        return repr(value[:most]) + ("..." if len(value) > most else "")
    if isinstance(value, (list, tuple)) and depth:
        return "[" + ", ".join([short(one, depth - 1) for one in value[:3]] + ["..."] * (len(value) > 3)) + "]"
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and value.bit_length() < 100):
        return repr(value)
    return f"a value of type {kind.__name__[:most]}"


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """Return the end of a message, which suggests the most similar name. It is empty if no name is similar."""
    close = get_close_matches(value, names, 1, 0.75) if isinstance(value, str) and len(value) <= LONGEST_NAME else []
    return f"; did you mean {close[0]}?" if close else ""


def came(value: object, error: object) -> str:
    """Return the end of a message about a wrong value: what came, and which of the expected names may be meant.

    ``error`` says what was expected, with names in single quotation marks.
    """
    names = re.findall(r"'(\w+)'", str(error))
    return f"(got {short(value)}{did_you_mean(value, names)})"


def is_none(value: Any) -> bool:
    """Return True for None and for what stands for it on a command line: ``None``, ``none`` and an empty string."""
    return value is None or (isinstance(value, str) and value in ("", "None", "none"))


def optional(check: Check) -> Check:
    """Return a check that also accepts None, in any of its forms."""
    return lambda value: None if is_none(value) else check(value)


def boolean(value: Any) -> bool:
    """Accept True, False, 1, 0 and their usual names."""
    if isinstance(value, str) and len(value) <= LONGEST_VALUE:
        value = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            value.lower(), value
        )
    if value in (True, False, 1, 0):
        return bool(value)
    raise ValueError("True or False")


def one_of(*names: str) -> Check:
    """Return a check for one of some names."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return str(value)
        raise ValueError(_one_of(names))

    return check


def _one_of(names: Iterable[str]) -> str:
    return "one of " + ", ".join(map(repr, names))


def engine(value: Any) -> str:
    """Accept the name of an engine, or a dotted path."""
    if isinstance(value, str) and (value in ENGINES or _is_dotted(value)):
        return str(value)
    raise ValueError(f"{_one_of(ENGINES)} or a dotted path to a callable")


_device = re.compile(r"cpu|(?:cuda|tensorrt)(?::\d{1,3})?").fullmatch


def device(value: Any) -> str:
    """Accept the name of a device."""
    if isinstance(value, str) and _device(value):
        return value
    raise ValueError("'cpu', or 'cuda' or 'tensorrt', with a number as in 'cuda:1'")


def fallback(value: Any) -> str | Callable[..., Any]:
    """Accept the name of a fallback, a dotted path to a function, or a function."""
    named = isinstance(value, str) and (value in FALLBACKS or _is_dotted(value))
    if named or (callable(value) and not isinstance(value, type)):
        return value  # type: ignore[no-any-return]
    raise ValueError(f"{_one_of(FALLBACKS)}, a dotted path to a callable or a callable")


def _is_dotted(path: str) -> bool:
    return "." in path and all(part.isidentifier() for part in path.split("."))


def markdown_writer(value: Any) -> str:
    """Accept the name of a writer of Markdown, unless the module that it needs is not installed."""
    name: str = one_of("dripper", "html2text")(value)
    if name == "html2text" and find_spec(name) is None:
        raise ValueError("another value, unless html2text is installed: pip install 'scrapy-dripper[html2text]'")
    return name


def whole(least: int) -> Check:
    """Return a check for a whole number with a minimum."""

    def check(value: Any) -> int:
        number = _number(value)
        if number >= least and number.is_integer():
            return int(number)
        raise ValueError(f"a whole number of at least {least}")

    return check


def seconds(value: Any) -> float:
    """Accept a finite number above 0."""
    number = _number(value)
    if 0 < number < math.inf:
        return number
    raise ValueError("a number of seconds above 0")


def number(least: float, most: float) -> Check:
    """Return a check for a number between two others."""

    def check(value: Any) -> float:
        found = _number(value)
        if least <= found <= most:
            return found
        raise ValueError(f"a number from {least:g} to {most:g}")

    return check


def _number(value: Any) -> float:
    """Return a number, or NaN for anything else. No comparison with NaN is true."""
    is_text = isinstance(value, str) and len(value) <= LONGEST_VALUE
    try:
        return float(value) if is_text or (hasattr(value, "__float__") and not isinstance(value, bool)) else math.nan
    except (TypeError, ValueError, OverflowError):
        return math.nan


def path(value: Any) -> str:
    """Accept a path, as a string or an object."""
    text = str(value) if hasattr(value, "__fspath__") else value
    if isinstance(text, str) and 0 < len(text) <= LONGEST_VALUE:
        return text
    raise ValueError(f"a non-empty string of at most {LONGEST_VALUE:,} characters")


def field_name(value: Any) -> str:
    """Accept the name of an item's field."""
    # Feeds write names unescaped, and the names in a request may come from outside.
    if isinstance(value, str) and len(value) <= LONGEST_FIELD and _is_field(value) and not value.startswith("__"):
        return value
    raise ValueError(f"the name of a field: at most {LONGEST_FIELD} letters, digits and '_-.', a letter or '_' first")


def content_types(value: Any) -> tuple[str, ...]:
    """Accept some of :data:`CONTENT_TYPES`, as a list or as a string with commas."""
    names = _listed(value)
    if names and all(isinstance(name, str) and name in CONTENT_TYPES for name in names):
        return tuple(name for name in CONTENT_TYPES if name in names)
    raise ValueError("a list of some of " + ", ".join(map(repr, CONTENT_TYPES)))


def item_names(value: Any) -> tuple[str, ...]:
    """Accept item classes or their names, as a list or as a string with commas."""
    names = [f"{one.__module__}.{one.__qualname__}" if isinstance(one, type) else one for one in _listed(value) or ()]
    if _listed(value) is not None and all(isinstance(name, str) and _is_name(name) for name in names):
        return tuple(names)
    raise ValueError("a list of item classes, or of their names")


def _is_name(name: str) -> bool:
    return len(name) <= LONGEST_VALUE and all(part.isidentifier() or part == "<locals>" for part in name.split("."))


def _listed(value: Any) -> list[Any] | None:
    """Return the members of a list, or the parts of a string between commas; None for anything else."""
    if isinstance(value, str) and len(value) <= LONGEST_VALUE:
        return [name.strip() for name in value.split(",")]
    if isinstance(value, (list, tuple, set, frozenset)) and len(value) <= LONGEST_VALUE:
        return list(value)
    return None


def phrases(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Accept lists of phrases by the name of their group: a dict, its pairs, or JSON."""
    with suppress(TypeError, ValueError, RecursionError):
        given = dict(json.loads(value) if isinstance(value, str) and len(value) <= LONGEST_VALUE else value)
        lists = [one for one in given.values() if isinstance(one, (list, tuple))]
        if len(lists) == len(given) and all(
            isinstance(one, str) and one.strip() for some in (given, *lists) for one in some
        ):
            return tuple((name, tuple(given[name])) for name in given)
    raise ValueError("a dict with a list of phrases for each group")


def as_dict(value: Any, short_for: str | None) -> Mapping[Any, Any] | None:
    """Return a dict, also from JSON; None for anything else. Any other text is the value of the key ``short_for``."""
    if isinstance(value, str) and len(value) <= LONGEST_VALUE:
        if short_for is not None and not value.lstrip().startswith("{"):
            return {short_for: value}
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return value if isinstance(value, Mapping) else None
