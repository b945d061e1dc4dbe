"""The messages between a crawl and its workers: a JSON header and binary parts, which cannot execute code.

A message is two lengths, the header, and the parts. Documents, extractions and configurations are packed into it.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pkgutil import resolve_name
from typing import Any, BinaryIO

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import STRINGS, Document, Extraction, FallbackReason, SiteData, from_plain, to_plain

Values = dict[str, Any]
Message = tuple[dict[str, Any], list[bytes]]

_lengths = struct.Struct(">QQ")
_SIZES = "sizes"


def send(stream: BinaryIO, header: Mapping[str, Any], parts: Sequence[bytes] = ()) -> None:
    """Write a message. Raise OSError if the other end is closed."""
    data = json.dumps({**header, _SIZES: [len(part) for part in parts]}).encode("ascii")
    stream.write(_lengths.pack(len(data), sum(map(len, parts))) + data)
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO, most: int) -> Message:
    """Read a message of at most ``most`` bytes.

    Raise EOFError if the stream ends before a complete message, and ValueError for an invalid message.
    """
    header_size, parts_size = _lengths.unpack(_read(stream, _lengths.size))
    if header_size + parts_size > most:
        raise ValueError(f"expected a message of at most {most:,} bytes (got {header_size + parts_size:,})")
    header = json.loads(_read(stream, header_size))
    sizes = header.pop(_SIZES, None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError("expected a header with the sizes of the parts (got none)")
    if sum(sizes) != parts_size:
        raise ValueError(f"expected parts of {parts_size:,} bytes in total (got {sum(sizes):,})")
    return header, [_read(stream, size) for size in sizes]


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"expected {size:,} bytes (got {len(data):,})")
    return data


@dataclass(frozen=True, slots=True)
class Task:
    """A document to extract. With a ``reason``, the worker runs the fallback."""

    document: Document
    config: Config
    reason: FallbackReason | None = None
    error: str | None = None
    without: tuple[str, ...] = ()
    """Forms that are left out, because each has stopped a worker."""


def pack_config(config: Config) -> Values:
    """Return the options that differ from their defaults. A callable becomes its dotted path.

    Rules are left out, because each page is sent with its own rules. A crawl can have thousands of rules, which a
    worker would read again for every batch.
    """
    values = {f.name: getattr(config, f.name) for f in fields(config) if getattr(config, f.name) != f.default}
    values.pop("rules", None)
    values |= {name: asdict(values[name]) for name in ("limits", "methods", "markdown", "chunks") if name in values}
    if "fallback" in values:
        values["fallback"] = _dotted_path(config.fallback)
    return values


def _dotted_path(fallback: str | Callable[..., Any]) -> str:
    """Return the dotted path by which another process can import a fallback.

    Raise :exc:`ConfigError` for a callable that cannot be imported.
    """
    if isinstance(fallback, str):
        return fallback
    module, name = getattr(fallback, "__module__", None), getattr(fallback, "__qualname__", None)
    path = f"{module}.{name}"
    if module != "__main__":
        with suppress(Exception):  # importing a user's module can raise anything
            if resolve_name(path) is fallback:
                return path
    raise ConfigError(
        f"DRIPPER_FALLBACK is {fallback!r}, which worker processes cannot import: put the function into a module and "
        "name it as 'package.module.function', or set DRIPPER_PROCESSES = 0"
    )


def pack_tasks(tasks: Sequence[Task]) -> tuple[Values, list[bytes]]:
    """Return tasks as a header and three parts for each task: the bytes of the document, and what the site memory and
    the templates know about its host.
    """
    configs: list[Config] = []
    numbers: dict[int, int] = {}
    rows, bodies = [], []
    for task in tasks:
        number = numbers.get(id(task.config))
        if number is None:
            number = numbers[id(task.config)] = len(configs)
            configs.append(task.config)
        document = task.document
        repeated, templates = document.site
        # One more than the limit, so that the worker can tell that the document is too long.
        html = document.html[: task.config.limits.bytes + 1]
        rows.append(
            {
                "url": document.url,
                "charset": document.charset,
                "config": number,
                "rules": task.config.rules.of(document.url) if task.config.rules else [],
                "text": isinstance(html, str),
                "repeated": repeated is not None,
                "templates": templates is not None,
                "reason": None if task.reason is None else task.reason.value,
                "error": task.error,
                "without": task.without,
            }
        )
        bodies.append(html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html)
        bodies += [repeated or b"", templates or b""]
    return {"tasks": rows, "configs": [pack_config(config) for config in configs]}, bodies


def unpack_tasks(header: Values, bodies: Sequence[bytes]) -> list[Task]:
    """Return the tasks that :func:`pack_tasks` has packed."""
    configs = [Config(**values) for values in header["configs"]]
    tasks = []
    for row, body, repeated, templates in zip(header["tasks"], bodies[::3], bodies[1::3], bodies[2::3], strict=True):
        html = body.decode("utf-8", "surrogatepass") if row["text"] else body
        config = configs[row["config"]]
        if row["rules"]:
            config = replace(config, rules=row["rules"])
        site = (repeated if row["repeated"] else None, templates if row["templates"] else None)
        document = Document(html, row["url"], row["charset"], config, SiteData(*site))
        reason = None if row["reason"] is None else FallbackReason(row["reason"])
        tasks.append(Task(document, config, reason, row["error"], tuple(row["without"])))
    return tasks


_JSON = ("content", "extra")
PARTS = len(STRINGS) + len(_JSON) + 4
"""Parts of an extraction: strings, values as JSON, labels, probabilities, hashes and example."""


def pack_extraction(extraction: Extraction) -> tuple[Values, list[bytes]]:
    """Return an extraction as a header and parts. Raise what :func:`from_plain` raises for a wrong value."""
    values = to_plain(extraction)
    apart = {name: values.pop(name) for name in (*STRINGS, *_JSON, "labels", "probabilities")}
    values_of = (apart[name] for name in _JSON)
    texts = [apart[name] for name in STRINGS]
    texts += [None if one is None else json.dumps(one, separators=(",", ":")) for one in values_of]
    values["missing"] = [text is None for text in texts]
    json.dumps(values)  # raises here for what is no JSON
    parts = [(text or "").encode("utf-8", "surrogatepass") for text in texts]
    parts += [bytes(bytearray(extraction.labels)), array("d", apart["probabilities"]).tobytes()]
    parts += [one or b"" for one in extraction.site]
    return values, parts


def unpack_extraction(url: str, values: Mapping[str, Any], parts: Sequence[bytes]) -> Extraction:
    """Return the extraction of a URL. Raise ValueError, TypeError, KeyError or AttributeError if the data is
    invalid.
    """
    *texts, labels, probabilities, hashes, example = parts
    likely = array("d")
    likely.frombytes(probabilities)
    found = {**values, "url": url, "labels": labels, "probabilities": likely}
    for name, data, missing in zip((*STRINGS, *_JSON), texts, values["missing"], strict=True):
        text = None if missing else data.decode("utf-8", "surrogatepass")
        found[name] = json.loads(text) if text is not None and name in _JSON else text
    extraction = from_plain(found)
    template = extraction.details.get("template")
    if hashes or example or template is not None:  # in few crawls
        from scrapy_dripper.sites.memory import unpacked_hashes
        from scrapy_dripper.sites.templates import Outcome, read_example

        if hashes:
            unpacked_hashes(hashes)
        if example:
            read_example(example)
        if template is not None:
            Outcome(template)
    return replace(extraction, site=SiteData(hashes or None, example or None))
