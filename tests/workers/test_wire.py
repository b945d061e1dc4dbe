"""Documents, configurations and extractions are sent as plain data, and are equal on the other side. Messages that
make no sense are refused. Pages with every structure have the same extractions in a worker and in this process."""

from __future__ import annotations

import contextlib
import io
import json
import struct
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.checks import CONTENT_TYPES
from scrapy_dripper.config import Config
from scrapy_dripper.data import (
    UNREAD,
    Breadcrumb,
    Document,
    Extraction,
    FallbackReason,
    Metadata,
    SiteData,
)
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_json import to_json
from scrapy_dripper.rules import SiteRule
from scrapy_dripper.structures import items as kinds
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import (
    PARTS,
    Task,
    pack_config,
    pack_extraction,
    pack_tasks,
    receive,
    send,
    unpack_extraction,
    unpack_tasks,
)
from tests.workers.children import OWN

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=8)
"""Text with lone surrogates and all."""


def _no_pair(text: str) -> bool:
    """JSON reads two halves of a surrogate pair as one character."""
    return not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


TEXT = ANY.filter(_no_pair)
ITEM = st.builds(lambda text: kinds.Paragraph((kinds.Text(text),)), TEXT) | st.builds(kinds.CodeBlock, TEXT, TEXT)
ITEMS = st.lists(ITEM, max_size=3).map(tuple)
"""Structures of all kinds are on the pages below."""

PLAIN = st.none() | st.booleans() | st.integers() | TEXT
CHUNKS = st.dictionaries(TEXT, PLAIN | st.lists(TEXT, max_size=3), max_size=3)
LABELS = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=10)
MAYBE = st.none() | TEXT
METADATA = st.builds(
    Metadata,
    **dict.fromkeys(
        "title date_published date_modified language site_name url canonical description image".split(), MAYBE
    ),
    authors=st.lists(TEXT, max_size=3).map(tuple),
    breadcrumbs=st.lists(st.builds(Breadcrumb, MAYBE, MAYBE), max_size=3).map(tuple),
)
EXTRACTIONS = st.builds(
    lambda labels, **values: Extraction(
        labels=tuple(main for main, _ in labels), probabilities=tuple(p for _, p in labels), **values
    ),
    LABELS,
    url=ANY,
    title=st.none() | ANY,
    main_html=st.none() | ANY,
    markdown=st.none() | ANY,
    text=st.none() | ANY,
    source=ANY,
    fallback_reason=st.none() | st.sampled_from(FallbackReason),
    error=st.none() | ANY,
    truncated=st.booleans(),
    content=st.none() | ITEMS.map(to_json),
    metadata=st.none() | st.just(UNREAD) | METADATA,
    extra=st.fixed_dictionaries(
        {},
        optional={
            "chunks": st.none() | st.lists(CHUNKS, max_size=3),
            "links": st.lists(st.dictionaries(TEXT, TEXT, max_size=2), max_size=3),
        },
    ),
    page_type=st.none() | ANY,
    quality=st.none() | st.floats(0, 1),
    details=st.dictionaries(TEXT, PLAIN | st.lists(TEXT, max_size=2) | st.dictionaries(TEXT, PLAIN, max_size=2)),
)


def other_side(extraction: Extraction) -> Extraction:
    """Return the values after serialisation as JSON."""
    values, parts = pack_extraction(extraction)
    assert len(parts) == PARTS
    return unpack_extraction(extraction.url, json.loads(json.dumps(values)), parts)


@given(EXTRACTIONS)
def test_any_extraction_arrives_as_it_was(extraction: Extraction) -> None:
    """Texts can be None or empty, with any characters, and types are kept."""
    found = other_side(extraction)
    assert found == extraction
    names = [option.name for option in fields(Extraction)]
    assert [type(getattr(found, name)) for name in names] == [type(getattr(extraction, name)) for name in names]
    assert all(type(label) is bool for label in found.labels)


GOOD = Extraction("u", "t", "h", "m", "x", "all", labels=(True, False), probabilities=(0.5, 0.25))


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": Metadata(authors=("x", 7))},  # type: ignore[arg-type]
        {"metadata": Metadata(breadcrumbs=(Breadcrumb("x", 7),))},  # type: ignore[arg-type]
        {"extra": {"chunks": [object()]}},
        {"extra": [("chunks", [])]},
        {"labels": None},
        {"probabilities": ("x", "y")},
        {"details": {"work": object()}},
        {"details": None},
        {"quality": "good"},
        {"fallback_reason": "because"},
    ],
)
def test_invalid_extractions_are_detected_in_the_worker(wrong: dict[str, Any]) -> None:
    """The worker detects it and reports a reason, so the crawl need not kill the worker."""
    extraction = replace(GOOD, **wrong)
    with pytest.raises((TypeError, ValueError, AttributeError)):
        pack_extraction(extraction)


