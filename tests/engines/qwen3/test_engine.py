"""The engine labels pages of any size, and a bad page affects no other page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from lxml.html import document_fromstring

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason
from scrapy_dripper.engines.base import EngineError, EngineLostError, Labels, ModelError, OversizeError
from scrapy_dripper.engines.qwen3.decoder import Decoder, Passes
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine
from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.grammar import Ids
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page.page import Page
from scrapy_dripper.sites.templates import is_audited
from tests.engines.qwen3.fakes import FakeTagger
from tests.sites.site import article, listing, url

WORDS = "the harbour was quiet in the morning and boats came back with the tide before the market opened".split()


def html(n: int, words: int = 4) -> str:
    """Return a document of n paragraphs. Every third one has the word that the tagger looks for."""
    paragraphs = (
        f"<p>{k} {'main' if k % 3 == 0 else ''} {' '.join(WORDS[(k + j) % len(WORDS)] for j in range(words))}</p>"
        for k in range(n)
    )
    return f"<html><body>{''.join(paragraphs)}</body></html>"


def page(n: int, words: int = 4, oversize: str = "fallback", profile: str = "native") -> Page:
    return replace(PROFILES[profile].cut(document_fromstring(html(n, words)), ""), config=Config(oversize=oversize))


def good(answer: Labels | EngineError) -> Labels:
    assert isinstance(answer, Labels)
    return answer


def decoder_of(engine: Qwen3Engine) -> Decoder:
    assert isinstance(engine.decoder, Decoder)
    return engine.decoder


@contextmanager
def passes_that(engine: Qwen3Engine, fail: Callable[[int], None]) -> Iterator[list[int]]:
    """Call ``fail`` with the length of each sequence that is begun, and yield these lengths."""
    begun: list[int] = []
    begin = Passes.begin

    def failing(passes: Passes, length: int, prompt: Ids) -> int:
        begun.append(length)
        fail(length)
        return begin(passes, length, prompt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Passes, "begin", failing)
        yield begun


# ---------------------------------------------------------------------- labels
def test_labels_do_not_depend_on_the_draft_or_on_other_pages(prepared: Prepared) -> None:
    """The labels are the model's own, whatever the tagger and the batch are."""
    pages = [page(n) for n in (12, 1, 30, 3)]
    found = []
    for word in ("main", "harbour", "nowhere"):
        engine = Qwen3Engine(prepared, FakeTagger(word))
        found.append([good(answer) for answer in engine.label(pages)])
        found.append([good(engine.label([one])[0]) for one in pages])
        engine.close()

    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert one.main.tolist() == other.main.tolist()
            np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-4)
    assert {len(answer.main) for answer in found[0]} == {12, 1, 30, 3}
    assert 0 < sum(int(answer.main.sum()) for answer in found[0]) < 46


def test_work_is_counted(engine: Qwen3Engine) -> None:
    """The stats sum up at most one pass per block, and count the fate of the draft."""
    answer = good(engine.label([page(30)])[0])

    assert set(answer.work) == {"passes", "positions", "draft", "draft_kept", "prefill_ms", "decode_ms"}
    assert 1 <= answer.work["passes"] <= 30
    assert answer.work["draft"] == 30
    agree = answer.main == np.array([k % 3 == 0 for k in range(30)])
    assert answer.work["draft_kept"] == int(agree.sum())


def test_no_pages_and_a_page_without_blocks(engine: Qwen3Engine) -> None:
    empty = PROFILES["native"].cut(document_fromstring("<html><body></body></html>"), "")

    assert engine.label([]) == []
    assert [len(good(answer).main) for answer in engine.label([empty, page(2)])] == [0, 2]


# ---------------------------------------------------------------------- size
def test_a_page_that_is_too_long(engine: Qwen3Engine) -> None:
    """This is known before any pass, and the other pages of the batch are labelled."""
    with passes_that(engine, lambda _: None) as begun:
        long, short = engine.label([page(100, 60), page(3)])

    assert isinstance(long, OversizeError)
    assert "tokens, and" in str(long)
    assert len(good(short).main) == 3
    assert len(begun) == 1


def test_truncated(engine: Qwen3Engine) -> None:
    """The first blocks are labelled, the others are not main, and the answer is marked as truncated."""
    answer = good(engine.label([page(100, 60, "truncate")])[0])
    whole = good(engine.label([page(100, 1, "truncate")])[0])

    labelled = answer.work["draft"]
    assert (answer.truncated, whole.truncated) == (True, False)
    assert 10 < labelled < 100
    assert len(answer.main) == 100
    assert not answer.main[labelled:].any()
    assert not answer.probabilities[labelled:].any()
    assert answer.probabilities[:labelled].all()


@pytest.mark.parametrize("tuning", [{"context": 25}, {"prompt": "word " * 5_000 + "{html}"}])
def test_no_room_beside_the_prompt(prepared: Prepared, tuning: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"no room for pages: it takes .* tokens here, and its prompt has "):
        Qwen3Engine(replace(prepared, **tuning), FakeTagger())


def test_texts_are_cut_as_the_manifest_says(prepared: Prepared) -> None:
    engines = [Qwen3Engine(replace(prepared, truncate_chars=chars), FakeTagger()) for chars in (20, 40, None)]
    few, more, whole = (good(engine.label([page(1, 60)])[0]).work["positions"] for engine in engines)

    assert few < more < whole


