"""The whole extraction of a list of documents, with engines that misbehave, and with the garbage collector paused."""

from __future__ import annotations

import gc
import pickle
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import scrapy_dripper
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction, FallbackReason, SiteData, nothing
from scrapy_dripper.engines.base import EngineError, Labels, Limits
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fingerprint import content_hash, simhash
from scrapy_dripper.page import Page
from scrapy_dripper.testing import FakeEngine


class Engine(FakeEngine):
    """Labels every block main, except on pages that hold the word 'bad': there it does what it is told."""

    def __init__(self, bad: Callable[[int], Any] | None = None, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        self.bad = bad

    def probability(self, text: str) -> float:
        return 0.9

    def answer(self, page: Page) -> Labels | EngineError:
        bad = self.bad is not None and "bad" in page.blocks.text[0]
        return self.bad(len(page.blocks)) if bad else super().answer(page)  # type: ignore[misc, no-any-return]


GOOD = [f"<p>good page {i}</p><p>second block</p>" for i in range(6)]
BAD = "<p>bad page</p><p>second block</p>"
IGNORED = '<div class="mathjax_ignore tex2jax_ignore">\n\n'
"""Notebooks look for no formulas in it."""


def raising(error: BaseException) -> Callable[[int], Any]:
    def bad(_: int) -> Any:
        raise error

    return bad


def described(n: int, **values: Any) -> Labels:
    return Labels(np.full(n, 0.9, dtype=np.float32), np.ones(n, dtype=np.bool_), **values)


@pytest.mark.parametrize(
    "bad",
    [
        raising(RuntimeError("broken")),
        raising(MemoryError()),
        lambda _: EngineError("not this one"),
        lambda _: None,
        lambda n: Labels(np.full(n, np.nan, dtype=np.float32), np.ones(n, dtype=np.bool_)),
        lambda n: Labels(np.full(n, 1.5, dtype=np.float32), np.ones(n, dtype=np.bool_)),
        lambda n: Labels(np.full(n + 1, 0.5, dtype=np.float32), np.ones(n + 1, dtype=np.bool_)),
        lambda n: Labels(np.full(n, 0.5, dtype=np.float32), np.ones(n - 1, dtype=np.bool_)),
        lambda n: Labels(np.full(n, 0.5, dtype=np.float32), np.full(n, 2, dtype=np.int64)),  # type: ignore[arg-type]
        lambda n: described(n, page_types={7: 0.9}),
        lambda n: described(n, page_types={"": 0.9}),
        lambda n: described(n, page_types={"article": 1.2}),
        lambda n: described(n, quality=float("nan")),
        lambda n: described(n, quality="good"),
        lambda n: described(n, quality=lambda main: 1.2),
        lambda n: described(n, quality=lambda main: main["none"]),
        lambda n: described(n, sizes=np.ones(n + 1, dtype=np.float32)),
    ],
)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_one_bad_page_falls_back_alone(bad: Callable[[int], Any], place: int) -> None:
    """Whatever an engine does on one page of a batch, the other pages keep their labels. There is one extraction per
    document, in order.
    """
    pages = [*GOOD[:place], BAD, *GOOD[place:]]
    found = Extractor(Config(fallback="html"), Engine(bad)).extract(pages)

    assert [x.source for x in found] == ["fallback:html" if i == place else "fake" for i in range(7)]
    assert found[place].fallback_reason is FallbackReason.ENGINE_ERROR
    assert found[place].error
    assert "bad page" in (found[place].text or "")
    assert found[place].details["blocks"] == 2


def test_an_engine_that_only_predicts() -> None:
    """What is main follows from its probabilities, and then it predicts the quality."""
    asked: list[list[bool]] = []

    def quality(main: Any) -> float:
        asked.append(main.tolist())
        return 0.75

    def predicted(n: int) -> Labels:
        p = np.linspace(0.9, 0.1, n, dtype=np.float32)
        return Labels(p, page_types={"article": 0.9, "listing": 0.1}, quality=quality)

    words = [f"<p>{'bad ' if i == 0 else ''}line {i} of the tides at the harbour of the town</p>" for i in range(5)]
    found = Extractor(Config(), Engine(predicted)).extract(["".join(words) + "<nav><a href=/>Harbours</a></nav>"])[0]

    assert (found.page_type, found.quality, found.source) == ("article", 0.75, "fake")
    assert found.labels == (True, True, True, False, False, False)
    assert asked == [list(found.labels)]


HEAD = """<meta name=author content='Ann Bell'><script type="application/ld+json">{"headline": "Tides"}</script>"""


ERROR = f"<p>403 Forbidden</p>{'<nav><a href=/>Menu</a></nav>' * 9}"
SCORED = ("extractor:ScoredPage", "choose.scored:NameIndex")


@pytest.mark.parametrize(
    ("html", "parts"),
    [("".join(GOOD), (*SCORED, "declared:_read_meta", "declared.schema_org:parsed")), (ERROR, SCORED)],
    ids=["good", "error"],
)
def test_a_page_is_read_and_scored_once(monkeypatch: pytest.MonkeyPatch, html: str, parts: Sequence[str]) -> None:
    """Its head, JSON-LD and names are read once, and all decisions are taken once, also those about the fallback."""
    made: Counter[str] = Counter()
    for part in parts:
        real = pkgutil.resolve_name(f"scrapy_dripper.{part}")

        def counted(*args: Any, real: Any = real, part: str = part, **values: Any) -> Any:
            made[part] += 1
            return real(*args, **values)

        monkeypatch.setattr(f"scrapy_dripper.{part.replace(':', '.')}", counted)
    config = Config(sites="all", limits={"blocks": 9}, oversize="truncate", metadata_field="metadata")
    Extractor(config).extract([Document(HEAD + html, "https://example.org/tides")])

    assert made == dict.fromkeys(parts, 1)


def test_an_engine_that_loses_a_page() -> None:
    """If an answer is missing, its page is unknown: the engine is asked for each page alone."""

    class Losing(Engine):
        def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
            return super().label(pages)[: max(1, len(pages) - 1)]

    assert {x.source for x in Extractor(Config(), Losing()).extract(GOOD)} == {"fake"}


def test_a_batch_is_one_call_of_the_engine() -> None:
    engine = Engine()
    found = Extractor(Config(), engine).extract([*GOOD, "", "<script>x</script>", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"])

    assert engine.batches == [6]
    assert [x.fallback_reason for x in found] == [None] * 6 + ["empty_body", "no_blocks", "not_html"]
    assert Extractor(Config(), engine).extract([]) == []


def test_a_batch_of_huge_pages_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of elements in a batch is limited, and so is memory, whatever the batch size."""
    monkeypatch.setattr("scrapy_dripper.extractor.NODES_TOGETHER", 10)
    engine = Engine()
    found = Extractor(Config(), engine).extract(GOOD)

    assert engine.batches == [3, 3]
    assert [x.text for x in found] == [f"good page {i}\nsecond block" for i in range(6)]


def test_answers_that_are_lists() -> None:
    """A user's engine may answer with anything that numpy can convert."""
    lists: Any = lambda n: Labels([0.9] * n, [True] * n)  # type: ignore[arg-type]  # noqa: E731
    found = Extractor(Config(), Engine(lists)).extract([BAD])[0]

    assert found.text == "bad page\nsecond block"


def test_a_page_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise ValueError("cannot write")

    monkeypatch.setattr("scrapy_dripper.extractor.write", broken)
    found = Extractor(Config(fallback="empty"), Engine()).extract([BAD])[0]

    assert found.fallback_reason is FallbackReason.OUTPUT_ERROR
    assert "cannot write" in (found.error or "")
    assert found.details["blocks"] == 2


@pytest.mark.parametrize("url", ["http://[", "not a url", "", "javascript:x", "http://a/%zz"])
def test_any_url(url: str) -> None:
    found = Extractor().extract([Document("<p>A line of some words.</p>" * 9, url)])[0]

    assert (found.url, found.error) == (url, None)


@pytest.mark.parametrize(
    ("options", "of_engine", "error", "setting"),
    [
        ({}, 3, "5 blocks, over the engine's limit of 3", None),
        ({"limits": {"blocks": 3}}, 4, '5 blocks, over DRIPPER_LIMITS["blocks"] = 3', 'DRIPPER_LIMITS["blocks"]'),
        ({"limits": {"blocks": 4}}, 3, "5 blocks, over the engine's limit of 3", None),
    ],
)
def test_the_lower_limit_counts_and_is_named(
    options: dict[str, Any], of_engine: int, error: str, setting: str | None
) -> None:
    config, engine = Config(fallback="empty", **options), Engine(limits=Limits(max_blocks=of_engine))
    large, small = Extractor(config, engine).extract(["<p>word</p>" * 5, "<p>word</p>" * 3])
    (part,) = Extractor(replace(config, oversize="truncate"), engine).extract(["<p>word</p>" * 5])

    assert (large.fallback_reason, large.error, large.limit) == (FallbackReason.OVERSIZE, error, setting)
    assert small.fallback_reason is None
    assert (part.details["blocks"], part.truncated, part.error) == (3, True, error)


def test_options_of_one_document() -> None:
    """A document can bring its own options; the others keep the extractor's."""
    own = Config(limits={"blocks": 1}, fallback="empty")
    found = Extractor(Config(), Engine()).extract([Document(GOOD[0], config=own), GOOD[1]])

    assert [x.source for x in found] == ["fallback:empty", "fake"]


def test_nothing_main_is_an_answer() -> None:
    """If the engine labels nothing main, the result is empty and no fallback is called."""
    engine = Engine(lambda n: Labels(np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.bool_)))
    found = Extractor(Config(), engine).extract([BAD])[0]

    assert (found.main_html, found.markdown, found.text) == ("", "", "")
    assert (found.source, found.fallback_reason) == ("fake", FallbackReason.NO_MAIN)
    assert (found.details["blocks"], found.main_blocks) == (2, 0)


def test_extractions_are_plain_data() -> None:
    found = Extractor(Config(), Engine()).extract(GOOD[:1])[0]

    assert pickle.loads(pickle.dumps(found)) == found
    text = found.text or ""
    assert (found.meta()["content_hash"], found.meta()["simhash"]) == (content_hash(text), simhash(text))


def test_what_the_engine_says_of_the_page_comes_out() -> None:
    """Page figures come out as plain Python numbers; a fallback has none."""
    engine = Engine(
        lambda n: described(n, page_types={"listing": 0.25, "forum": np.float32(0.75)}, quality=np.float32(0.5))
    )
    good, bad = Extractor(Config(), engine).extract([GOOD[0], BAD])

    assert (good.page_type, good.details["page_type_probability"], good.quality) == (None, None, None)
    assert (bad.page_type, bad.details["page_type_probability"], bad.quality) == ("forum", 0.75, 0.5)
    assert type(bad.quality) is type(bad.details["page_type_probability"]) is float
    assert {"page_type": "forum", "page_type_probability": 0.75, "quality": 0.5}.items() <= bad.meta().items()
    fallen = Extractor(Config(fallback="html", limits={"blocks": 1}), engine).extract([BAD])[0]
    assert (fallen.page_type, fallen.meta()["page_type_probability"], fallen.quality) == (None, None, None)


@pytest.mark.parametrize("heading", ["<h1>The\n ferry</h1>", "<h2>The ferry</h2>", "<p>The ferry</p>"])
@pytest.mark.parametrize("engine", [FakeEngine(), "trafilatura", "r4"])
@pytest.mark.parametrize("metadata_field", ["metadata", None])
def test_the_title_is_the_headline(heading: str, engine: Any, metadata_field: str | None) -> None:
    """It does not depend on what has extracted the page, and on what is asked for."""
    head = "<title>The ferry | Harbour</title><meta property=og:site_name content=Harbour>"
    html = f"{head}<body>{heading}<p>It leaves at nine in the morning, and comes back in the evening."
    with Extractor(Config(metadata_field=metadata_field), engine) as extractor:
        [page] = extractor.extract([html])

    assert page.title == "The ferry"
    assert not page.metadata or page.metadata.title == page.title


@pytest.mark.parametrize(
    ("extraction", "line"),
    [
        (
            Extraction("u", "The ferry", "<p>x", "It leaves", "It leaves at 9.", "tagger", quality=0.968),
            "Extraction('The ferry', tagger, 4 words, quality 0.97)",
        ),
        (
            Extraction("u", None, "", "潮が満ちる", None, "fallback:html", FallbackReason.OVERSIZE),
            "Extraction(None, fallback:html (oversize), 5 words)",
        ),
        (Extraction("u", "Tide", "<p>x", "Tide", "Tide", "tagger"), "Extraction('Tide', tagger, 1 word)"),
        (nothing("u", FallbackReason.JS_SHELL, "x"), "Extraction(None, fallback:none (js_shell), nothing)"),
    ],
)
def test_an_extraction_is_shown_as_a_line_and_in_notebooks_as_a_page(extraction: Extraction, line: str) -> None:
    """Without Markdown, a notebook shows the line."""
    assert repr(extraction) == repr(replace(extraction, site=SiteData(b"x"))) == line
    assert extraction._repr_markdown_() == extraction.markdown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>Adults pay $5, or $9 at night.</p>", f"{IGNORED}Adults pay &#36;5, or &#36;9 at night.\n\n</div>"),
        ("<p>Take <code>$A</code> and <code>$B</code>.</p>", f"{IGNORED}Take `$A` and `$B`.\n\n</div>"),
        ('<p>From $5: <script type="math/tex">x</script></p>', "From \\$5: $x$"),
    ],
)
def test_a_notebook_shows_front_matter_as_such_and_prices_as_prices(html: str, shown: str) -> None:
    """It would take the one for a heading, and the others for a formula, which the third page has."""
    page = scrapy_dripper.extract(html, "https://example.org/", front_matter=True)

    assert page._repr_markdown_() == '```yaml\nurl: "https://example.org/"\n```\n\n' + shown


