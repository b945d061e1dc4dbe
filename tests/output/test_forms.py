"""A form that was asked for in addition, and fails or is too long, costs nothing else of an extraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers.pool import Pool
from scrapy_dripper.workers.wire import Task
from tests.output.failing import FORMS
from tests.workers.children import OWN

URL = "https://example.org/ferry"
PAGE = Document(
    "<html><head><title>Ferry</title><meta name=author content='Ada Lund'>"
    '<script type="application/ld+json">{"@type": "CollectionPage"}</script></head><body><h1>Ferry</h1>'
    "<p>The ferry leaves at <a href='/noon'>noon</a>, as it has for years.</p></body></html>",
    URL,
)
ANSWER = ("title", "main_html", "text", "labels", "probabilities", "source", "fallback_reason", "error", "truncated")
PLAIN = replace(OWN, engine="tests.output.failing.Failing")
ALL = replace(
    PLAIN,
    content_field="content",
    links_field="links",
    chunks_field="chunks",
    metadata_field="metadata",
    meta_field="meta",
    markdown={"front_matter": True},  # type: ignore[arg-type]
)
Extract = Callable[[Document, Config], Extraction]


@pytest.fixture(scope="module", params=["in process", "in a worker"])
def extract(request: pytest.FixtureRequest) -> Iterator[Extract]:
    """Return a function that extracts a document."""
    if request.param == "in process":
        with Extractor(replace(PLAIN, processes=0)) as extractor:
            yield lambda document, config: extractor.extract([replace(document, config=replace(config, processes=0))])[
                0
            ]
    else:
        pool = Pool(PLAIN, 1)
        yield lambda document, config: pool.extract([Task(document, config)])[0]
        pool.close()
    patch.stopall()


def forms(found: Extraction) -> dict[str, Any]:
    """Return the forms of an extraction, by the names that failures have."""
    named: dict[str, Any] = {name: getattr(found, name) for name in ("content", "chunks", "links")}
    prints = {name: found.meta()[name] for name in ("content_hash", "simhash")}
    return {**named, "metadata": found.metadata, "fingerprints": None if None in prints.values() else prints}


@pytest.mark.parametrize("error", ["RecursionError", "MemoryError", "ValueError"])
@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_fails_costs_nothing_else(extract: Extract, form: str, error: str) -> None:
    """Its name is in the details, and all other forms are as they would be without the failure."""
    extract(replace(PAGE, html="<p>FAIL links KeyError"), PLAIN)
    plain = extract(PAGE, PLAIN)
    patch.stopall()
    extract(replace(PAGE, html=f"<p>FAIL {form} {error}"), PLAIN)
    found = extract(PAGE, ALL)

    assert {name: getattr(found, name) for name in ANSWER} == {name: getattr(plain, name) for name in ANSWER}
    assert found.markdown is not None
    assert found.markdown.endswith(plain.markdown or "-")
    assert found.markdown.startswith("---\n") == (form != "front_matter")
    assert found.details["failed"] == found.meta()["failed"] == [form]
    assert [name for name, value in forms(found).items() if value is None] == [
        name for name in (form,) if form in forms(found)
    ]


@pytest.mark.parametrize(
    ("form", "deed"), [*((form, "DIE") for form in FORMS), *((form, "HANG") for form in ("chunks", "metadata"))]
)
def test_a_form_that_stops_a_worker_costs_nothing_else(form: str, deed: str) -> None:
    """The page is extracted again without this form, whether it runs until the deadline or ends its worker."""
    asked = replace(ALL, timeout=5 if deed == "HANG" else ALL.timeout)
    pools = [Pool(replace(PLAIN, model=model), 1) for model in ("", f"FAIL {form} {deed}")]
    try:
        plain, found = (pool.extract_alone(Task(PAGE, asked)) for pool in pools)
    finally:
        for pool in pools:
            pool.close()

    assert {name: getattr(found, name) for name in ANSWER} == {name: getattr(plain, name) for name in ANSWER}
    assert found.meta()["failed"] == [form]
    expected, made = forms(plain), forms(found)
    assert [name for name in expected if (made[name] is None) != (expected[name] is None)] == [
        name for name in (form,) if form in expected
    ]


def test_no_names_if_nothing_fails() -> None:
    """All forms are there."""
    patch.stopall()
    with Extractor(replace(ALL, processes=0)) as extractor:
        found = extractor.extract([PAGE])[0]

    assert ("failed" in found.details, found.meta()["failed"]) == (False, [])
    assert None not in forms(found).values()


def test_fingerprints_that_fail_later_cost_nothing_else() -> None:
    """Without a field for them, they are only made if somebody asks."""
    with Extractor(replace(PLAIN, processes=0, meta_field=None)) as extractor:
        found = extractor.extract([PAGE])[0]
    with patch("scrapy_dripper.data.fingerprints", side_effect=MemoryError):
        meta = found.meta()

    assert (meta["content_hash"], meta["simhash"], meta["failed"]) == (None, None, ["fingerprints"])
    assert meta | {name: found.meta()[name] for name in ("content_hash", "simhash")} == found.meta() | {
        "failed": ["fingerprints"]
    }


@pytest.mark.parametrize(
    ("html", "factor", "failed"),
    [
        ("<p>" + "<b>a</b> b " * 400, 4, ["content", "chunks", "links"]),
        ("<h2>a</h2><p>b</p>" * 100, 9, ["chunks"]),
    ],
    ids=["content", "chunks"],
)
def test_a_form_that_is_too_long_costs_nothing_else(html: str, factor: int, failed: list[str]) -> None:
    """The content list as JSON is longer than the Markdown, and chunks have the URL of the page each."""
    limited = replace(ALL, processes=0, limits={"output": factor}, chunks={"size": 50})  # type: ignore[arg-type]
    with Extractor(limited) as extractor:
        found = extractor.extract([Document(html, "https://example.org/" + "x" * 20_000)])[0]

    assert (found.source, found.fallback_reason, found.truncated) == ("all", None, False)
    assert found.text
    assert found.details["failed"] == failed


@pytest.mark.parametrize(
    ("answer", "failed", "error"),
    [
        ("FINE", [], None),
        ("CONTENT", ["content"], None),
        ("ENDLESS", ["content"], None),
        ("NO MAIN", ["content", "chunks", "links"], None),
        ("METADATA", ["metadata"], None),
        ("DICT", ["metadata"], None),
        ("NUMBER", [], "TypeError: expected a string as markdown (got 7)"),
        ("LABELS", [], "ValueError: expected 2 probabilities, one per label (got 0)"),
    ],
)
def test_what_a_custom_fallback_may_return(extract: Extract, answer: str, failed: list[str], error: str | None) -> None:
    """A content list, metadata or other forms that are none cost nothing else. The content list is then made from
    Main-HTML. An answer that is none costs the answer, and the error says why.
    """
    asked = replace(ALL, fallback="tests.workers.engines.odd_fallback", markdown={}, metadata_field=None)  # type: ignore[arg-type]
    found = extract(Document(f"<p>RAISE {answer}", URL), asked)

    assert found.fallback_reason is FallbackReason.ENGINE_ERROR
    assert found.meta()["failed"] == failed
    if error is None:
        assert (found.source, found.markdown, found.metadata or None) == (f"fallback:{asked.fallback}", "x", None)
        expected = None if "chunks" in failed else ["x"]
        assert (found.chunks and [one["markdown"] for one in found.chunks]) == expected
        assert (found.content is None) == (expected is None)
    else:
        assert (found.source, found.text) == ("fallback:empty", "")
        assert str(found.error).endswith(error)