# ---------------------------------------------------------------------- failures
def test_a_page_that_fails_once_is_tried_again(engine: Qwen3Engine) -> None:
    failures = [MemoryError()]

    def fail(length: int) -> None:
        if failures:
            raise failures.pop()

    with passes_that(engine, fail) as begun:
        assert isinstance(engine.label([page(5)])[0], Labels)
    assert len(begun) == 2


def test_a_page_that_always_fails_is_an_error_of_its_own(engine: Qwen3Engine) -> None:
    """However many do, the model is not lost while it can still label two blocks."""

    def fail(length: int) -> None:
        if length > 600:
            raise RuntimeError("CUDA out of memory")

    with passes_that(engine, fail):
        answers = engine.label([page(5), *[page(50)] * 7, page(6)])

    assert [type(answer) for answer in answers] == [Labels, *[EngineError] * 7, Labels]
    assert "RuntimeError: CUDA out of memory" in str(answers[1])


def test_a_device_that_is_gone(engine: Qwen3Engine) -> None:
    """Each page is tried twice, and then one of two blocks. The next pages succeed if the device is back."""
    pages = [page(5)] * 6
    expected = good(engine.label(pages)[0]).main.tolist()

    def fail(length: int) -> None:
        raise RuntimeError("CUDA failure 719: unspecified launch failure")

    with passes_that(engine, fail) as begun:
        answers = engine.label(pages)
        assert [type(answer) for answer in answers] == [EngineLostError] * 6
        assert "the model no longer runs" in str(answers[-1])
        assert "CUDA failure 719" in str(answers[-1])
        assert len(begun) == 3 * 6

    assert [good(answer).main.tolist() for answer in engine.label(pages)] == [expected] * 6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_an_error(
    engine: Qwen3Engine, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half precision can overflow."""
    monkeypatch.setattr(Passes, "forward", lambda self, start, ids, rows: np.full((len(rows), 2), bad))

    decoder_of(engine).prepared = replace(decoder_of(engine).prepared, dtype="float16")
    answers = engine.label([page(3)] * 5)

    assert {answer.reason for answer in answers if isinstance(answer, EngineError)} == {FallbackReason.OVERFLOW}
    assert "not finite: fp16 ends at 65,504; export the model with '--dtype bf16'" in str(answers[-1])


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.full((1, 2), np.nan), r"does not run .*not finite.*--check"),
        (
            RuntimeError("CUDA failure 2: out of memory"),
            r"does not fit into the memory of its device \(CUDA failure 2: out of memory\)",
        ),
    ],
)
def test_a_model_that_does_not_run_is_found_at_load(
    prepared: Prepared, logits: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before the crawl, and tells a lack of memory from a damaged graph."""
    monkeypatch.setattr(Passes, "forward", Mock(side_effect=repeat(logits)))

    with pytest.raises(ModelError, match=message):
        Qwen3Engine(prepared, FakeTagger())


# ---------------------------------------------------------------------- on the way of a page
class MainText(Qwen3Engine):
    """Answers like the tagger after its passes, because templates only learn from labels that agree."""

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        super().label(pages)
        return self._tagger.label(pages)


def extract(engine: Any, config: Config, *documents: Document | str) -> list[Any]:
    return Extractor(config, engine).extract(documents)


@pytest.mark.parametrize("profile", ["native", "v1.0"])
def test_a_page_of_a_template_costs_nothing(prepared: Prepared, profile: str) -> None:
    """It takes no pass of the model; a page of another kind does, as before."""
    both = MainText(replace(prepared, profile=profile), FakeTagger("MAIN"))
    extractor = Extractor(Config(sites="templates", batch_size=1, processes=0, empty="answer"), both)
    free = [number for number in range(100) if not is_audited(url(number))]
    extractor.extract([Document(article(number), url(number)) for number in free[:8]])
    with passes_that(both, lambda _: None) as begun:
        found = extractor.extract([Document(article(number), url(number)) for number in free[8:12]])
        before = len(begun)
        (other,) = extractor.extract([Document(listing(1), url(1_000))])

    assert before == 0
    assert begun
    assert [one.source for one in found] == ["template"] * 4
    for number, one in zip(free[8:12], found, strict=True):
        assert f"MAIN sentence of article {number}," in (one.text or "")
    assert (other.source, other.details["template"]) == ("qwen3", "new")
    both.close()


def test_what_becomes_of_a_long_page_is_the_documents_choice(engine: Qwen3Engine) -> None:
    """The option comes from the crawl, or from the request."""
    config = Config(fallback="empty")
    long = html(100, 60)
    fallen, cut = extract(engine, config, long, Document(long, config=replace(config, oversize="truncate")))

    assert (fallen.source, fallen.fallback_reason) == ("fallback:empty", FallbackReason.OVERSIZE)
    assert "tokens" in fallen.error
    assert (cut.source, cut.truncated, cut.details["blocks"]) == ("qwen3", True, 100)


def test_pages_are_cut_by_the_models_profile(prepared: Prepared) -> None:
    """A footer is a block in the native profile, and removed in the other one."""
    document = html(3).replace("</body>", "<footer><p>the end of it</p></footer></body>")
    blocks = []
    for profile in ("native", "v1.0"):
        engine = Qwen3Engine(replace(prepared, profile=profile), FakeTagger())
        blocks.append(extract(engine, Config(), document)[0].details["blocks"])
        engine.close()

    assert blocks == [4, 3]
