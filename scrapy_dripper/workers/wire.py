"""Serialise documents, extractions and configurations as JSON and bytes, which cannot execute code."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction, FallbackReason, Metadata, PackedContent
from scrapy_dripper.fallback_names import dotted_path

if TYPE_CHECKING:
    from scrapy_dripper.output.chunks import Chunk
    from scrapy_dripper.output.items import Items
    from scrapy_dripper.output.outlinks import Outlink

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A document to extract. With a ``reason``, the worker runs the fallback."""

    document: Document
    config: Config
    reason: FallbackReason | None = None
    error: str | None = None


def pack_config(config: Config) -> Values:
    """Return the options that differ from their defaults. A callable becomes its dotted path.

    Rules are left out, because each page is sent with its own rules. A crawl can have thousands of rules, which a
    worker would read again for every batch.
    """
    values = {f.name: getattr(config, f.name) for f in fields(config) if getattr(config, f.name) != f.default}
    values.pop("rules", None)
    values |= {name: asdict(values[name]) for name in ("limits", "markdown", "chunks") if name in values}
    if "fallback" in values:
        values["fallback"] = dotted_path(config.fallback)
    return values


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
        # One more than the limit, so that the worker can tell that the document is too long.
        html = document.html[: task.config.limits.bytes + 1]
        rows.append(
            {
                "url": document.url,
                "charset": document.charset,
                "config": number,
                "rules": task.config.rules.of(document.url) if task.config.rules else [],
                "text": isinstance(html, str),
                "known": document.known is not None,
                "templates": document.templates is not None,
                "reason": None if task.reason is None else task.reason.value,
                "error": task.error,
            }
        )
        bodies.append(html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html)
        bodies += [document.known or b"", document.templates or b""]
    return {"tasks": rows, "configs": [pack_config(config) for config in configs]}, bodies


def unpack_tasks(header: Values, bodies: Sequence[bytes]) -> list[Task]:
    """Return the tasks that :func:`pack_tasks` has packed."""
    configs = [Config(**values) for values in header["configs"]]
    tasks = []
    for row, body, known, templates in zip(header["tasks"], bodies[::3], bodies[1::3], bodies[2::3], strict=True):
        html = body.decode("utf-8", "surrogatepass") if row["text"] else body
        config = configs[row["config"]]
        if row["rules"]:
            config = replace(config, rules=row["rules"])
        site = (data if row[name] else None for name, data in (("known", known), ("templates", templates)))
        document = Document(html, row["url"], row["charset"], config, *site)
        reason = None if row["reason"] is None else FallbackReason(row["reason"])
        tasks.append(Task(document, config, reason, row["error"]))
    return tasks


_STRINGS = ("title", "main_html", "markdown", "text", "source", "error", "page_type")


def pack_extraction(extraction: Extraction) -> tuple[Values, list[bytes]]:
    """Return an extraction as a header and parts. Raise TypeError or ValueError if a value has the wrong type."""
    from scrapy_dripper.output.content_json import to_json

    strings = [getattr(extraction, name) for name in _STRINGS]
    content = None if extraction.content is None else json.dumps(to_json(extraction.content), separators=(",", ":"))
    metadata = None if extraction.metadata is None else json.dumps(extraction.metadata.as_dict())
    chunks = None if extraction.chunks is None else _dumped(extraction.chunks)
    links = None if extraction.links is None else _dumped(extraction.links)
    texts = [*strings, content, metadata, chunks, links]
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise TypeError(f"expected a string (got {type(text).__name__})")
    if extraction.metadata is not None:
        extraction.metadata.check()
    if len(extraction.labels) != len(extraction.probabilities):
        raise ValueError(
            f"expected {len(extraction.labels)} probabilities, one per label (got {len(extraction.probabilities)})"
        )
    values = {
        "reason": None if extraction.fallback_reason is None else extraction.fallback_reason.value,
        "exceeded": None if extraction.exceeded is None else str(extraction.exceeded),
        "blocks": int(extraction.blocks),
        "truncated": bool(extraction.truncated),
        "page_type_probability": _number(extraction.page_type_probability),
        "quality": _number(extraction.quality),
        "fingerprints": _fingerprints(extraction.fingerprints),
        "rules": _counts(extraction.rules),
        "work": {str(name): int(value) for name, value in extraction.work.items()},
        "overruled": list(map(str, extraction.overruled)),
        "facts_missing": list(map(str, extraction.missing)),
        "repeated": int(extraction.repeated),
        "template": None if extraction.template is None else str(extraction.template),
        "milliseconds": float(extraction.milliseconds),
        "missing": [text is None for text in texts],
    }
    parts = [(text or "").encode("utf-8", "surrogatepass") for text in texts]
    parts += [bytes(bytearray(extraction.labels)), array("d", extraction.probabilities).tobytes()]
    parts += [extraction.digest, extraction.lesson]
    return values, parts


