"""Every option once: name, type, default, check and a line of documentation.

The same :class:`Config` is read from Scrapy settings (``DRIPPER_BATCH_SIZE``), from a request's
``meta["dripper"]`` (``{"batch_size": ...}`` where it makes sense) and from command-line flags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PREFIX = "DRIPPER_"
FALLBACKS = ("trafilatura", "html", "empty", "none")
CONTENT_TYPES = (
    *("title", "paragraph", "code", "formula", "table", "list", "image", "video", "audio", "quote", "rule"),
    "footnotes",
)
"""The types of items of a content list (:mod:`scrapy_dripper.output.items`)."""


class ConfigError(ValueError):
    """An option has a value that it cannot have; the message names the setting, what it takes and what came."""


Check = Callable[[Any], Any]
"""Turn a raw value into the option's type. Raise ValueError saying what was expected."""


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        value = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            value.lower(), value
        )
    if value in (True, False, 1, 0):
        return bool(value)
    raise ValueError("True or False")


def _one_of(*names: str) -> Check:
    def check(value: Any) -> str:
        if value in names:
            return str(value)
        raise ValueError("one of " + ", ".join(map(repr, names)))

    return check


def _whole(least: int) -> Check:
    def check(value: Any) -> int:
        try:
            number = int(value)
            if number >= least and number == float(value) and not isinstance(value, bool):
                return number
        except (TypeError, ValueError, OverflowError):
            pass
        raise ValueError(f"a whole number of at least {least}")

    return check


def _seconds(value: Any) -> float:
    try:
        number = float(value)
        if math.isfinite(number) and number > 0 and not isinstance(value, bool):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("a number of seconds above 0")


def _share(value: Any) -> float:
    try:
        number = float(value)
        if 0 <= number <= 1 and not isinstance(value, bool):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("a number from 0 to 1")


