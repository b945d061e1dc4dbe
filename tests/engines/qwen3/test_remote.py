"""The model runs in its own process. Workers read, draft and write, and the labels are the same as in one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml.html import document_fromstring

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.engines.base import EngineLostError, ModelError
from scrapy_dripper.engines.qwen3.engine import load_remote
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.workers.pool import Workers
from scrapy_dripper.workers.wire import Task
from tests.engines.qwen3.fakes import PREPARED

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes as POSIX has them")

STRUCTURED = Path(__file__).parents[2] / "structured"
DOCUMENTS = [
    Document(path.read_bytes(), f"http://example.com/{path.stem}") for path in sorted(STRUCTURED.glob("*/*.html"))[:12]
]


@pytest.fixture
def config() -> Config:
    """Return the configuration of a small model whose context some pages exceed."""
    return Config(engine="qwen3", model=str(PREPARED), processes=1, timeout=120, fallback="html", empty="answer")


@pytest.fixture
def workers(config: Config) -> Iterator[Workers]:
    """Return the workers of the configuration."""
    shared = Workers(config)
    yield shared
    shared.close()


def extracted(workers: Workers, config: Config) -> list[Extraction]:
    """Return the workers' extractions of the documents."""
    found = workers.pool.extract([Task(document, config) for document in DOCUMENTS])
    return [timeless(one) for one in found]


def timeless(one: Extraction) -> Extraction:
    """Return an extraction without the times that it took."""
    work = {name: count for name, count in one.details["work"].items() if not name.endswith("_ms")}
    return one.with_details(milliseconds=0, work=work)


def test_the_labels_are_those_of_one_process(workers: Workers, config: Config) -> None:
    """Labels and counters are bit for bit the same, also for pages that are too long."""
    extractor = Extractor(config)
    expected = [timeless(one) for one in extractor.extract(DOCUMENTS)]
    extractor.close()

    assert extracted(workers, config) == expected
    assert {one.source for one in expected} == {"qwen3"}


def test_a_lost_model_is_lost_for_all_pages(config: Config) -> None:
    """The pages are not tried one by one."""
    engine = load_remote(config, lambda *_: ({"lost": "no GPU"}, []))
    page = PROFILES["native"].cut(document_fromstring("<p>words"), "")

    assert [(type(one), str(one)) for one in engine.label([page] * 3)] == [(EngineLostError, "no GPU")] * 3
    engine.close()


def test_a_model_that_dies_is_started_again(workers: Workers, config: Config) -> None:
    """A death between two batches affects no page."""
    before = extracted(workers, config)
    assert workers._model is not None
    (pid,) = workers._model.pool.pids
    os.kill(pid, signal.SIGKILL)

    assert extracted(workers, config) == before
    assert workers._model.pool.pids != [pid]


def test_a_model_that_is_missing_stops_the_start() -> None:
    """The message is the same as without workers, although another process detects the problem."""
    with pytest.raises(ModelError, match="set DRIPPER_MODEL to a folder made with 'scrapy-dripper export'"):
        Workers(Config(engine="qwen3", processes=1))
    with pytest.raises(ModelError, match=r"No prepared Qwen3 model in .*manifest\.json is missing"):
        Workers(Config(engine="qwen3", model=str(STRUCTURED), processes=1))