@pytest.mark.parametrize(
    ("body", "markdown"),
    [
        ('<script type="math/tex; mode=display">x^2</script><script type="math/tex">y</script>', "$$\nx^2\n$$\n\n$y$"),
        ('<p><script type="math/tex">x</script><script type="math/tex">y</script></p>', "$x$ $y$"),
    ],
)
def test_formulas_without_text_are_a_page(body: str, markdown: str) -> None:
    """Such a page has nothing to label and does not fall back; its neighbour keeps its own labels."""
    other = "<p>The weaver winds the warp on the beam before the first pick, and ties it to the cloth beam.</p>" * 3
    pages = Extractor(Config(fallback="none")).extract([f"<body>{body}", other, "<script>let x = 1;</script>"])
    assert [page.markdown for page in pages][::2] == [markdown, None]
    assert (pages[0].source, pages[0].fallback_reason, pages[0].confidence) == ("tagger", None, None)
    assert len(pages[1].labels) == pages[1].details["blocks"] == 3
    assert pages[2].fallback_reason is FallbackReason.NO_BLOCKS


class Url:
    """A URL class of another library, such as ``web_poet.ResponseUrl``."""

    def __str__(self) -> str:
        return "https://example.com/a"


@pytest.mark.parametrize(("url", "text"), [(Url(), "https://example.com/a"), (None, ""), (5, "5"), (b"x", "b'x'")])
def test_a_document_is_plain_data(url: Any, text: str) -> None:
    assert Document("<p>x</p>", url).url == text
    assert Document(bytearray(b"<p>x</p>")).html == Document(memoryview(b"<p>x</p>")).html == b"<p>x</p>"  # type: ignore[arg-type]
    assert Document("x", charset=5).charset is None  # type: ignore[arg-type]


