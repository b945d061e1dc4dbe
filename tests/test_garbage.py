"""The garbage collector is paused while pages are extracted, and runs again afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.testing import FakeEngine

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


@pytest.mark.parametrize(("engine", "runs"), [(None, False), (FakeEngine(), True)], ids=["tagger", "another engine"])
def test_it_is_paused_while_the_tagger_works(engine: FakeEngine | None, runs: bool) -> None:
    seen: list[bool] = []
    with Extractor(engine=engine, watch=lambda document: seen.append(gc.isenabled())) as extractor:
        extractor.extract([HTML, Document(HTML)])

    assert set(seen) == {runs}
    assert gc.isenabled()


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
