"""Passes of a graph: nothing is read twice, padded or kept without need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.engines.qwen3.folder import Prepared
from scrapy_dripper.engines.qwen3.loop import TokenChunk
from scrapy_dripper.engines.qwen3.passes import Passes
from scrapy_dripper.engines.qwen3.session import open_session


def opened(prepared: Prepared, shared: int = 0) -> Passes:
    """Return the passes of a model, with a shared prefix of so many tokens."""
    return Passes(open_session(prepared, "auto"), prepared, np.arange(3, 3 + shared))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many tokens the graph has read in each run."""
    noted: list[int] = []
    run = Passes._run

    def note(passes: Passes, inputs: dict[str, Any]) -> Any:
        noted.append(inputs["input_ids"].shape[1])
        return run(passes, inputs)

    monkeypatch.setattr(Passes, "_run", note)
    return noted


def test_the_prefix_is_read_once(prepared: Prepared, runs: list[int]) -> None:
    """All pages begin behind it, until everything is given back."""
    passes = opened(prepared, 20)

    assert [passes.begin(40, shared=True) for _ in range(3)] == [20] * 3
    assert runs == [20]

    passes.release()
    passes.begin(40, shared=True)
    assert runs == [20] * 2


def test_a_page_is_not_padded_on_a_cpu(prepared: Prepared, runs: list[int]) -> None:
    passes = opened(prepared)
    passes.begin(33, shared=False)
    passes.forward(TokenChunk(0, np.arange(3, 36), np.array([32])))

    assert runs == [33]


def test_buffers_are_rounded_up_to_a_power_of_2(prepared: Prepared) -> None:
    passes = opened(prepared)
    found = []
    for length in (100, 30, 129):
        passes.begin(length, shared=False)
        found.append(passes._capacity)

    assert found == [128, 128, 256]


@pytest.mark.parametrize(("name", "kind"), [("tensor(float16)", np.float16), ("tensor(float)", np.float32)])
def test_logits_have_the_type_that_the_graph_gives_them(prepared: Prepared, name: str, kind: type) -> None:
    session: Any = SimpleNamespace(get_outputs=lambda: [SimpleNamespace(name="choice_logits", type=name)])

    assert Passes(session, prepared, np.zeros(0, dtype=np.int64))._logits is kind