PARTS = len(_STRINGS) + 8
"""Parts of an extraction: strings, content list, metadata, chunks, links, labels, probabilities, digest and lesson."""


def unpack_extraction(url: str, values: Mapping[str, Any], parts: Sequence[bytes]) -> Extraction:
    """Return the extraction of a URL. Raise ValueError, TypeError or KeyError if the data is invalid."""
    *texts, content, metadata, chunks, links, labels, probabilities, digest, lesson = parts
    _check_sites(digest, lesson, values["template"])
    *absent, no_content, no_metadata, no_chunks, no_links = values["missing"]
    strings: list[str | None] = [
        None if missing else text.decode("utf-8", "surrogatepass") for text, missing in zip(texts, absent, strict=True)
    ]
    title, main_html, markdown, text, source, error, page_type = strings
    if source is None:
        raise ValueError("expected an extraction with a source (got none)")
    likely = array("d")
    likely.frombytes(probabilities)
    if len(likely) != len(labels):
        raise ValueError(f"expected {len(labels)} probabilities, one per label (got {len(likely)})")
    return Extraction(
        url=url,
        title=title,
        main_html=main_html,
        markdown=markdown,
        text=text,
        source=source,
        error=error,
        fallback_reason=None if values["reason"] is None else FallbackReason(values["reason"]),
        labels=tuple(map(bool, labels)),
        probabilities=tuple(likely),
        exceeded=values["exceeded"],
        blocks=int(values["blocks"]),
        truncated=bool(values["truncated"]),
        page_type=page_type,
        page_type_probability=_number(values["page_type_probability"]),
        quality=_number(values["quality"]),
        content=None if no_content else _packed(content),  # type: ignore[arg-type]
        metadata=None if no_metadata else Metadata.from_dict(json.loads(metadata)),
        chunks=None if no_chunks else _chunks(chunks),
        links=None if no_links else _links(links),
        fingerprints=_fingerprints(values["fingerprints"]),
        rules=_counts(values["rules"]),
        work={str(name): int(count) for name, count in dict(values["work"]).items()},
        overruled=tuple(map(str, values["overruled"])),
        missing=tuple(map(str, values["facts_missing"])),
        repeated=int(values["repeated"]),
        digest=digest,
        template=values["template"],
        lesson=lesson,
        milliseconds=float(values["milliseconds"]),
    )


def _check_sites(digest: bytes, lesson: bytes, template: str | None) -> None:
    """Raise ValueError if what the site memory and the templates get is invalid. Most crawls have neither."""
    if digest or lesson or template is not None:
        from scrapy_dripper.sites import Outcome, parts_of, read_lesson

        if digest:
            parts_of(digest)
        if lesson:
            read_lesson(lesson)
        if template is not None:
            Outcome(template)


def _packed(data: bytes) -> PackedContent:
    return PackedContent(partial(_items, data), partial(_values, data))


def _items(data: bytes) -> Items:
    from scrapy_dripper.output.content_json import from_json

    return from_json(json.loads(data))


def _values(data: bytes) -> list[dict[str, Any]]:
    """Return packed items as plain JSON values. They need no validation, since :func:`pack_extraction` made them."""
    values = json.loads(data)
    if not isinstance(values, list):
        raise ValueError(f"expected a content list (got {type(values).__name__})")
    return values


def _dumped(parts: Sequence[Any]) -> str:
    """Return chunks or links as JSON, each as a list of its values. Raise TypeError for values of the wrong type."""
    rows = [[getattr(part, field.name) for field in fields(part)] for part in parts]
    for row in rows:
        _check_row(row)
    return json.dumps(rows, separators=(",", ":"))


def _chunks(data: bytes) -> tuple[Chunk, ...]:
    from scrapy_dripper.output.chunks import Chunk

    rows = [_check_row(row) for row in json.loads(data)]
    return tuple(Chunk(text, tuple(headings), *others) for text, headings, *others in rows)


def _links(data: bytes) -> tuple[Outlink, ...]:
    from scrapy_dripper.output.outlinks import Outlink

    return tuple(Outlink(url, text) for url, text in map(_check_row, json.loads(data)))


def _check_row(row: Sequence[Any]) -> Sequence[Any]:
    for value in row:
        inside = value if isinstance(value, (list, tuple)) else ()
        if not (isinstance(value, (str, int, list, tuple)) and all(isinstance(one, str) for one in inside)):
            raise TypeError(f"expected strings and numbers (got {type(value).__name__})")
    return row


def _fingerprints(values: Any) -> tuple[str, str] | None:
    if values is None:
        return None
    of_content, of_words = values
    if not (isinstance(of_content, str) and isinstance(of_words, str)):
        raise TypeError(f"expected two strings (got {type(of_content).__name__} and {type(of_words).__name__})")
    return of_content, of_words


def _counts(values: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if values is None else {str(name): int(count) for name, count in dict(values).items()}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
