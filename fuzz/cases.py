"""A case: one document with its options, engine and labels, and the encoding of a case as bytes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from scrapy_dripper.checks import CONTENT_TYPES
from scrapy_dripper.config import Config

HEADER = 9
"""Number of bytes before the document: one for each choice, so that a fuzzer can change a single choice."""

CHARSETS = (None, "utf-8", "iso-8859-1", "shift_jis", "gb18030", "utf-16", "utf-16-le", "utf-32", "iso-2022-jp",
            "windows-1251", "euc-kr", "big5", "utf-7", "x-user-defined", "no-such-charset", "\0;'")  # fmt: skip
URLS = ("http://example.com/a/b?c=d#e", "", "https://example.com", "http://[", "file:///tmp/a b", "javascript:alert(1)")
_ENGINES = ("random",) * 24 + ("tagger",) * 3 + ("v1.0",) * 4 + ("failing",)
_FALLBACKS = ("html",) * 20 + ("empty",) * 8 + ("none",) * 2 + ("trafilatura",) * 2
_LIMITS: tuple[dict[str, Any], ...] = (
    *({},) * 9,
    {"limits": {"blocks": 3}},
    {"limits": {"blocks": 3}, "oversize": "truncate"},
    {"limits": {"blocks": 1}, "oversize": "truncate"},
    {"limits": {"bytes": 200}},
    {"limits": {"bytes": 200}, "oversize": "truncate"},
    {"limits": {"bytes": 1_001}, "oversize": "truncate"},
    {"oversize": "truncate"},
)
_TYPES = (*(None,) * 10, ("paragraph",), ("title", "list", "quote"), ("table", "code"), CONTENT_TYPES[:6],
          CONTENT_TYPES[6:], CONTENT_TYPES)  # fmt: skip

_plain = Config(fallback="html", content_field="content", processes=0)  # what is looked for would die elsewhere


@dataclass(frozen=True, slots=True)
class Case:
    """One test case."""

    html: str | bytes
    charset: str | None = None
    url: str = URLS[0]
    engine: str = "random"
    """``random`` and ``v1.0`` draw labels, one on each profile; ``tagger`` is the bundled model; ``failing`` fails."""
    seed: int = 0
    """Seed of the labels."""
    config: Config = field(default=_plain)


def config(**options: Any) -> Config:
    """Return the configuration of a case: pages are parsed in this process, and the fallback is a quick one."""
    return dataclasses.replace(_plain, **options)


def decode(data: bytes) -> Case:
    """Decode a case from a fuzzer's bytes. Every byte string is a valid case."""
    header, body = data[:HEADER].ljust(HEADER, b"\0"), data[HEADER:]
    form, charset, url, engine, seed, fallback, output, limits, types = header
    html = (
        body,
        body.decode("utf-8", "replace"),
        body.decode("utf-8", "surrogateescape"),  # bytes that are not UTF-8 become lone surrogates
        body.decode("latin-1"),
    )[form % 4]
    options = dict(_LIMITS[limits % len(_LIMITS)])
    options |= {
        "fallback": _FALLBACKS[fallback % len(_FALLBACKS)],
        "markdown": {
            "links": ("keep", "keep", "drop", "citations")[output >> 2 & 3],
            "tables": "linear" if output >> 4 & 1 else "html",
            "callouts": "quotes" if output & 1 else "alerts",
            "posts": "named" if output >> 1 & 1 else "rules",
            "front_matter": bool(form >> 2 & 1),
            "types": _TYPES[types % len(_TYPES)],
        },
        "metadata_field": "about" if output >> 5 == 7 else None,
        "chunks_field": "chunks" if form >> 3 & 1 else None,
        "chunks": {"size": 50 + 10 * (form >> 4)},
        "links_field": "links" if form >> 3 & 1 else None,
    }
    return Case(
        html=html,
        charset=CHARSETS[charset % len(CHARSETS)],
        url=URLS[max(0, url - 200) % len(URLS)],
        engine=_ENGINES[engine % len(_ENGINES)],
        seed=seed,
        config=config(**options),
    )