def _text(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise ValueError("a non-empty string")


def _path(value: Any) -> str:
    return _text(str(value) if hasattr(value, "__fspath__") else value)


def _fallback(value: Any) -> str | Callable[..., Any]:
    dotted = isinstance(value, str) and all(part.isidentifier() for part in value.split(".")) and "." in value
    if value in FALLBACKS or dotted or (callable(value) and not isinstance(value, type)):
        return value  # type: ignore[no-any-return]
    raise ValueError("one of " + ", ".join(map(repr, FALLBACKS)) + ", a dotted path to a callable or a callable")


def _types(value: Any) -> tuple[str, ...]:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if isinstance(names, (list, tuple, set, frozenset)) and names and all(name in CONTENT_TYPES for name in names):
        return tuple(name for name in CONTENT_TYPES if name in names)
    raise ValueError("a list of some of " + ", ".join(map(repr, CONTENT_TYPES)))


def _optional(check: Check) -> Check:
    return lambda value: None if value is None or value == "" else check(value)


def _option(default: Any, check: Check, doc: str, *, per_request: bool = False) -> Any:
    return field(default=default, metadata={"check": check, "doc": doc, "per_request": per_request})


@dataclass(frozen=True, slots=True)
class Config:
    """The options of one crawl, or of one page. Construction checks every value and raises :exc:`ConfigError`."""

    enabled: bool = _option(True, _boolean, "Switch the plugin off without taking it out.")
    engine: str = _option("tagger", _one_of("tagger", "qwen3"), "Who labels the blocks.")
    model: str | None = _option(
        None, _optional(_path), "Folder of the model; by default the one that is bundled with the engine."
    )
    cascade: float | None = _option(
        None,
        _optional(_share),
        "Confidence of the tagger, 0 to 1, from which on a page keeps its labels and does not go to the engine.",
    )
    device: str = _option("auto", _one_of("auto", "cpu", "cuda"), "Where the model runs.")
    threads: int = _option(1, _whole(1), "Threads of the model's session on a CPU.")
    batch_size: int = _option(8, _whole(1), "Most pages that are labelled together.")
    batch_wait: float = _option(0.2, _seconds, "Longest wait, in seconds, for a batch to fill.")
    timeout: float = _option(
        30.0,
        _seconds,
        "Seconds that one step on a page's way (reading it, labelling its batch, writing it) may take before the page "
        "falls back; time in the queue does not count.",
    )
    fallback: str | Callable[..., Any] = _option(
        "trafilatura",
        _fallback,
        "What extracts a page that the model could not decide about: 'trafilatura', 'html' (the whole cleaned page), "
        "'empty', 'none' (the item stays as it is) or a dotted path to a callable.",
        per_request=True,
    )
    oversize: str = _option(
        "fallback",
        _one_of("fallback", "truncate", "window"),
        "What happens to a page over a limit: the fallback extracts it, or its first part is labelled, or, if it has "
        "too many tokens, it is labelled in overlapping windows.",
        per_request=True,
    )
    max_tokens: int | None = _option(
        None, _optional(_whole(1)), "Most tokens of a prompt; by default what the answer leaves of the model's context."
    )
    truncate_chars: int | None = _option(
        None,
        _optional(_whole(0)),
        "Characters after which a prompt cuts a text within a block; 0 for never, by default as the model was trained.",
    )
    max_blocks: int = _option(10_000, _whole(1), "Most blocks of a page that the engine labels.", per_request=True)
    max_bytes: int = _option(
        10_000_000,
        _whole(1),
        "Most bytes of a page that are parsed; characters, where it comes as text.",
        per_request=True,
    )
    max_nodes: int = _option(100_000, _whole(1), "Most elements of a page that are looked at.", per_request=True)
    max_attributes: int = _option(
        500_000, _whole(1), "Most attributes of a page, those of all its elements together.", per_request=True
    )
    max_depth: int = _option(
        500, _whole(256), "Depth of elements from which on a page is flattened; no text is lost.", per_request=True
    )
    max_text: int = _option(
        5_000_000, _whole(1), "Most characters of text of a page, scripts and the like aside.", per_request=True
    )
    sandbox: str = _option(
        "auto",
        _one_of("auto", "always", "never"),
        "Which pages are parsed in a child process that can be killed: those that look dangerous, all, or none.",
    )
    sandbox_memory: int = _option(1_024, _whole(256), "Most memory of that child process, in MiB of address space.")
    title: str = _option(
        "keep",
        _one_of("keep", "drop"),
        "What becomes of the headline, the heading that names the main content: it is part of the output, and first in "
        "it, or it is left out.",
        per_request=True,
    )
    markdown: str = _option(
        "dripper",
        _one_of("dripper", "html2text"),
        "Who writes Markdown: 'dripper' from the content list, or 'html2text' from the Main-HTML.",
        per_request=True,
    )
    links: str = _option(
        "keep",
        _one_of("keep", "drop", "citations"),
        "What becomes of links in Markdown: they are kept, only their text is, or they are numbered with the URLs at "
        "the end.",
        per_request=True,
    )
    complex_tables: str = _option(
        "html",
        _one_of("html", "linear"),
        "What becomes, in Markdown, of tables with spans or blocks in their cells: HTML, or a simple table in which "
        "spanning cells are repeated.",
        per_request=True,
    )
    guess_language: bool = _option(
        False,
        _boolean,
        "Guess the language of code whose page does not name it, from the code; needs the extra [guess].",
    )
    content_types: tuple[str, ...] | None = _option(
        None,
        _optional(_types),
        "Types of content to keep in the content list, Markdown and text; by default all.",
        per_request=True,
    )
    html_field: str | None = _option(
        "main_html", _optional(_text), "Item field that receives the Main-HTML; None for no field.", per_request=True
    )
    markdown_field: str | None = _option(
        "markdown", _optional(_text), "Item field that receives the Markdown; None for no field.", per_request=True
    )
    content_field: str | None = _option(
        None,
        _optional(_text),
        "Item field that receives the content list, as plain JSON values; None for no field.",
        per_request=True,
    )
    metadata_field: str | None = _option(
        None,
        _optional(_text),
        "Item field that receives what the page says about itself: title, author, date, language, site_name, url, "
        "description, image.",
        per_request=True,
    )
    meta_field: str | None = _option(
        None,
        _optional(_text),
        "Item field that receives a small dict: source, fallback reason, confidence, block counts, milliseconds.",
        per_request=True,
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            try:
                checked = option.metadata["check"](value)
            except ValueError as error:
                raise ConfigError(f"{PREFIX}{option.name.upper()} must be {error} (got {short(value)})") from None
            object.__setattr__(self, option.name, checked)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Config:
        """Read the ``DRIPPER_*`` settings of a crawl. Raise :exc:`ConfigError` for an unknown one or a wrong value."""
        values: dict[str, Any] = {}
        known = {PREFIX + option.name.upper(): option.name for option in fields(cls)}
        for name in settings:
            if not isinstance(name, str) or not name.startswith(PREFIX):
                continue
            if name not in known:
                raise ConfigError(f"{name} is not a setting of scrapy-dripper; the settings are {', '.join(known)}")
            values[known[name]] = settings[name]
        return cls(**values)

    def override(self, values: Mapping[str, Any]) -> Config:
        """Return this configuration with a request's ``meta["dripper"]`` applied.

        Raise :exc:`ConfigError` for a name that is not an option of a single request, or a wrong value. A request may
        name a fallback of :data:`FALLBACKS` only: its meta can come from outside, and must not choose code to run.
        """
        allowed = [option.name for option in fields(self) if option.metadata["per_request"]]
        for name in values:
            if name not in allowed:
                raise ConfigError(f'meta["dripper"] takes the keys {", ".join(allowed)} (got {short(name)})')
        chosen = values.get("fallback")
        if chosen is not None and chosen not in (*FALLBACKS, self.fallback):
            raise ConfigError(
                f'meta["dripper"]["fallback"] must be one of {", ".join(map(repr, FALLBACKS))} (got {short(chosen)}); '
                "a callable is named in the settings"
            )
        return replace(self, **values)