@pytest.mark.parametrize("html", [None, 5, ["<p>x</p>"], object()])
def test_a_document_of_something_else_says_so_at_once(html: Any) -> None:
    with pytest.raises(TypeError, match="html must be text or bytes"):
        Document(html)
    with pytest.raises(TypeError, match="config must be a Config, as in"):
        Document("<p>x</p>", config={"fallback": "empty"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given", ["<p>Tea</p>", b"<p>Tea</p>", bytearray(b"<p>Tea</p>"), Document("<p>Tea</p>"), {"html": "Tea"}, None]
)
def test_a_page_without_a_list_around_it_is_refused(given: Any) -> None:
    """Each character of a text, or each key of a dict, would be a page."""
    with pytest.raises(TypeError, match=r"takes a list of pages, as in \[page\] = extractor.extract\(\[html\]\)"):
        Extractor(Config(), Engine()).extract(given)


def test_a_closed_extractor_says_so() -> None:
    """A fallback would answer in its place. The end of a ``with`` block closes it, and closing twice is harmless."""
    with Extractor(Config(), Engine()) as extractor:
        assert extractor.extract(GOOD[:1])[0].source == "fake"

    extractor.close()
    with pytest.raises(RuntimeError, match="the extractor is closed"):
        extractor.extract(GOOD[:1])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"fallback": "empty"}, "Extractor(Config(fallback='empty'))"),
        ({"fallbak": "empty"}, 'Extractor(Config(fallback="empty"))'),
        ("empty", 'Extractor(Config(fallback="empty"))'),
    ],
)
def test_a_configuration_that_is_none_is_refused_with_the_right_call(given: Any, meant: str) -> None:
    with pytest.raises(TypeError, match=re.escape(meant)):
        Extractor(given)


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        ({"limits": {"bytes": 600}}, 'DRIPPER_LIMITS["bytes"]'),
        ({"limits": {"blocks": 10}}, 'DRIPPER_LIMITS["blocks"]'),
        ({"limits": {"nodes": 20}}, 'DRIPPER_LIMITS["nodes"]'),
    ],
)
def test_a_truncated_page_names_its_limit(limits: dict[str, Any], setting: str) -> None:
    (found,) = Extractor(Config(oversize="truncate", **limits), Engine()).extract(["<p>good paragraph</p>" * 50])

    assert (found.source, found.truncated, found.fallback_reason, found.limit) == ("fake", True, None, setting)
    assert setting in (found.error or "")


HTML = "<h1>A title</h1><p>This paragraph is long enough to be the main content of the page.</p>"


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_the_collector_runs_again_after_an_error() -> None:
    class Bug(BaseException):
        pass

    def watch(document: Document | None) -> None:
        raise Bug

    with Extractor(watch=watch) as extractor, pytest.raises(Bug):
        extractor.extract([HTML])
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    with Extractor() as extractor:
        extractor.extract([HTML])
    assert not gc.isenabled()


def test_it_runs_between_the_parts_of_a_long_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a threshold of one object, the collector runs at any moment at which it is not paused."""
    monkeypatch.setattr("scrapy_dripper.extractor.DOCUMENTS_TOGETHER", 2)
    runs: list[str] = []
    before: list[int] = []

    def started(phase: str, info: dict[str, int]) -> None:
        runs.append(phase)

    extractor = Extractor(watch=lambda document: before.append(len(runs)))
    threshold = gc.get_threshold()
    gc.callbacks.append(started)
    gc.set_threshold(1)
    try:
        found = extractor.extract([HTML] * 9)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(started)
        extractor.close()
    assert len({one.text for one in found}) == 1
    assert len(found) == 9
    assert len(set(before)) == 5  # parts, in each of which the number of runs stays the same