def broken() -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Return a damaged answer."""
    values, parts = pack_extraction(replace(GOOD, metadata=Metadata(), content=[], extra={"links": []}))
    yield {**values, "fallback_reason": "because"}, parts
    yield {**values, "missing": []}, parts
    yield {**values, "missing": [True] * len(values["missing"])}, parts
    yield {**values, "quality": "x"}, parts
    for details in (3, {"work": 3}, {"work": {"x": None}}, {"rules": [1]}, {"overruled": [1]}, {"template": "unknown"}):
        yield {**values, "details": details}, parts
    for metadata in ({"title": 7}, {"title": "x", "nothing": "x"}, 7):
        yield {**values, "metadata": metadata}, parts
    yield values, [*parts[:7], b'{"type": "rule"}', *parts[8:]]
    yield values, [*parts[:8], b'[["x", 1]]', *parts[9:]]
    yield {}, parts
    yield values, parts[:-1]
    yield values, [b"\xff", *parts[1:]]
    yield values, [*parts[:-1], b"x" * 8]
    yield values, [*parts[:-2], b"x" * 7, b""]


def test_numbers_of_numpy_come_along() -> None:
    odd = replace(GOOD, quality=np.float32(0.5), truncated=np.bool_(True), labels=np.array(GOOD.labels))
    assert other_side(odd) == replace(GOOD, quality=0.5, truncated=True)


@pytest.mark.parametrize("number", range(20))
def test_invalid_answers(number: int) -> None:
    """Each raises an exception that the crawl handles."""
    values, parts = list(broken())[number]
    with pytest.raises((TypeError, ValueError, KeyError, AttributeError)):
        unpack_extraction("u", values, parts)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "fallback": st.sampled_from(["trafilatura", "html", "empty", "none", "some.module.function"]),
        "oversize": st.sampled_from(["fallback", "truncate"]),
        "favor": st.sampled_from(["balanced", "precision", "recall"]),
        "comments": st.sampled_from(["auto", "keep", "drop"]),
        "empty": st.sampled_from(["auto", "answer", "fallback"]),
        "timeout": st.floats(0.001, 10**6),
        "limits": st.fixed_dictionaries({}, optional={"bytes": st.integers(1, 10**9), "depth": st.integers(256, 999)}),
        "markdown": st.fixed_dictionaries(
            {"types": st.none() | st.sets(st.sampled_from(CONTENT_TYPES), min_size=1)},
            optional={"links": st.sampled_from(["keep", "drop", "citations"]), "front_matter": st.booleans()},
        ),
        "chunks": st.fixed_dictionaries(
            {}, optional={"size": st.integers(50, 10**6), "tokenizer": st.none() | st.just("x")}
        ),
        "html_field": st.none() | st.from_regex(r"[^\W\d_][\w.-]{0,8}", fullmatch=True),
        "processes": st.none() | st.integers(0, 9),
    },
)
ARGUMENTS = (ANY | st.binary(max_size=20), TEXT, st.none() | TEXT)
SITES = st.builds(SiteData, *[st.none() | st.binary(max_size=3)] * 2)
DOCUMENTS = st.builds(Document, *ARGUMENTS, site=SITES)
TASKS = st.lists(
    st.tuples(
        DOCUMENTS,
        st.integers(0, 2),
        st.none() | st.sampled_from(FallbackReason),
        st.none() | TEXT,
    ),
    max_size=5,
)


@given(st.lists(OPTIONS, min_size=3, max_size=3), TASKS)
def test_any_tasks_arrive_as_they_were(options: list[dict[str, Any]], rows: list[tuple[Any, ...]]) -> None:
    """Pages with different settings, as text and as bytes, arrive together."""
    configs = [Config(**values) for values in options]
    tasks = [Task(document, configs[number], *rest) for document, number, *rest in rows]
    header, bodies = pack_tasks(tasks)
    found = unpack_tasks(json.loads(json.dumps(header)), bodies)

    for task, one in zip(tasks, found, strict=True):
        sent = task.document
        html = sent.html[: task.config.limits.bytes + 1]
        document = replace(sent, html=html, config=task.config)
        assert one == replace(task, document=document)


def test_only_the_rules_of_a_page_go_with_it() -> None:
    """A crawl can have thousands of rules, which workers would read again for every batch."""
    rules = {f"{i}.example.com": {"drop": [f".x{i}"]} for i in range(2_000)}
    config = Config(rules={**rules, "*": {"keep": "//main"}})
    tasks = [Task(Document("", url), config) for url in ("https://7.example.com/", "https://e.org/")]

    header, bodies = pack_tasks(tasks)
    text = json.dumps(header)
    first, second = unpack_tasks(json.loads(text), bodies)

    assert len(text) < 1_000
    assert list(first.config.rules or ()) == [SiteRule("7.example.com", "drop", ".x7"), SiteRule("*", "keep", "//main")]
    assert list(second.config.rules or ()) == [SiteRule("*", "keep", "//main")]
    assert "rules" not in pack_config(config)


def test_no_more_of_a_document_than_can_be_used() -> None:
    """One more byte tells the worker that the document was longer."""
    config = Config(limits={"bytes": 10})
    _, bodies = pack_tasks([Task(Document("x" * 100), config), Task(Document(b"x" * 100), config)])
    assert [len(body) for body in bodies] == [11, 0, 0, 11, 0, 0]


def named(html: str, url: str) -> str:
    """A fallback that finds nothing."""
    return ""


def test_a_callable_goes_by_its_name() -> None:
    """It is sent as its dotted path."""
    assert pack_config(Config(fallback=named)) == {"fallback": f"{__name__}.named"}


MOST = 10_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
HEADERS = st.dictionaries(st.text(max_size=5).filter(lambda name: name != "sizes"), JSON, max_size=4)
MESSAGES = st.tuples(HEADERS, st.lists(st.binary(max_size=50), max_size=5))


@given(st.lists(MESSAGES, max_size=4))
def test_messages_arrive_as_they_were_sent(messages: list[tuple[dict[str, Any], list[bytes]]]) -> None:
    """Messages are received one by one, up to the end of the stream."""
    stream = io.BytesIO()
    for header, parts in messages:
        send(stream, header, parts)
    stream.seek(0)
    assert [receive(stream, 1 << 20) for _ in messages] == messages
    with pytest.raises((EOFError, struct.error)):
        receive(stream, MOST)


@given(MESSAGES, st.data())
def test_a_message_that_is_cut_off_is_an_end(message: tuple[dict[str, Any], list[bytes]], data: st.DataObject) -> None:
    """This holds at any position."""
    stream = io.BytesIO()
    send(stream, *message)
    whole = stream.getvalue()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(EOFError):
        receive(io.BytesIO(cut), MOST)


@given(st.binary(max_size=60))
def test_nonsense_is_an_end_or_a_value_error(data: bytes) -> None:
    with contextlib.suppress(EOFError, ValueError):
        receive(io.BytesIO(data), MOST)


def message(header: bytes, body: bytes = b"", *, most: int = MOST) -> Any:
    """Return the result of receiving a message with a given header."""
    return receive(io.BytesIO(struct.pack(">QQ", len(header), len(body)) + header + body), most)


@pytest.mark.parametrize(
    "header",
    [b"[]", b"7", b"{}", b'{"sizes": 3}', b'{"sizes": [-1]}', b'{"sizes": ["3"]}', b'{"sizes": [2]}', b"{", b"\xff"],
)
def test_headers_that_make_no_sense(header: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        message(header, b"abc")


def test_nothing_is_read_that_is_too_long() -> None:
    """No memory is allocated for it either."""
    with pytest.raises(ValueError, match="at most 10,000 bytes"):
        message(b'{"sizes": [20000]}', b"x" * 20_000)
    with pytest.raises(ValueError, match="at most 10,000 bytes"):
        receive(io.BytesIO(struct.pack(">QQ", 1 << 62, 1 << 62)), MOST)


FOLDER = Path(__file__).parents[1] / "structured"
PAGES = sorted(FOLDER.glob("*/*.html"))
DEEP = [
    "<ul><li>" * 240 + "deep lists",
    "<ul><li>x" * 2_000 + "deeper lists",
    "<blockquote>" * 450 + "deep quotes",
    "<b><i>" * 1_000 + "deep runs",
    "<table><tr><td>" * 100 + "deep tables",
]
NAMES = "title main_html markdown text content labels source fallback_reason error truncated metadata".split()


def values(extractions: list[Extraction]) -> list[list[object]]:
    return [[getattr(one, name) for name in NAMES] for one in extractions]


@pytest.mark.parametrize(
    ("options", "pages"),
    [({}, PAGES[::4]), ({"metadata_field": "m", "markdown": {"links": "citations", "tables": "linear"}}, PAGES)],
    ids=["plain", "rich"],
)
def test_all_that_comes_out_is_the_same(shared: Pool, options: dict[str, Any], pages: list[Path]) -> None:
    """Main-HTML, Markdown, text, content list, labels and metadata are compared, also for deeply nested pages."""
    config = replace(OWN, content_field="content", **options)
    documents = [Document(page.read_bytes(), "http://example.com/") for page in pages]
    documents += [Document(text, "http://example.com/") for text in DEEP]
    here = Extractor(replace(config, processes=0))
    expected = values(here.extract(documents))
    for document, one in zip(documents, expected, strict=True):
        assert values(shared.extract([Task(document, config)])) == [one]
    assert values(shared.extract([Task(document, config) for document in documents[:8]])) == expected[:8]


@pytest.mark.parametrize("fallback", ["trafilatura", "html", "empty", "none"])
def test_fallbacks_are_the_same(shared: Pool, fallback: str) -> None:
    """With their metadata."""
    config = Config(fallback=fallback, content_field="content", metadata_field="metadata")
    documents = [Document(page.read_bytes(), "http://example.com/") for page in PAGES[::9]]
    documents += [Document(text, "http://example.com/") for text in DEEP]
    here = Extractor(replace(config, processes=0, engine=OWN.engine))
    reason = FallbackReason.ENGINE_ERROR
    for document in documents:
        expected = values([here.fall_back(document, reason, "x")])
        assert values(shared.extract([Task(document, config, reason, "x")])) == expected
